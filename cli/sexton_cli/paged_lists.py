"""Lists of a workspace that have pages: each is asked for, shown and gone on with in the same way."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import click

from sexton_cli.caller import Caller
from sexton_cli.client import Row
from sexton_cli.lookups import agent_id, agent_names, first_of, workspace_path
from sexton_cli.output import Column


def paged(most: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the options of a list; without them it shows ``most``."""

    def declare(command: Callable[..., Any]) -> Callable[..., Any]:
        cursor = click.option("--cursor", help="Go on where an earlier list ended: its next_cursor.")
        limit = click.option(
            "--limit",
            type=click.IntRange(1, 10_000),
            default=most,
            show_default=True,
            help="The most to list.",
        )
        return limit(cursor(command))

    return declare


class PagedList(NamedTuple):
    """One list; its items may be of agents, by ``zombie_id``."""

    path: str
    """Below the workspace."""
    kinds: Mapping[str, type]
    """What each item has to have."""
    columns: Sequence[Column]
    shown: Callable[[Row, Mapping[str, str]], Row]
    """What the columns show of an item, with the names of agents by their ids."""

    def tell(self, caller: Caller, *, limit: int, agent: str | None = None, **query: str | None) -> None:
        """Print the first ``limit`` items that fit, and how to go on; ``agent`` is a name or an id."""
        names: dict[str, str] = {}
        with caller.client() as client:
            workspace = workspace_path(caller, client)
            zombie_id = None if agent is None else agent_id(client, workspace, agent)
            asked = {"zombie_id": zombie_id, **query}
            found = first_of(client, f"{workspace}/{self.path}", asked, self.kinds, limit)
            if caller.output.as_json:
                caller.output.document({"items": found.items, "next_cursor": found.next_cursor})
                return
            if "zombie_id" in self.kinds:
                names = {row["zombie_id"]: row["zombie_name"] for row in found.items if "zombie_name" in row}
                # A server of an older release names no agents in its lists.
                unnamed = {row["zombie_id"] for row in found.items} - names.keys()
                names |= agent_names(client, workspace, unnamed)
        caller.output.table(self.columns, [self.shown(row, names) for row in found.items])
        if found.next_cursor is not None:
            caller.output.note(f"There are more: raise --limit, or go on with --cursor {found.next_cursor}")
