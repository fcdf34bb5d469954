"""Finds what a command is about: its workspace, an agent by name or id, and all pages of a list."""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

from sexton_cli.caller import Caller
from sexton_cli.client import Client, Row, field, rows
from sexton_cli.exits import FAILED, USAGE, Fault
from sexton_cli.id_parts import fits, is_id, is_part, meant
from sexton_cli.identity import ambiguous, pick_workspace, workspaces_of

PAGE: Final = 100
"""Items that are asked for at once; every list of the server gives as many."""
AGENT_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
AGENT: Final[Mapping[str, type]] = {"zombie_id": str, "name": str, "status": str}


class Found(NamedTuple):
    """Rows of a list, and where it goes on."""

    items: list[Row]
    next_cursor: str | None


def workspace_path(caller: Caller, client: Client) -> str:
    """The workspace that was asked for, that is in use, or that is the only one. Raises Fault."""
    wanted = caller.given_workspace or caller.kept.workspace_id
    if wanted is not None and is_id(wanted):
        return f"/v1/workspaces/{wanted}"
    found = workspaces_of(client)
    if wanted is not None:
        return f"/v1/workspaces/{pick_workspace(found, wanted)['workspace_id']}"
    if len(found) == 1:
        return f"/v1/workspaces/{found[0]['workspace_id']}"
    way_out = "Choose one with 'sexton workspace use NAME', or give --workspace."
    raise Fault(f"no workspace is chosen, and there are {len(found)}", way_out, status=USAGE)


def agent_id(client: Client, workspace: str, wanted: str) -> str:
    """The id of this name, or of which this is a part; the server itself judges a whole one. Raises Fault."""
    if is_id(wanted):
        return wanted.lower()
    # What can be no name could still be a pattern of names.
    query = f"?{urlencode({'name': wanted})}"
    found = rows(client.get(f"{workspace}/zombies{query}"), AGENT) if AGENT_NAME.fullmatch(wanted) else []
    for row in found:
        if row["name"] == wanted:
            return str(row["zombie_id"])
    known = newest_agents(client, workspace) if is_part(wanted) or AGENT_NAME.fullmatch(wanted) else []
    alike = [row for row in known if is_part(wanted) and fits(wanted, row["zombie_id"])]
    if len(alike) == 1:
        return str(alike[0]["zombie_id"])
    if alike:
        raise ambiguous(wanted, [f"{row['zombie_id']} ({row['name']})" for row in alike])
    asked = meant(wanted, (row["name"] for row in known))
    way_out = f"{asked}'sexton agent list' shows the agents of the workspace."
    raise Fault(f"there is no agent named {wanted!r} here", way_out, status=FAILED)


def newest_agents(client: Client, workspace: str) -> list[Row]:
    """The newest thousand; none where they cannot be had, as they are for advice alone."""
    try:
        return list(islice(walk(client, f"{workspace}/zombies", {}, AGENT), 10 * PAGE))
    except Fault:
        return []


def agent_path(caller: Caller, client: Client, wanted: str) -> str:
    """Where the agent of this name or id stands."""
    workspace = workspace_path(caller, client)
    return f"{workspace}/zombies/{agent_id(client, workspace, wanted)}"


def agent_names(client: Client, workspace: str, wanted: set[str]) -> dict[str, str]:
    """The names of these ids, as far as the newest thousand agents have them."""
    found: dict[str, str] = {}
    if not wanted:
        return found
    for row in islice(walk(client, f"{workspace}/zombies", {}, AGENT), 10 * PAGE):
        found[row["zombie_id"]] = row["name"]
        if wanted <= found.keys():
            break
    return found


def with_query(path: str, query: Mapping[str, str | None]) -> str:
    """The path with what was given of a query.

    >>> with_query("/v1/x", {"by": "day", "since": None}), with_query("/v1/x", {"since": None})
    ('/v1/x?by=day', '/v1/x')
    """
    given = urlencode({name: value for name, value in query.items() if value is not None})
    return f"{path}?{given}" if given else path


def walk(client: Client, path: str, query: Mapping[str, Any], kinds: Mapping[str, type]) -> Iterator[Row]:
    """All items of a list, however many pages it has."""
    cursor: str | None = None
    while True:
        found = page(client, path, {**query, "limit": PAGE, "cursor": cursor}, kinds)
        yield from found.items
        cursor = found.next_cursor
        if cursor is None:
            return


def page(client: Client, path: str, query: Mapping[str, Any], kinds: Mapping[str, type]) -> Found:
    """One page; what is None in the query is left out."""
    given = {name: value for name, value in query.items() if value is not None}
    answer = client.get(f"{path}?{urlencode(given)}" if given else path)
    following = answer.get("next_cursor")
    return Found(rows(answer, kinds), None if following is None else field(answer, "next_cursor", str))


def first_of(
    client: Client, path: str, query: Mapping[str, Any], kinds: Mapping[str, type], limit: int
) -> Found:
    """At most ``limit`` items, and where the list goes on."""
    items: list[Row] = []
    cursor = query.get("cursor")
    while True:
        found = page(client, path, {**query, "limit": min(PAGE, limit - len(items)), "cursor": cursor}, kinds)
        items += found.items
        cursor = found.next_cursor
        if cursor is None or len(items) >= limit:
            return Found(items, cursor)


def segment(text: str) -> str:
    """Whatever somebody typed, as one part of a path.

    >>> segment("../x?y")
    '..%2Fx%3Fy'
    """
    return quote(text, safe="")
