"""The names that a server has now, for a shell that completes a word; silent and soon done."""

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Final

import click
import httpx2
from click.shell_completion import CompletionItem

from sexton_cli.caller import Caller, Given
from sexton_cli.client import Client, Row
from sexton_cli.connection import HttpConnection
from sexton_cli.exits import Fault
from sexton_cli.identity import workspaces_of
from sexton_cli.lookups import first_of, page, workspace_path
from sexton_cli.noted_options import noted
from sexton_runner.trust import trust_for

WITHIN_S: Final = 1.5
"""A shell waits no longer, even for a name that is looked up or a server that answers a byte a second."""
STEP_S: Final = 1.0
MOST: Final = 100
NOTHING: Final[Mapping[str, str]] = {}


def begin_with(ctx: click.Context, kind: str, incomplete: str) -> list[CompletionItem]:
    """What begins with this of a kind of things; nothing when the server does not say in time."""
    found: list[CompletionItem] = []

    def look() -> None:
        # A shell shows what goes wrong in the middle of the line that is being typed.
        try:
            found.extend(islice(_asked(ctx, kind, incomplete), MOST))
        except (Fault, OSError, ValueError, KeyError, TypeError, httpx2.HTTPError):
            found.clear()

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(WITHIN_S)
    return list(found)


def _asked(ctx: click.Context, kind: str, incomplete: str) -> Iterator[CompletionItem]:
    caller = Caller(Given(**noted(ctx)), os.environ, None)
    # The kept token as it is: to renew it takes longer, and must not be cut off.
    with httpx2.Client(timeout=STEP_S, verify=trust_for(caller.base_url, None)) as http:
        connection = HttpConnection(http, caller.base_url)
        client = Client(connection, caller.base_url, caller.token.value, sleep=_give_up)
        for name, about in _NAMES[kind](caller, client, incomplete):
            if name.startswith(incomplete):
                yield CompletionItem(name, help=about)


def _agents(caller: Caller, client: Client, incomplete: str) -> Iterator[tuple[str, str]]:
    path = f"{workspace_path(caller, client)}/zombies"
    query = {"name": f"{incomplete}*", "limit": MOST}
    for row in page(client, path, query, {"name": str}).items:
        yield row["name"], str(row.get("status"))


def _workspaces(caller: Caller, client: Client, incomplete: str) -> Iterator[tuple[str, str]]:
    del caller, incomplete
    for row in workspaces_of(client):
        yield row["name"], row["workspace_id"]


def _newest(path: str, key: str, says: str, query: Mapping[str, str] = NOTHING) -> "Names":
    def names(caller: Caller, client: Client, incomplete: str) -> Iterator[tuple[str, str]]:
        del incomplete
        found = first_of(client, f"{workspace_path(caller, client)}/{path}", query, {key: str}, MOST)
        for row in found.items:
            yield row[key], _about(row, says)

    return names


def _about(row: Row, says: str) -> str:
    return f"{row.get('status')} {row.get('zombie_name') or row.get(says) or ''}".strip()


def _give_up(seconds: float) -> None:
    raise TimeoutError(seconds)


Names = Callable[[Caller, Client, str], Iterator[tuple[str, str]]]
_NAMES: Final[Mapping[str, Names]] = {
    "agent": _agents,
    "workspace": _workspaces,
    "event": _newest("events", "event_id", "actor"),
    "approval": _newest("approvals", "gate_id", "tool_name", {"status": "pending"}),
    "job": _newest("jobs", "job_id", "kind"),
}
