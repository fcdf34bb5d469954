"""Starts a server and its local runners, and says when everything is ready."""

import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import msgspec
import orjson
import structlog
import trio
from rich.console import Console

from sexton_cli.collector import spare_the_collector
from sexton_cli.composition import open_node
from sexton_cli.exits import CONFIG, OK, UNAVAILABLE, StartupFault, first_of
from sexton_cli.fault_report import explain
from sexton_cli.first_commands import first_commands
from sexton_cli.ground import Node
from sexton_cli.local_runners import LocalRunner, runner_command
from sexton_cli.sandbox_check import establish
from sexton_cli.settings import NodeSettings
from sexton_cli.shutdown import Shutdown
from sexton_cli.workers.server import open_workers
from sexton_http.gateway.request_log import add_request
from sexton_http.identity.context import VERSION
from sexton_runner.logs import configure_logs
from sexton_runner.settings import SandboxTier

Ready = Callable[[Node, trio.Nursery, trio.Event], Awaitable[None]]
"""What is done once the server answers; the nursery is for runners, the event says that they are to hurry."""
RUNNER_READY_S = 30.0
POLL_S = 0.05

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class UpSettings:
    """A server with runners on the same machine."""

    node: NodeSettings
    ready_file: Path | None
    runners: int
    runner_options: tuple[str, ...]
    sandbox: SandboxTier
    drain_s: float
    """How long runs may go on after the first signal."""


def run_up(settings: UpSettings) -> int:
    """The exit status of ``sexton up``."""
    console = Console(highlight=False)

    async def ready(node: Node, nursery: trio.Nursery, hastened: trio.Event) -> None:
        runners = await _start_runners(node, settings, nursery, hastened)
        _announce(node, console, runners)
        _show_first_commands(node, settings.node.data, console)
        _write_ready(node, settings.ready_file, runners)

    async def begin() -> None:
        if settings.runners and settings.sandbox is not SandboxTier.NONE:
            await establish(settings.sandbox)

    return _run(settings.node, console, settings.ready_file, ready, begin)


def run_serve(settings: NodeSettings, ready_file: Path | None) -> int:
    """The exit status of ``sexton serve``."""
    console = Console(highlight=False)

    async def ready(node: Node, nursery: trio.Nursery, hastened: trio.Event) -> None:
        del nursery, hastened
        _announce(node, console, [])
        _show_first_commands(node, settings.data, console)
        _write_ready(node, ready_file, [])

    return _run(settings, console, ready_file, ready)


async def _nothing() -> None:
    """Nothing has to be looked at before a server without runners starts."""


def _run(
    settings: NodeSettings,
    console: Console,
    ready_file: Path | None,
    ready: Ready,
    begin: Callable[[], Awaitable[None]] = _nothing,
) -> int:
    configure_logs(settings.log, [add_request])
    if ready_file is not None:
        # One that an earlier life left would tell a script that we are ready before we are.
        ready_file.unlink(missing_ok=True)
    status = OK
    try:
        trio.run(_serve, settings, console, ready, begin)
    except* StartupFault as group:
        status = explain(first_of(group))
    return status


async def _serve(
    settings: NodeSettings, console: Console, ready: Ready, begin: Callable[[], Awaitable[None]]
) -> None:
    def say(what: str) -> None:
        console.print(f"[dim]{what}[/dim]", soft_wrap=True)

    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with trio.open_nursery() as everything:
            shutdown = Shutdown(everything.cancel_scope, say)
            everything.start_soon(shutdown.heed, signals)
            await begin()
            opening = (
                open_node(settings, say)
                if settings.workers == 1
                else open_workers(settings, say, shutdown.hastened)
            )
            async with opening as node:
                await _serve_runners(node, shutdown, ready)
                shutdown.runners_have_ended()
            everything.cancel_scope.cancel()


async def _serve_runners(node: Node, shutdown: Shutdown, ready: Ready) -> None:
    # A scope of their own within the server's life: they drain while it still answers them.
    async with trio.open_nursery() as runners:
        shutdown.begin_with(runners.cancel_scope)
        spare_the_collector()
        await ready(node, runners, shutdown.hastened)
        await trio.sleep_forever()


# --- runners ------------------------------------------------------------------------------------------


class _Kept(msgspec.Struct, frozen=True):
    """What a runner keeps of itself in its folder."""

    runner_id: UUID
    runner_token: str


async def _start_runners(
    node: Node, settings: UpSettings, nursery: trio.Nursery, hastened: trio.Event
) -> list[LocalRunner]:
    since = node.world.now_ms()
    numbers = range(1, settings.runners + 1)
    runners = [await _local_runner(node, settings, number, hastened) for number in numbers]
    for runner in runners:
        nursery.start_soon(runner.keep)
    for runner in runners:
        await _until_it_polls(node, runner, settings.node.data, since)
    return runners


async def _local_runner(node: Node, settings: UpSettings, number: int, hastened: trio.Event) -> LocalRunner:
    state = _state_of(settings.node.data, number)
    state.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    enrolment = {} if _kept(state) else {"SEXTON_ENROLMENT_TOKEN": await node.mint_enrolment()}

    trust = () if node.certificate is None else ("--server-cert", str(node.certificate))

    def environment() -> dict[str, str]:
        # A runner sends the token it keeps to no other address, and ours may have another port now.
        kept = _kept(state)
        return {"SEXTON_RUNNER_TOKEN": kept.runner_token} if kept else enrolment

    async def has_died() -> None:
        if (kept := _kept(state)) is not None:
            await node.runner_died(kept.runner_id)

    return LocalRunner(
        number=number,
        command=runner_command(node.local_url, state, f"local-{number}", (*settings.runner_options, *trust)),
        environment=environment,
        log_file=state.parent / f"runner-{number}.log",
        has_died=has_died,
        drain_s=settings.drain_s,
        hastened=hastened,
    )


def _state_of(data: Path, number: int) -> Path:
    return data / "runners" / str(number)


def _kept(state: Path) -> _Kept | None:
    try:
        return msgspec.json.decode((state / "runner.json").read_bytes(), type=_Kept)
    except (OSError, msgspec.DecodeError):
        return None


async def _until_it_polls(node: Node, runner: LocalRunner, data: Path, since: int) -> None:
    with trio.move_on_after(RUNNER_READY_S):
        while runner.refused is None:
            kept = _kept(_state_of(data, runner.number))
            row = None if kept is None else await node.storage.runners.load(kept.runner_id)
            if row is not None and (row.last_seen_at or 0) >= since:
                return
            await trio.sleep(POLL_S)
    raise StartupFault(
        "UZ-STARTUP-001",
        f"runner {runner.number} does not start: {runner.last_words()}",
        f"See {runner.log_file}; '--runners 0' starts without one",
        CONFIG if runner.refused == CONFIG else UNAVAILABLE,
    )


# --- telling ------------------------------------------------------------------------------------------


def _write_ready(node: Node, ready_file: Path | None, runners: list[LocalRunner]) -> None:
    if ready_file is None:
        return
    value = {
        "base_url": node.base_url,
        "tenant_id": str(node.tenant_id),
        "workspace_id": str(node.workspace_id),
        "api_key": node.api_key,
        "admin_token": node.admin_token,
        "pids": {
            "server": os.getpid(),
            "postgres": node.postgres_pid,
            "runners": [runner.process.pid for runner in runners if runner.process],
            **({"workers": workers} if (workers := node.worker_pids()) else {}),
        },
    }
    # Whole or not at all, and its owner's alone: scripts wait for the file to appear, and it holds keys.
    part = ready_file.with_name(ready_file.name + ".part")
    part.unlink(missing_ok=True)
    # In a folder that others write to, one of them could have made it first, or a link with its name.
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(orjson.dumps(value))
    part.rename(ready_file)


def _announce(node: Node, console: Console, runners: list[LocalRunner]) -> None:
    log.info("server_up", address=node.base_url, local=node.local_url, runners=len(runners), version=VERSION)
    link = node.sign_in_url
    # What a person needs first stands first. Each URL ends at a blank, so that terminals open it as it is.
    lines = [
        ("address", node.base_url),
        (
            "sign in",
            f"{link} (in a browser, once, within an hour)" if link else "'sexton auth link' prints a link",
        ),
        ("API key", node.shown_api_key),
        ("workspace", str(node.workspace_id)),
        ("runners", f"{len(runners)} on this machine" if runners else "none on this machine"),
        ("reference", f"{node.base_url}/docs (the HTTP interface)"),
        ("prices", f"{node.catalogue_url} (of models, for clients of an older kind)"),
    ]
    console.print("[bold green]Sexton is up.[/bold green]")
    for name, value in lines:
        console.print(f"  {name:<10} {value}", soft_wrap=True)


def _show_first_commands(node: Node, data: Path, console: Console) -> None:
    console.print("[bold]Next, in another terminal: sign in, run an example, check the setup:[/bold]")
    for line in first_commands(node.base_url, data):
        console.print(f"  {line}", soft_wrap=True, markup=False)
