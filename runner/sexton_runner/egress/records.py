"""What the parts of one run's proxy share, and the account of each connection."""

import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import trio

from sexton_runner.egress.certificates import RunAuthority
from sexton_runner.egress.meter import Meter
from sexton_runner.egress.names import Names
from sexton_runner.egress.policy import Policy
from sexton_runner.egress.refusals import Refusal
from sexton_runner.egress.seen import Answer, Asked, Seen, Verdict
from sexton_runner.egress.streams import Pulse, ServerStream
from sexton_runner.redact import Redactor

Observe = Callable[[Seen], None]
Ask = Callable[[Asked], Awaitable[Answer]]


class Roots:
    """The authorities that servers are verified against: the system's, and those of the operator's file."""

    def __init__(self, extra: Path | None) -> None:
        self._extra = extra
        self._context: ssl.SSLContext | None = None

    def context(self) -> ssl.SSLContext:
        """Read them once, when they are needed first: that takes 50 ms. Raises ``OSError``."""
        if self._context is None:
            context = ssl.create_default_context()
            if self._extra is not None:
                context.load_verify_locations(self._extra)
            context.set_alpn_protocols(["http/1.1"])
            self._context = context
        return self._context


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What all connections of a run share."""

    policy: Policy
    meter: Meter
    names: Names
    authority: RunAuthority
    roots: Roots
    redactor: Redactor
    observe: Observe
    ask: Ask | None


@dataclass(slots=True, kw_only=True)
class Record:
    """The account of one request, or of one tunnel: told once, when it ends."""

    run: Run
    seen: Seen = field(default_factory=lambda: Seen(verdict=Verdict.ALLOWED))
    server: ServerStream | None = None
    began: float = field(default_factory=trio.current_time)
    told: bool = False
    _bytes_before: tuple[int, int] = (0, 0)

    def note(self, *, host: str = "", port: int = 0, method: str = "", path: str = "") -> None:
        """Add what is known by now."""
        self.seen = replace(self.seen, host=host, port=port, method=method, path=path)

    def reach(self, server: ServerStream, address: str) -> None:
        """Count what goes to this server and comes from it, from now on."""
        self.seen = replace(self.seen, address=address)
        self.server = server
        self._bytes_before = server.bytes_in, server.bytes_out

    def finish(self, refusal: Refusal | None = None, why: str = "") -> None:
        """Tell it, unless it was told."""
        if self.told:
            return
        self.told = True
        before_in, before_out = self._bytes_before
        seen = replace(
            self.seen,
            path=self.run.redactor.text(self.seen.path),
            why=why,
            bytes_in=0 if self.server is None else self.server.bytes_in - before_in,
            bytes_out=0 if self.server is None else self.server.bytes_out - before_out,
            seconds=trio.current_time() - self.began,
        )
        if refusal is not None:
            why = self.run.redactor.text(refusal.why)
            seen = replace(seen, verdict=refusal.verdict, reason=refusal.reason, why=why)
        self.run.observe(seen)

    def drop(self) -> None:
        """Tell nothing: what follows has records of its own."""
        self.told = True


@dataclass(slots=True)
class Connection:
    """One connection of a program. ``record`` is the account that is open."""

    run: Run
    pulse: Pulse
    record: Record

    def begin(self) -> Record:
        """Open the next account."""
        self.record = Record(run=self.run)
        return self.record
