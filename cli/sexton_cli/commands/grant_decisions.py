"""What the groups of commands about grants have in common: the list, and the words on one."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import click

from sexton_cli.caller import Caller
from sexton_cli.client import Client, Row
from sexton_cli.commands.options import calling
from sexton_cli.commands.words import AGENT_WORD
from sexton_cli.lookups import agent_id, agent_names, walk, workspace_path
from sexton_cli.output import Column, moment

STATUSES: Final = ("pending", "approved", "denied", "revoked")
WORDS: Final = {"approve": "approved", "deny": "denied", "revoke": "revoked"}

Find = Callable[[Caller, Client, Sequence[str]], tuple[str, str]]
"""The path of the grant that the arguments name, and what a sentence calls it."""


def add_list(
    group: click.Group, path: str, kinds: Mapping[str, type], columns: Sequence[Column], words: str
) -> None:
    """``list``: all grants of the workspace, or those of an agent or a status; ``path`` is below it."""

    @group.command("list", help=words)
    @click.option("--agent", metavar="NAME", type=AGENT_WORD, help="Only of this agent.")
    @click.option("--status", type=click.Choice(STATUSES), help="Only these.")
    @calling
    def list_(caller: Caller, *, agent: str | None, status: str | None) -> None:
        with caller.client() as client:
            workspace = workspace_path(caller, client)
            zombie_id = None if agent is None else agent_id(client, workspace, agent)
            rows = list(
                walk(client, f"{workspace}/{path}", {"zombie_id": zombie_id, "status": status}, kinds)
            )
            if caller.output.as_json:
                caller.output.document({"items": rows, "total": len(rows)})
                return
            names = agent_names(client, workspace, {row["zombie_id"] for row in rows})
        caller.output.table(columns, [_shown(row, names) for row in rows])


def add_decisions(group: click.Group, arguments: Sequence[str], find: Find, words: Mapping[str, str]) -> None:
    """``approve``, ``deny`` and ``revoke``; ``words`` are their helps."""
    for verb in WORDS:
        _add_decision(group, verb, arguments, find, words[verb])


def _add_decision(group: click.Group, verb: str, arguments: Sequence[str], find: Find, words: str) -> None:
    @calling
    def decide(caller: Caller, **given: str) -> None:
        with caller.client() as client:
            path, what = find(caller, client, [given[name] for name in arguments])
            changed = client.patch(path, {"status": WORDS[verb]})
        if caller.output.as_json:
            caller.output.document(changed)
            return
        caller.output.say(f"Grant of {what} is {changed.get('status')}.")

    for name in reversed(arguments):
        decide = click.argument(name, type=AGENT_WORD if name == "agent" else None)(decide)
    group.command(verb, help=words)(decide)


def _shown(row: Row, names: Mapping[str, str]) -> dict[str, Any]:
    lists = {name: ", ".join(value) for name, value in row.items() if isinstance(value, list)}
    agent = names.get(row["zombie_id"], row["zombie_id"])
    return {**row, **lists, "agent": agent, "requested": moment(row.get("requested_at"))}
