"""``sexton agent init`` and ``agent run``: writes an agent's files, and tries them without a server."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import trio

from sexton_actors.manifest.model import Manifest, Runtime
from sexton_cli.caller import Caller
from sexton_cli.catalogue import load_catalogue
from sexton_cli.commands.command import command
from sexton_cli.commands.options import calling
from sexton_cli.data_folder import default_data
from sexton_cli.exits import FAILED, INTERRUPTED, Fault, first_of
from sexton_cli.given_secrets import read_credentials
from sexton_cli.manifests import Files
from sexton_cli.model_script import read_script
from sexton_cli.sandbox_check import establish
from sexton_cli.scaffold import EVENT_FILE, SCRIPT_FILE, files_of, write_files
from sexton_cli.trial.kept_files import require_empty
from sexton_cli.trial.order import Approval, Order, model_for, wake_of, with_signing_secrets
from sexton_cli.trial.report import Decider, Teller, status_of
from sexton_cli.trial.session import Trial, hold_trial
from sexton_runner.images.store import default_folder, find
from sexton_runner.logs import LogLevel, LogSettings, configure_logs
from sexton_runner.sandbox.walls import WALLS
from sexton_runner.settings import DEFAULT_RUN_WALL_S, SandboxTier

FOLDER = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)


class _RuntimeChoice(click.Choice[str]):
    """Says what the two are where neither was given: it is the first thing that a newcomer has to choose."""

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str:
        """Complete "Missing option '--runtime'."."""
        del param, ctx
        return (
            "Give --runtime command for a program of yours, which needs no model and no key,"
            " or --runtime agent for a language model with tools."
        )


@command()
@click.argument("name")
@click.option(
    "--runtime",
    type=_RuntimeChoice([runtime.value for runtime in Runtime]),
    required=True,
    help="command: a program of yours. agent: a language model with tools.",
)
@click.option(
    "--dir", "folder", type=FOLDER, help="Write into this folder. [default: one of the agent's name]"
)
@calling
def init(caller: Caller, *, name: str, runtime: str, folder: Path | None) -> None:
    """Write the files of a new agent of this NAME, with comments and a sample event, ready to be tried."""
    files = files_of(name, Runtime(runtime))
    place = folder or Path(name)
    write_files(place, files)
    script = f" --model-script {place / SCRIPT_FILE}" if SCRIPT_FILE in files else ""
    following = f"sexton agent run {place} --event {place / EVENT_FILE}{script}"
    if caller.output.as_json:
        caller.output.document({"folder": str(place), "files": list(files), "next": following})
        return
    caller.output.say(f"Wrote {', '.join(files)} to {place}. Try it without a server:")
    caller.output.say(f"  {following}")
    caller.output.say(f"Then change it, and install it with 'sexton agent install {place}'.")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    """What stood on the command line of ``run``."""

    folder: Path
    event: Path | None
    message: str | None
    files: tuple[Path, ...]
    source: str | None
    model_script: Path | None
    secrets: tuple[str, ...] = field(repr=False)
    approval: str
    sandbox: str
    wall_s: float
    runner_log: Path | None
    out: Path | None


@command()
@click.argument("folder", type=FOLDER, metavar="DIR")
@click.option("--event", type=FILE, help="What its sender sends: the body of a webhook, or a message.")
@click.option("--message", metavar="TEXT", help="Wake it with a person's message instead.")
@click.option(
    "--file",
    "files",
    type=FILE,
    multiple=True,
    help="A file that the message brings, which the run finds in `in` of its folder; may be given again.",
)
@click.option(
    "--source", metavar="SOURCE[:TYPE]", help="Send the event to this webhook trigger. [default: the first]"
)
@click.option(
    "--model-script", type=FILE, help="The model's answers, in place of a model: a JSON list of turns."
)
@click.option(
    "--secret",
    "secrets",
    metavar="NAME.FIELD=PLACE",
    multiple=True,
    help="A credential: @FILE or env:VARIABLE, without .FIELD a JSON object; may be given again.",
)
@click.option(
    "--approve",
    "approval",
    flag_value=Approval.APPROVE.value,
    help="Approve whatever the agent asks a person; else the terminal is asked.",
)
@click.option("--deny", "approval", flag_value=Approval.DENY.value, help="Deny it.")
@click.option(
    "--sandbox",
    type=click.Choice([tier.value for tier in SandboxTier]),
    default=SandboxTier.BUBBLEWRAP.value,
    show_default=True,
    help="As 'sexton up' has it.",
)
@click.option(
    "--wall",
    "wall_s",
    type=click.FloatRange(0, min_open=True),
    default=DEFAULT_RUN_WALL_S,
    show_default=True,
    help="Seconds after which the run is ended, time at approvals not counted.",
)
@click.option(
    "--out",
    type=FOLDER,
    metavar="FOLDER",
    help="Keep the files that the run leaves in this new or empty folder.",
)
@click.option("--runner-log", type=FILE, help="Keep the runner's log in this file.")
@calling
def run(caller: Caller, **given: Any) -> None:
    """Try the agent of DIR on one event, without a server: in the runner's own sandbox and loop.

    A server that keeps nothing, and a runner, are started for this one event on this machine. They judge the
    files, run them and charge for them as yours would. A webhook is signed with a secret made up for it,
    unless one is given. What is shown and told is redacted as always.

    The model's key is taken from ANTHROPIC_API_KEY, OPENAI_API_KEY or that of the provider that the agent
    names. The exit status is 0 when the event was processed, 69 when no sandbox can be had here, 78 when the
    agent or its model is not set up, and 1 when the run failed.
    """
    words: dict[str, Any] = {"approval": Approval.ASK.value} | _known(given)
    order = _order_of(_Words(**words))
    # What the server has to say is for its operator; the agent's author is told what the agent does.
    configure_logs(LogSettings(level=LogLevel.ERROR))
    teller, decider = Teller(caller.output), Decider(caller, order.approval)
    trial = None
    try:
        trial = trio.run(_try, order, teller, decider, caller.output.note)
    except* KeyboardInterrupt:
        caller.output.note("Interrupted; the run was stopped, and nothing is left of it.")
    except* Fault as group:
        raise first_of(group) from None
    if trial is not None:
        teller.close(trial)
    click.get_current_context().exit(INTERRUPTED if trial is None else status_of(trial.event))


async def _try(order: Order, teller: Teller, decider: Decider, note: Callable[[str], None]) -> Trial:
    if order.sandbox is not SandboxTier.NONE:
        await establish(order.sandbox)
    return await hold_trial(order, show=teller.show, note=note, decide=decider.decide)


def _known(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name != "approval" or value is not None}


def _order_of(words: _Words) -> Order:
    """All that can be known to be wrong before anything is started is told first. Raises Fault."""
    files = Files(words.folder)
    manifest = files.checked().manifest
    _require_image(manifest, SandboxTier(words.sandbox))
    require_empty(words.out)
    script = None if words.model_script is None else read_script(words.model_script)
    return Order(
        files=files,
        manifest=manifest,
        wake=wake_of(manifest, words.event, words.message, words.source, words.files),
        approval=Approval(words.approval),
        sandbox=SandboxTier(words.sandbox),
        wall_s=words.wall_s,
        credentials=with_signing_secrets(manifest, read_credentials(words.secrets, os.environ)),
        model=model_for(manifest, os.environ, known=_provider_of(manifest), scripted=script is not None),
        script=script,
        runner_log=words.runner_log,
        out=words.out,
    )


def _require_image(manifest: Manifest, tier: SandboxTier) -> None:
    """Say at once what the event would wait for. Raises Fault."""
    if manifest.image is None:
        return
    if not WALLS[tier].own_root:
        way_out = "Try the agent with --sandbox bubblewrap."
        raise Fault(f"the tier {tier.value} can show no image", way_out, status=FAILED)
    if find(default_folder(os.environ), manifest.image) is None:
        way_out = f"Make it: sexton image build {manifest.image.partition('@')[0]} --from …"
        raise Fault(f"this machine does not have the image {manifest.image}", way_out, status=FAILED)


def _provider_of(manifest: Manifest) -> str | None:
    row = None if manifest.model is None else load_catalogue(None, default_data()).find(manifest.model)
    return None if row is None else row.provider
