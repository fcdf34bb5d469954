"""``sexton export``: writes a workspace as a folder of files."""

import re
from pathlib import Path

import click

from sexton_cli.caller import Caller
from sexton_cli.commands.command import command
from sexton_cli.commands.options import calling
from sexton_cli.declared.export import check_secrets, declaration_of, write_folder
from sexton_cli.declared.live import LiveReader
from sexton_cli.lookups import workspace_path

UNFIT = re.compile("[^a-z0-9]+")


@command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), metavar="DIR")
@click.option("--name", help="What the folder is to be called. [default: after the workspace]")
@click.option(
    "--from-environment",
    is_flag=True,
    help="Name a variable for each credential, to apply the folder to a server that has none of them.",
)
@calling
def export(caller: Caller, *, folder: Path, name: str | None, from_environment: bool) -> None:
    """Write the workspace's agents, credentials by name, MCP servers and settings to DIR.

    The folder is as 'sexton apply' reads it. Secrets stay in the vault. Agents that are killed are left out.
    """
    with caller.client() as client:
        path = workspace_path(caller, client)
        workspace = str(client.get(path).get("name"))
        live = LiveReader(client, path).read()
    for place in check_secrets(live):
        caller.output.note(f"{place} holds what looks like a secret: mind where you keep the folder.")
    called = name or UNFIT.sub("-", workspace.lower()).strip("-")[:64].strip("-") or "workspace"
    declaration = declaration_of(live, folder=called, workspace=workspace, from_environment=from_environment)
    files = write_folder(folder, declaration, live)
    if caller.output.as_json:
        caller.output.document({"folder": str(folder), "files": files})
        return
    count = f"{len(files)} file{'' if len(files) == 1 else 's'}"
    caller.output.say(f"Wrote {count} of workspace {workspace} to {folder}.")
