"""``sexton agent check``, ``install`` and ``update``: the verbs that read an agent's files."""

from pathlib import Path
from typing import Any, Final

import click
import msgspec

from sexton_actors.manifest.parse import Reading
from sexton_cli.caller import Caller
from sexton_cli.client import Row, field
from sexton_cli.commands.agent import urls_of
from sexton_cli.commands.command import command
from sexton_cli.commands.options import calling
from sexton_cli.commands.words import AGENT_WORD
from sexton_cli.exits import FAILED, OK
from sexton_cli.lookups import agent_path, workspace_path
from sexton_cli.manifests import Files

FOLDER: Final = click.Path(file_okay=False, path_type=Path)


@command()
@click.argument("folder", type=FOLDER, metavar="DIR")
@calling
def check(caller: Caller, *, folder: Path) -> None:
    """Check the SKILL.md and TRIGGER.md of DIR without any server.

    Every problem is told with its file, line and key, and with what to write instead. A warning is told of
    what is good, but will probably not do what you want: an unknown tool, provider or key of the context, a
    gate rule that matches nothing.
    """
    found = Files(folder).check()
    good = isinstance(found, Reading)
    errors = () if isinstance(found, Reading) else found.errors
    warnings = found.warnings if isinstance(found, Reading) else ()
    if caller.output.as_json:
        name = found.manifest.name if isinstance(found, Reading) else None
        told = {"errors": msgspec.to_builtins(errors), "warnings": msgspec.to_builtins(warnings)}
        caller.output.document({"ok": good, "name": name, **told})
    elif isinstance(found, Reading):
        caller.output.say(f"{folder}: agent {found.manifest.name} {found.manifest.version} is well.")
    for warned in () if caller.output.as_json else warnings:
        caller.output.say(f"{folder / warned.file}:{warned.line}: `{warned.key}` {warned.message} (warning)")
    for error in () if caller.output.as_json else errors:
        key = f" `{error.key}`" if error.key else ""
        caller.output.say(f"{folder / error.file}:{error.line}:{key} {error.message} ({error.code})")
    click.get_current_context().exit(OK if good else FAILED)


@command()
@click.argument("folder", type=FOLDER, metavar="DIR")
@calling
def install(caller: Caller, *, folder: Path) -> None:
    """Install the agent of DIR; its approval token, and secrets in addresses, are shown this once."""
    files = Files(folder)
    files.checked()
    with caller.client() as client:
        made = client.post(f"{workspace_path(caller, client)}/zombies", files.body())
    name, token = field(made, "name", str), field(made, "approval_token", str)
    if caller.output.as_json:
        caller.output.document(made)
        return
    caller.output.note(f"Installed agent {name}. What follows is shown this once; keep it in a safe place.")
    about = {"agent": f"{name} ({made.get('zombie_id')})"}
    caller.output.facts(about | urls_of(made) | {"approval token": token})
    _warn(caller, made)


@command()
@click.argument("folder", type=FOLDER, metavar="DIR")
@click.option(
    "--agent",
    "wanted",
    metavar="NAME",
    type=AGENT_WORD,
    help="The agent's name or id, if DIR gives it another name.",
)
@calling
def update(caller: Caller, *, folder: Path, wanted: str | None) -> None:
    """Give an agent the files of DIR; they count from its next event on."""
    files = Files(folder)
    name = files.checked().manifest.name
    with caller.client() as client:
        path = agent_path(caller, client, wanted or name)
        before = field(client.get(path), "config_revision", int)
        changed = client.patch(path, files.body())
    if caller.output.as_json:
        caller.output.document(changed)
        return
    revision = field(changed, "config_revision", int)
    pinned: Row = changed.get("pin") or {}
    news = "is as it was" if revision == before else "is now"
    caller.output.say(f"Agent {changed.get('name')} {news} at revision {revision}.")
    if (held := pinned.get("held_version")) is not None:
        told = f"It is pinned to version {revision}: its newest files are version {held}, and wait"
        caller.output.note(f"{told} until 'sexton agent unpin {changed.get('name')}'.")
    if urls := urls_of(changed):
        caller.output.facts(urls)
    _warn(caller, changed)


def _warn(caller: Caller, answer: Row) -> None:
    warnings: list[Any] = answer.get("warnings") or []
    for warned in warnings:
        key = f" `{warned.get('key')}`" if warned.get("key") else ""
        caller.output.note(
            f"{warned.get('file')}:{warned.get('line')}:{key} {warned.get('message')} (warning)"
        )
