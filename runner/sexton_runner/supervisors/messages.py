"""What a runner and the supervisor of one run say to each other, and the pipe that they say it over."""

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import orjson
import trio

from sexton_runner.egress_settings import EgressSettings
from sexton_runner.lease import Halt, Usage
from sexton_runner.providers.base import Usage as TokenCounts
from sexton_runner.providers.settings import ModelSettings
from sexton_runner.run import Ending
from sexton_runner.sandbox.jobs import Sandbox
from sexton_runner.sandbox.limits import Limits
from sexton_runner.timing import Timing
from sexton_runner.tool_settings import ToolSettings
from sexton_runner.wire import Lease

MAX_MESSAGE_BYTES = 6 << 20  # More than the control plane takes of a report, so no good report is too long.
LENGTH_BYTES = 4
READ_BYTES = 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class Outfit:
    """What every run of one runner is given. The token stays out of ``repr``."""

    base_url: str
    token: str = field(repr=False)
    sandbox: Sandbox
    most: Limits
    """What a run may ask for; one that asks for nothing has the limits of the sandbox."""
    timing: Timing
    images: Path | None = None
    tools: ToolSettings = field(default_factory=ToolSettings)
    models: ModelSettings = field(default_factory=ModelSettings)
    server_cert: Path | None = None
    egress: EgressSettings = field(default_factory=EgressSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One run to be carried out. ``folder`` is for the run alone; ``seed`` spreads its calls in time."""

    lease: Lease
    outfit: Outfit
    folder: Path
    seed: int

    def pack(self) -> bytes:
        """Give the bytes that ``unpack_job`` reads."""
        return pickle.dumps(self)


def unpack_job(content: bytes) -> Job:
    """Read a job. Only a supervisor does so, and only from the runner that it belongs to."""
    job = pickle.loads(content)  # noqa: S301 - from the parent, over a pair of sockets that nobody else has
    if not isinstance(job, Job):
        raise TypeError("a supervisor is given a job")
    return job


class Used(msgspec.Struct, frozen=True, tag="used"):
    """What the run has used so far. While it is ``resting`` its time stands still."""

    counted: TokenCounts
    fallbacks: tuple[TokenCounts, ...]
    run_ms: int
    resting: bool


class Refusal(msgspec.Struct, frozen=True):
    """The answer of a control plane that does not accept the runner's token any more."""

    status: int
    code: str
    detail: str


class Over(msgspec.Struct, frozen=True, tag="over"):
    """The last word of a supervisor. Without an ``ending`` the run was stopped, and ``halted`` says why."""

    used: Used
    ending: Ending | None = None
    halted: Halt | None = None
    reason: str = ""
    account: dict[str, Any] | None = None
    refusal: Refusal | None = None


class Stop(msgspec.Struct, frozen=True):
    """The runner's only word after the job: stop the run, and say at once what it has come to."""

    why: Halt
    reason: str


Said = Used | Over


def used(usage: Usage) -> Used:
    """Take the counters of a run."""
    return Used(
        counted=usage.counted(),
        fallbacks=tuple(usage.fallbacks),
        run_ms=usage.run_ms,
        resting=usage.resting,
    )


def encoded(said: Said) -> bytes:
    """Spell a message of a supervisor; raises ``TypeError`` for what JSON cannot hold."""
    fields: Mapping[str, Any] = msgspec.structs.asdict(said)
    return orjson.dumps({"type": said.__struct_config__.tag, **fields}, default=_fields)


def _fields(value: object) -> Any:
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.asdict(value)
    raise TypeError(type(value).__name__)


def decoded(content: bytes) -> Said:
    """Read a message of a supervisor; raises ``msgspec.ValidationError`` or ``msgspec.DecodeError``."""
    said: Said = msgspec.json.decode(content, type=Said)
    return said


def read_stop(content: bytes) -> Stop:
    """Read the runner's word to a supervisor."""
    return msgspec.json.decode(content, type=Stop)


class Pipe:
    """Messages of bounded length over one stream. A receive that is cancelled loses nothing."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream
        self._held = bytearray()
        self._turn = trio.Lock()

    async def send(self, content: bytes) -> None:
        """Send one message; raises ``trio.BrokenResourceError`` when nobody is there."""
        async with self._turn:
            await self._stream.send_all(len(content).to_bytes(LENGTH_BYTES, "big") + content)

    async def receive(self) -> bytes | None:
        """Wait for one message; None at the end, or when the other side speaks nonsense."""
        while True:
            if len(self._held) >= LENGTH_BYTES:
                end = LENGTH_BYTES + int.from_bytes(self._held[:LENGTH_BYTES], "big")
                if end > LENGTH_BYTES + MAX_MESSAGE_BYTES:
                    return None
                if len(self._held) >= end:
                    content = bytes(self._held[LENGTH_BYTES:end])
                    del self._held[:end]
                    await trio.lowlevel.checkpoint()
                    return content
            try:
                piece = await self._stream.receive_some(READ_BYTES)
            except trio.BrokenResourceError:
                return None
            if not piece:
                return None
            self._held += piece

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()
