"""Fills the slots of one runner with leases, and drains them in order."""

import enum
import random
import uuid
from collections.abc import Callable, Iterable

import msgspec
import structlog
import trio

from sexton_runner.client import ControlPlane
from sexton_runner.errors import Refused, TokenRejected, Unavailable
from sexton_runner.lease import Halt, LiveLease
from sexton_runner.lease_execution import RunnerContext, execute_lease, release
from sexton_runner.timing import Clock, Timing, backoff, jittered
from sexton_runner.wire import MAX_LEASES_PER_POLL, Lease, LeaseName, Polled, Pulse

log = structlog.get_logger()


class Phase(enum.Enum):
    """What the runner is doing with its slots."""

    WORKING = "working"
    RESTING = "resting"  # The control plane has asked for no new work; it may ask for more later.
    DRAINING = "draining"  # For good: the process will end.
    STOPPING = "stopping"  # Now.


ENDING = frozenset({Phase.DRAINING, Phase.STOPPING})


class Runner:
    """The slots and the three loops: polling, heartbeats, renewal.

    ``pulse`` has a connection pool of its own.
    """

    def __init__(
        self,
        context: RunnerContext,
        pulse: ControlPlane,
        *,
        slots: int,
        drain_s: float,
        offers: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        self._context, self._pulse = context, pulse
        self._slots, self._drain_s = slots, drain_s
        self._timing: Timing = context.timing
        self._rng: random.Random = context.rng
        self._clock: Clock = context.clock
        self._live: dict[str, LiveLease] = {}
        self._changed = trio.Event()
        self._beat = trio.Event()
        self._offers = offers
        self._told: tuple[str, ...] | None = None
        self._introduced = trio.Event()
        self._poll_scope = trio.CancelScope()
        self.phase = Phase.WORKING

    def __repr__(self) -> str:
        return f"<Runner {len(self._live)}/{self._slots} {self.phase.value}>"

    def drain(self, why: str) -> None:
        """Take nothing new, finish within the drain time, release the rest, end."""
        if self.phase in (Phase.WORKING, Phase.RESTING):
            log.info("draining", why=why, running=len(self._live), drain_s=self._drain_s)
            self._enter(Phase.DRAINING)

    def stop(self, why: str) -> None:
        """Release everything now and end."""
        if self.phase is not Phase.STOPPING:
            log.info("stopping", why=why, running=len(self._live))
            self._enter(Phase.STOPPING)

    async def run(self) -> None:
        """Work until drained or stopped; ``TokenRejected`` leaves within an exception group."""
        async with trio.open_nursery() as pulse:
            # Renewal and heartbeats outlive the runs, and share neither connections nor tasks with them.
            pulse.start_soon(self._context.renewer.run)
            pulse.start_soon(self._heartbeats)
            pulse.start_soon(self._context.reporter.run)  # Calls for many do not end with one of their runs.
            async with trio.open_nursery() as runs:
                while self.phase in (Phase.WORKING, Phase.RESTING):
                    await self._fill(runs)
                await self._wind_down()
                runs.cancel_scope.deadline = trio.current_time() + self._timing.let_go_s
            if runs.cancel_scope.cancelled_caught:
                log.warning("leases_left", advice="the control plane takes them back when their term is over")
            pulse.cancel_scope.cancel()

    def _enter(self, phase: Phase) -> None:
        self.phase = phase
        if phase in ENDING:
            self._introduced.set()
            # Resting needs no such haste: the plane that asked for it grants nothing on an open poll.
            self._poll_scope.cancel()
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def _until(self, ready: Callable[[], bool]) -> None:
        while not ready():
            await self._changed.wait()

    async def _fill(self, runs: trio.Nursery) -> None:
        await self._until(
            lambda: (
                (self.phase is not Phase.RESTING and len(self._live) < self._slots) or self.phase in ENDING
            )
        )
        # What this runner offers decides what it is given, so it is said before it asks for the first time.
        await self._introduced.wait()
        attempt = 0
        while self.phase is Phase.WORKING and (free := self._slots - len(self._live)) > 0:
            with trio.CancelScope() as self._poll_scope:
                try:
                    asked = self._clock()
                    polled = await self._poll(min(free, MAX_LEASES_PER_POLL))
                    attempt = 0
                    self._take(polled, runs, asked)
                except Unavailable as fault:
                    luck = self._rng.random()
                    await trio.sleep(fault.retry_after_s or backoff(attempt, luck, self._timing))
                    attempt += 1
                except TokenRejected:
                    raise
                except Refused as refusal:
                    log.warning("poll_refused", code=refusal.code, detail=refusal.detail)
                    await trio.sleep(self._timing.backoff_max_s)

    async def _poll(self, most: int) -> Polled:
        asked = self._clock()
        polled = await self._context.plane.poll(most, self._timing.poll_wait_s, self._timing.call_timeout_s)
        if not polled.leases and self._clock() - asked < self._timing.poll_wait_s * 0.9:
            # An early empty answer may be the control plane's way to make us listen: a lease may have been
            # cancelled.
            self._beat.set()
            await trio.sleep(
                (polled.retry_after_ms or 0) / 1000 or backoff(0, self._rng.random(), self._timing)
            )
        return polled

    def _take(self, polled: Polled, runs: trio.Nursery, asked: float) -> None:
        now = self._clock()
        granted = polled.granted(asked, now)
        self._cancel(polled.cancelled_lease_ids)
        for raw in polled.leases:
            try:
                lease = msgspec.json.decode(raw, type=Lease)
                uuid.UUID(lease.lease_id)
            except (msgspec.ValidationError, ValueError) as fault:
                self._give_back_unread(raw, runs, str(fault))
                continue
            if lease.lease_id not in self._live:
                live = LiveLease(lease, self._clock, self._timing.lease_term_s, granted=granted)
                if live.deadline <= now:
                    live.halt(Halt.LOST, "the lease came after its term")
                self._live[lease.lease_id] = live
                log.info(
                    "lease_taken",
                    lease_id=lease.lease_id,
                    event_id=lease.event.event_id,
                    fencing_token=lease.fencing_token,
                )
                runs.start_soon(self._serve, live)
        if len(self._live) >= self._slots:
            self._beat.set()

    def _give_back_unread(self, raw: msgspec.Raw, runs: trio.Nursery, why: str) -> None:
        log.error("lease_unreadable", why=why)
        try:
            name = str(uuid.UUID(msgspec.json.decode(raw, type=LeaseName).lease_id))
        except (msgspec.ValidationError, ValueError):
            return
        runs.start_soon(self._release_unread, name)

    async def _release_unread(self, lease_id: str) -> None:
        try:
            await self._context.plane.release(lease_id, "unreadable lease")
        except TokenRejected:
            raise
        except (Unavailable, Refused) as fault:
            log.warning("release_refused", lease_id=lease_id, why=str(fault))

    async def _serve(self, live: LiveLease) -> None:
        try:
            if self.phase in ENDING:
                live.halt(Halt.RELEASED, "drain")
                await release(live, self._context)
            else:
                await execute_lease(live, self._context)
        finally:
            del self._live[live.lease.lease_id]
            self._wake()

    async def _wind_down(self) -> None:
        with trio.move_on_after(self._drain_s):
            await self._until(lambda: not self._live or self.phase is Phase.STOPPING)
        for live in self._live.values():
            live.halt(Halt.RELEASED, "drain")

    async def _heartbeats(self) -> None:
        while True:
            self._beat = trio.Event()
            # While every slot is taken there is no open poll to be told on, so the heartbeat is held open.
            full = len(self._live) >= self._slots
            wait_s = self._timing.heartbeat_s if full else 0.0
            pause_s = self._timing.backoff_first_s if full else self._timing.heartbeat_s
            now = self._offers()
            news = None if now == self._told else now
            try:
                pulse = await self._pulse.heartbeat(
                    list(self._live), wait_s, self._timing.call_timeout_s, news
                )
                self._introduce(now)
                self._obey(pulse)
            except Unavailable:
                pass  # The outage is logged where it is met; the next beat tries again.
            except TokenRejected:
                raise
            except Refused as refusal:
                log.warning("heartbeat_refused", code=refusal.code, detail=refusal.detail)
                # By a control plane of an earlier release, which does not know offers: it is told of none.
                self._introduce(now)
            with trio.move_on_after(jittered(pause_s, self._rng.random())):
                await self._beat.wait()

    def _introduce(self, offers: tuple[str, ...]) -> None:
        self._told = offers
        self._introduced.set()

    def _obey(self, pulse: Pulse) -> None:
        self._cancel(pulse.cancelled_lease_ids)
        if pulse.status == "stop":
            self.drain("the control plane said stop")
        elif pulse.status == "drain" and self.phase is Phase.WORKING:
            log.info("resting", why="the control plane said drain")
            self._enter(Phase.RESTING)
        elif pulse.status == "ok" and self.phase is Phase.RESTING:
            log.info("working")
            self._enter(Phase.WORKING)

    def _cancel(self, lease_ids: Iterable[str]) -> None:
        for lease_id in lease_ids:
            if live := self._live.get(lease_id):
                live.halt(Halt.CANCELLED, "cancelled by the control plane")
