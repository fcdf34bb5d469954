"""``sexton workspace-files``: shows and resets the folder that an agent keeps."""

import click

from sexton_cli.caller import Caller
from sexton_cli.commands.late_group import noun
from sexton_cli.commands.options import calling
from sexton_cli.commands.words import AGENT_WORD
from sexton_cli.lookups import agent_path
from sexton_cli.output import moment


@noun("workspace-files")
def workspace_files() -> None:
    """Show and reset the folder that an agent keeps from run to run."""


@workspace_files.command()
@click.argument("agent", type=AGENT_WORD)
@calling
def show(caller: Caller, *, agent: str) -> None:
    """Show what the next run of an AGENT starts from."""
    with caller.client() as client:
        found = client.get(f"{agent_path(caller, client, agent)}/workspace-files")
    if caller.output.as_json:
        caller.output.document(found)
        return
    snapshot = found.get("snapshot")
    if snapshot is None:
        caller.output.say("The next run starts from an empty folder.")
        return
    caller.output.facts(
        {
            "left by event": snapshot.get("event_id"),
            "kept": moment(snapshot.get("created_at")),
            "bytes": snapshot.get("size"),
            "sha256": snapshot.get("sha256"),
        }
    )


@workspace_files.command()
@click.argument("agent", type=AGENT_WORD)
@calling
def reset(caller: Caller, *, agent: str) -> None:
    """Have the next run of an AGENT start from an empty folder."""
    with caller.client() as client:
        done = client.delete(f"{agent_path(caller, client, agent)}/workspace-files")
    if caller.output.as_json:
        caller.output.document(done)
        return
    caller.output.say(f"The next run of {agent} starts from an empty folder.")
