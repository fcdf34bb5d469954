"""One run as its runner sees it: a process that carries it out, says what it used, and how it ended."""

import contextlib
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import orjson
import structlog
import trio

from sexton_runner.errors import TokenRejected
from sexton_runner.lease import Halt, LiveLease
from sexton_runner.providers.faults import ProviderMissing
from sexton_runner.providers.registry import service_of
from sexton_runner.run import failed
from sexton_runner.run_folder import remove_folder
from sexton_runner.sandbox.cgroup import PREFIX, Group
from sexton_runner.supervisors.launcher import Launcher
from sexton_runner.supervisors.messages import Job, Over, Pipe, Used, decoded, used

END_S = 5.0
LAST_WORD_S = 2.0  # Beside the time that its frames may take; one that does not speak in time is killed.
NOTHING_TO_SAY = frozenset({Halt.LOST, Halt.PARKED, Halt.GIVEN_BACK})
SESSIONS = "sexton_runner.tools.mcp_session"
SILENCE_S = 60.0  # A supervisor speaks each two seconds; one that is frozen would be renewed for ever.
DIED = (
    "the process that carried out this run was ended: it used more than it may, did not answer, or was killed"
)
log = structlog.get_logger()


class Supervisor:
    """The process of one run. It is believed no further than a message of bounded length can be read."""

    def __init__(self, job: Job, live: LiveLease, pipe: Pipe, pidfd: int) -> None:
        self._job, self._live, self._pipe, self._pidfd = job, live, pipe, pidfd

    async def hear(self) -> Over:
        """Pass on what the run uses until its last word; one that died without it ends ``resource_kill``."""
        over = await self._listen()
        if over is not None:
            return over
        log.error("supervisor_died", lease_id=self._live.lease.lease_id)
        self._live.usage.rest()
        return Over(used=used(self._live.usage), ending=failed("resource_kill", DIED))

    async def _listen(self) -> Over | None:
        while True:
            content = None
            with trio.move_on_after(SILENCE_S):
                content = await self._pipe.receive()
            if content is None:
                return None
            try:
                said = decoded(content)
            except (msgspec.ValidationError, msgspec.DecodeError) as fault:
                log.warning("supervisor_unreadable", lease_id=self._live.lease.lease_id, why=str(fault))
                return None
            if isinstance(said, Over):
                self._adopt(said.used, resting=True)
                return said
            self._adopt(said, resting=said.resting)

    def _adopt(self, said: Used, *, resting: bool) -> None:
        self._live.usage.adopt(said.run_ms, resting=resting, counted=said.counted, fallbacks=said.fallbacks)

    async def stop(self, why: Halt, reason: str, patience_s: float) -> Over | None:
        """Have the run stopped; None when its process has nothing more to say, or not in time."""
        with trio.move_on_after(LAST_WORD_S + (0.0 if why in NOTHING_TO_SAY else patience_s)):
            with contextlib.suppress(trio.BrokenResourceError):
                await self._pipe.send(orjson.dumps({"why": why.value, "reason": reason}))
            return await self._listen()
        log.warning("supervisor_silent", lease_id=self._live.lease.lease_id)
        return None

    async def end(self) -> None:
        """End the process and clear away what it could not; bounded, and not cancellable."""
        with trio.CancelScope(shield=True):
            await self._pipe.aclose()
            with trio.move_on_after(END_S):
                # Whoever has said the last word has cleared away before, and has nothing left to do.
                self._kill()
                await trio.lowlevel.wait_readable(self._pidfd)
            os.close(self._pidfd)
            await self._clear_away()

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    async def _clear_away(self) -> None:
        # Of a run that ended in order nothing is left, and this finds nothing.
        sandbox = self._job.outfit.sandbox
        parents = () if sandbox.layout is None else sandbox.layout.parents
        for parent in parents:
            for folder in parent.glob(f"{PREFIX}{sandbox.name}-{self._live.lease.lease_id}*"):
                await Group((folder,)).empty()
        if self._job.folder.exists():
            await trio.to_thread.run_sync(remove_folder, self._job.folder)


@asynccontextmanager
async def open_supervisor(launcher: Launcher, job: Job, live: LiveLease) -> AsyncIterator[Supervisor]:
    """Start a process for the run; on the way out it has ended. Raises ``NotStarted``."""
    pipe, pidfd = await launcher.fork(_modules(job))
    supervisor = Supervisor(job, live, pipe, pidfd)
    try:
        with contextlib.suppress(trio.BrokenResourceError):  # It has died already; whoever hears it is told.
            await pipe.send(job.pack())
        yield supervisor
    finally:
        await supervisor.end()


def refused(over: Over) -> None:
    """Raise ``TokenRejected`` when the control plane has refused the token that the run used."""
    if over.refusal is not None:
        raise TokenRejected(over.refusal.status, over.refusal.code, over.refusal.detail)


def _modules(job: Job) -> list[str]:
    """Name what is slow to import and needed by this run, and so by others like it."""
    policy = job.lease.policy
    found = [SESSIONS] if job.outfit.tools.mcp_servers or policy.mcp_servers else []
    providers = [policy.provider, *(one.provider for one in policy.fallbacks)]
    for provider in providers if job.lease.runtime == "agent" else ():
        with contextlib.suppress(ProviderMissing):
            found.append(service_of(provider or "", job.outfit.models.addresses).dialect.module)
    return list(dict.fromkeys(found))
