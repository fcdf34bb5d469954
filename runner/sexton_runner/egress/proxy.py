"""Opens the egress proxy of one run."""

import datetime as dt
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path

import structlog
import trio

from sexton_runner.egress.certificates import RunAuthority
from sexton_runner.egress.meter import Meter, Taken
from sexton_runner.egress.names import Names, Resolve, look_up
from sexton_runner.egress.policy import Policy
from sexton_runner.egress.records import Ask, Connection, Observe, Record, Roots, Run
from sexton_runner.egress.refusals import Refusal, Refused, write_problem
from sexton_runner.egress.seen import Reason, Seen, Verdict
from sexton_runner.egress.sessions import Session
from sexton_runner.egress.streams import Pulse, say_and_close
from sexton_runner.egress.tunnels import Tunnel
from sexton_runner.redact import Redactor

log = structlog.get_logger()

MAX_TURNED_AWAY = 32
"""Connections at a time that are told why there is no place for them; others are just closed."""
TELL_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class Proxy:
    """An open proxy. ``ca_pem`` is the certificate that the run's programs are to trust."""

    ca_pem: bytes
    _meter: Meter

    def statistics(self) -> Taken:
        """Give what the run has taken so far, and which bound it reached."""
        return self._meter.statistics()


@asynccontextmanager
async def open_proxy(
    policy: Policy,
    listener: trio.abc.Listener[trio.SocketStream],
    *,
    observe: Observe,
    ask: Ask | None,
    redactor: Redactor,
    extra_roots: Path | None = None,
    resolve: Resolve = look_up,
) -> AsyncIterator[Proxy]:
    """Serve the programs of one run on ``listener`` until the block ends; then every connection ends.

    ``observe`` is told of each request and connection, and must not wait. ``ask`` is asked before each
    request if the policy inspects them. ``redactor`` learns the secrets of the bindings, and takes all that
    it knows out of the answers. ``extra_roots`` is a file of further authorities in PEM.
    """
    redactor.learn({binding.name: binding.secret for binding in policy.bindings})
    meter = Meter(policy.bounds)
    authority = RunAuthority(dt.datetime.now(dt.UTC))
    run = Run(
        policy=policy,
        meter=meter,
        names=Names(policy, resolve),
        authority=authority,
        roots=Roots(extra_roots),
        redactor=redactor,
        observe=observe,
        ask=ask,
    )
    async with trio.open_nursery() as nursery:
        turned_away = _TurnedAway(run)
        nursery.start_soon(turned_away.tell)
        nursery.start_soon(trio.serve_listeners, partial(_serve, run, turned_away), [listener])
        yield Proxy(authority.ca_pem, meter)
        nursery.cancel_scope.cancel()


class _TurnedAway:
    """Sends away whom there is no place for, and tells of them together: a flood is one line a second."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._open = 0
        self._untold: dict[Reason, tuple[Refusal, int]] = {}
        self._came = trio.Event()

    async def tell(self) -> None:
        """Tell of those who came, once a second while any come; cancelled, of those who came last."""
        try:
            while True:
                await self._came.wait()
                self._came = trio.Event()
                self._tell()
                await trio.sleep(TELL_EVERY_S)
        finally:
            self._tell()

    def _tell(self) -> None:
        untold, self._untold = self._untold, {}
        for refusal, count in untold.values():
            seen = Seen(verdict=refusal.verdict, reason=refusal.reason, why=refusal.why, count=count)
            self._run.observe(seen)

    async def refuse(self, stream: trio.SocketStream, refusal: Refusal) -> None:
        _, count = self._untold.get(refusal.reason, (refusal, 0))
        self._untold[refusal.reason] = refusal, count + 1
        self._came.set()
        if self._open >= MAX_TURNED_AWAY:
            await trio.aclose_forcefully(stream)
            return
        self._open += 1
        try:
            await say_and_close(stream, write_problem(refusal))
        finally:
            self._open -= 1


async def _serve(run: Run, turned_away: _TurnedAway, stream: trio.SocketStream) -> None:
    try:
        run.meter.open_connection()
    except Refused as refused:
        await turned_away.refuse(stream, refused.refusal)
        return
    scope = trio.CancelScope()
    pulse = Pulse(run.meter, scope)
    # Until something is asked there is nothing to tell.
    connection = Connection(run, pulse, Record(run=run, told=True))
    session = Session(connection, stream)
    try:
        with scope:
            await _converse(connection, session, stream)
        if scope.cancelled_caught and not connection.record.told:
            await session.refuse(pulse.refused().refusal)
    except Exception:
        # A fault of the proxy's own ends one connection, never the run.
        log.exception("egress_broken")
        connection.record.finish(_FAULT)
    finally:
        connection.record.finish(why="the run ended")
        run.meter.close_connection()
        await trio.aclose_forcefully(stream)


async def _converse(connection: Connection, session: Session, stream: trio.SocketStream) -> None:
    asked = await session.serve()
    if asked is not None:
        await Tunnel(connection, stream, *asked).serve()


_FAULT = Refusal(
    status=HTTPStatus.INTERNAL_SERVER_ERROR,
    reason=Reason.FAULT,
    why="the egress proxy failed",
    advice="Try again",
    verdict=Verdict.FAILED,
)
