"""Starts a runner, and turns every way it can end into an exit status."""

import random
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import partial

import structlog
import trio

from sexton_runner.client import ControlPlane, Outage, open_http
from sexton_runner.doctor import examine, weaknesses
from sexton_runner.errors import BadSettings, Refused, RunnerError, SandboxUnavailable, TokenRejected, TooWeak
from sexton_runner.identity import find_token, load, own_state_dir
from sexton_runner.images.store import offered as offered_images
from sexton_runner.lease_execution import RunnerContext
from sexton_runner.logs import LogSettings, configure_logs
from sexton_runner.renewal import Renewer
from sexton_runner.reporter import Reporter
from sexton_runner.run_bounds import most_of, offered, read_bounds
from sexton_runner.run_folder import remove_folder
from sexton_runner.runner import Runner
from sexton_runner.sandbox.jobs import Sandbox
from sexton_runner.sandbox.limits import Limits
from sexton_runner.sandbox.probe import UNBOUNDED, Bound, make_sandbox, probe
from sexton_runner.sandbox.walls import WALLS
from sexton_runner.settings import RunnerSettings
from sexton_runner.supervisors.launcher import Launcher
from sexton_runner.supervisors.messages import Outfit
from sexton_runner.timing import Timing

EXIT_OK = 0
EXIT_UNAVAILABLE = 69
EXIT_NO_PERMISSION = 77
EXIT_CONFIG = 78
LABEL_RESERVED = "UZ-RUN-017"
RUNS_FOLDER = "runs"
WORKSPACE_SERVERS = "mcp:workspace.servers"
"""The offer of every runner that can reach MCP servers which a workspace declares."""
log = structlog.get_logger()


async def run_runner(
    settings: RunnerSettings,
    *,
    timing: Timing | None = None,
    rng: random.Random | None = None,
    announce: Callable[[Runner], None] = lambda _runner: None,
    launcher: Launcher | None = None,
) -> None:
    """Run one runner until it is drained or stopped; must be called in the main thread.

    Raises ``BadSettings``, ``SandboxUnavailable`` and ``TokenRejected``, the last perhaps within a group.
    ``announce`` is given the ``Runner`` when it begins to take work; signals are the caller's to translate.
    A ``launcher`` that is given stays the caller's.
    """
    pace, luck = timing or Timing(), rng or random.Random()  # noqa: S311 - it spreads calls in time
    limits = read_bounds(settings.run_default, "run_default").over(
        Limits(wall_s=settings.run_wall_s, memory_bytes=settings.run_memory_bytes, pids=settings.run_pids)
    )
    most = most_of(limits, read_bounds(settings.run_most, "run_most"))
    with own_state_dir(settings.state_dir), _launching(launcher, settings.log) as launches:
        runs = settings.state_dir / RUNS_FOLDER
        remove_folder(runs)
        sandbox = make_sandbox(settings.sandbox_tier, limits, settings.state_dir)
        bound = await probe(sandbox)
        if settings.strict:
            await _refuse_weakness(settings, bound)
        structlog.contextvars.bind_contextvars(host_id=settings.host_id)
        token = await find_token(settings, pace)
        kept = load(settings.state_dir)
        if kept is not None and kept.runner_token == token:
            structlog.contextvars.bind_contextvars(runner_id=kept.runner_id)
        connect = partial(open_http, settings.base_url, token, pace.call_timeout_s, settings.server_cert)
        outfit = Outfit(
            base_url=settings.base_url,
            token=token,
            server_cert=settings.server_cert,
            sandbox=sandbox,
            most=most,
            images=settings.images,
            timing=pace,
            tools=settings.tools,
            models=settings.models,
            egress=settings.egress,
        )
        async with connect() as work_http, connect() as pulse_http:
            outage = Outage(trio.current_time)
            plane, pulse = ControlPlane(work_http, outage), ControlPlane(pulse_http, outage)
            renewer = Renewer(pulse, pace, luck, trio.current_time)
            context = RunnerContext(
                plane=plane,
                renewer=renewer,
                reporter=Reporter(plane, pace.gather_s if settings.slots > 1 else 0.0),
                timing=pace,
                rng=luck,
                clock=trio.current_time,
                folder=runs,
                launcher=launches,
                outfit=outfit,
            )
            offers = partial(_offers, sandbox, most, settings)
            runner = Runner(context, pulse, slots=settings.slots, drain_s=settings.drain_s, offers=offers)
            announce(runner)
            log.info("runner_up", base_url=settings.base_url, host_id=settings.host_id, slots=settings.slots)
            await runner.run()


def _offers(sandbox: Sandbox, most: Limits, settings: RunnerSettings) -> tuple[str, ...]:
    servers = [WORKSPACE_SERVERS, *(f"mcp:{name}" for name in settings.tools.mcp_servers)]
    bounds = offered(most, keeps_share=sandbox.keeps_share)
    # Only a root of its own can show an image in place of what the host has.
    own_root = sandbox.tier.walls.own_root
    images = offered_images(settings.images) if own_root and settings.images is not None else ()
    return (*bounds, *servers, *images)


@contextmanager
def _launching(given: Launcher | None, log_settings: LogSettings) -> Iterator[Launcher]:
    launcher = given or Launcher(log_settings)
    launcher.start()  # It imports while the sandbox is tried out.
    try:
        yield launcher
    finally:
        if given is None:
            launcher.close()


async def _refuse_weakness(settings: RunnerSettings, bound: Bound) -> None:
    if not WALLS[settings.sandbox_tier].shuts_in:
        raise TooWeak(f"tier {settings.sandbox_tier.value!r} shuts nothing in")
    if bound is Bound.NONE:
        raise TooWeak(UNBOUNDED)
    if weak := weaknesses(await examine(settings.state_dir)):
        raise TooWeak("; ".join(weak))


class SignalDesk:
    """Turns signals into words to the runner: SIGTERM drains, a second one or SIGINT stops.

    Before there is a runner to tell, either ends everything.
    """

    def __init__(self) -> None:
        self._runner: Runner | None = None
        self._heard = False

    def meet(self, runner: Runner) -> None:
        """Learn whom to tell."""
        self._runner = runner

    async def heed(self, signals: AsyncIterator[int], everything: trio.CancelScope) -> None:
        """Wait for signals until cancelled."""
        async for number in signals:
            name = signal.Signals(number).name
            if self._runner is None:
                everything.cancel()
            elif number == signal.SIGTERM and not self._heard:
                self._heard = True
                self._runner.drain(name)
            else:
                self._runner.stop(name)


async def _supervised(settings: RunnerSettings, timing: Timing | None) -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with trio.open_nursery() as nursery:
            desk = SignalDesk()
            nursery.start_soon(desk.heed, signals, nursery.cancel_scope)
            await run_runner(settings, timing=timing, announce=desk.meet)
            nursery.cancel_scope.cancel()


def main(settings: RunnerSettings, *, timing: Timing | None = None) -> int:
    """Run a runner process to its end and give its exit status, 0, 69, 77 or 78; other faults are raised."""
    configure_logs(settings.log)
    try:
        trio.run(_supervised, settings, timing)
    except* RunnerError as group:
        fault = _first(group)
        status, advice = _explained(fault)
        sys.stderr.write(f"sexton runner: {advice}\n")
        return_status = status
    else:
        return_status = EXIT_OK
    return return_status


def _first(group: BaseExceptionGroup[RunnerError]) -> RunnerError:
    for inner in group.exceptions:
        return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner
    raise AssertionError("an exception group holds at least one exception")


def _explained(fault: RunnerError) -> tuple[int, str]:
    match fault:
        case BadSettings():
            return EXIT_CONFIG, f"UZ-STARTUP-002: {fault}"
        case TooWeak():
            return EXIT_CONFIG, f"UZ-RUN-007: --strict asks for more than this host gives: {fault}"
        case SandboxUnavailable():
            return EXIT_UNAVAILABLE, f"UZ-RUN-007: the sandbox cannot be established: {fault}"
        case TokenRejected():
            return (
                EXIT_NO_PERMISSION,
                f"{fault.code}: the control plane does not accept this runner's token: {fault.detail}",
            )
        case Refused(code=code) if code == LABEL_RESERVED:
            # To ask again would change nothing.
            return EXIT_CONFIG, f"{code}: the control plane does not enrol this runner: {fault.detail}"
        case _:
            return EXIT_UNAVAILABLE, str(fault)
