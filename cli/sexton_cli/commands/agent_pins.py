"""``sexton agent pin`` and ``agent unpin``: keeps an agent at one version, and lets it go."""

from typing import Any, Final

import click

from sexton_cli.caller import Caller
from sexton_cli.client import Client, Row, field
from sexton_cli.commands.agent_versions import id_of_version, version_number
from sexton_cli.commands.command import command
from sexton_cli.commands.options import calling, sure, yes
from sexton_cli.commands.words import AGENT_WORD
from sexton_cli.lookups import agent_id, workspace_path

ACTIVE: Final = "config_revision"


@command()
@click.argument("name", metavar="AGENT", type=AGENT_WORD)
@click.argument("version", required=False)
@click.option("--reason", default="", metavar="TEXT", help="Why; it is kept with the pin.")
@yes
@calling
def pin(caller: Caller, *, name: str, version: str | None, reason: str, yes: bool) -> None:
    """Keep an agent at its active version, or go back to VERSION (its number or id) and keep it there.

    Files that it is given meanwhile wait as a version, until 'sexton agent unpin'.
    """
    with caller.client() as client:
        path = _path(caller, client, name)
        active = field(client.get(path), ACTIVE, int)
        number = active if version is None else version_number(caller, client, name, version)
        if number != active:
            sure(caller, f"Have agent {name} work by version {number}, and stay there?", yes=yes)
            activate(caller, client, name, number)
        pinned = client.put(f"{path}/pin", {"agent_version": number, "reason": reason})
    if caller.output.as_json:
        caller.output.document(pinned)
        return
    caller.output.say(f"Agent {name} stays at version {number}, whatever files it is given.")


@command()
@click.argument("name", metavar="AGENT", type=AGENT_WORD)
@click.option("--stay", is_flag=True, help="Leave the version active that it was pinned to.")
@calling
def unpin(caller: Caller, *, name: str, stay: bool) -> None:
    """Let a pinned agent go; the files that it was given meanwhile count from its next lease on."""
    with caller.client() as client:
        path = _path(caller, client, name)
        held = (client.get(path).get("pin") or {}).get("held_version")
        done: Row = client.delete(f"{path}/pin") or {}
        if held is not None and not stay:
            done = {**done, ACTIVE: held, **activate(caller, client, name, held)}
    if caller.output.as_json:
        caller.output.document(done)
        return
    caller.output.say(f"Agent {name} is pinned to none; it works by version {done.get(ACTIVE)}.")
    urls: dict[str, Any] = done.get("webhook_urls") or {}
    if urls:
        caller.output.facts({f"webhook {source}": url for source, url in urls.items()})


def activate(caller: Caller, client: Client, name: str, number: int) -> Row:
    """Make a version of this number the active one."""
    workspace = workspace_path(caller, client)
    body = {"config_version_id": id_of_version(client, workspace, name, str(number))}
    return client.post(f"{workspace}/harness/activate", body)


def _path(caller: Caller, client: Client, name: str) -> str:
    workspace = workspace_path(caller, client)
    return f"{workspace}/zombies/{agent_id(client, workspace, name)}"
