"""``sexton harness``: the versions of an agent's files, step by step: drafted, compiled, activated."""

from pathlib import Path

import click

from sexton_cli.caller import Caller
from sexton_cli.client import Row, field
from sexton_cli.commands.agent_versions import id_of_version, make_active
from sexton_cli.commands.late_group import noun
from sexton_cli.commands.options import calling, sure, yes
from sexton_cli.commands.table import HARNESS
from sexton_cli.commands.words import AGENT_WORD
from sexton_cli.exits import FAILED, Fault
from sexton_cli.lookups import agent_id, workspace_path
from sexton_cli.manifests import Files

FOLDER = click.Path(file_okay=False, path_type=Path)


@noun(late=HARNESS)
def harness() -> None:
    """Draft, compile, activate, list and compare the versions of an agent's files."""


@harness.command()
@click.argument("name", metavar="AGENT", type=AGENT_WORD)
@click.argument("folder", type=FOLDER, metavar="DIR")
@calling
def draft(caller: Caller, *, name: str, folder: Path) -> None:
    """Keep the files of DIR as an agent's next version, which it does not work by yet."""
    files = Files(folder).body()
    with caller.client() as client:
        workspace = workspace_path(caller, client)
        body = {"agent_id": agent_id(client, workspace, name), **files}
        kept = client.put(f"{workspace}/harness/source", body)
    caller.output.thing(
        kept, f"Version {field(kept, 'version', int)} of agent {name} is a {kept.get('status')}."
    )


@harness.command()
@click.argument("name", metavar="AGENT", type=AGENT_WORD)
@click.argument("version")
@calling
def compile(caller: Caller, *, name: str, version: str) -> None:  # noqa: A001 - the verb's name
    """Say whether a VERSION (its number or id) makes an agent, and if not, why; it fails if not."""
    with caller.client() as client:
        workspace = workspace_path(caller, client)
        body = {"config_version_id": id_of_version(client, workspace, name, version)}
        judged = client.post(f"{workspace}/harness/compile", body)
    errors: list[Row] = field(judged, "errors", list)
    told = [*errors, *(judged.get("warnings") or ())]
    if caller.output.as_json:
        caller.output.document(judged)
    else:
        caller.output.say(f"Version {judged.get('version')} of agent {name}: {judged.get('status')}.")
        for row in told:
            caller.output.say(f"{row.get('file')}:{row.get('line')}: `{row.get('key')}` {row.get('message')}")
    if errors:
        raise Fault(f"version {version} makes no agent", "Mend it, and draft it again.", status=FAILED)


@harness.command()
@click.argument("name", metavar="AGENT", type=AGENT_WORD)
@click.argument("version")
@yes
@calling
def activate(caller: Caller, *, name: str, version: str, yes: bool) -> None:
    """Have an agent work by a compiled VERSION (its number or id) from its next lease on."""
    sure(caller, f"Have agent {name} work by version {version}?", yes=yes)
    done = make_active(caller, name, version)
    urls: Row = done.get("webhook_urls") or {}
    new = {f"webhook {source}": url for source, url in urls.items()}
    caller.output.thing(done, {"agent": name, "works by": version, **new})
