"""The input and output of every runtime."""

import enum
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sexton_runner.client import ControlPlane
from sexton_runner.frames import Frame
from sexton_runner.lease import LiveLease
from sexton_runner.network import Network, ServerNetwork
from sexton_runner.providers.settings import ModelSettings
from sexton_runner.redact import Redactor
from sexton_runner.sandbox.jobs import Sandbox
from sexton_runner.timing import Clock, Timing
from sexton_runner.tool_settings import ToolSettings
from sexton_runner.transcript import Record, unrecorded


class Outcome(enum.StrEnum):
    """How an event may end."""

    PROCESSED = "processed"
    AGENT_ERROR = "agent_error"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The end of a run, as its report will tell it; texts are redacted already."""

    outcome: Outcome
    failure_reason: str | None = None
    response_text: str = ""
    evidence: dict[str, Any] | None = None
    first_output_ms: int | None = None
    checkpoint: dict[str, Any] | None = None
    """Set by a run that was well but could not finish: the control plane lets another event go on from it."""
    proposals: tuple[dict[str, Any], ...] = ()


def failed(reason: str, text: str) -> Ending:
    """Give the ending of a run that did not get far enough to show anything."""
    return Ending(outcome=Outcome.AGENT_ERROR, failure_reason=reason, response_text=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run in hand.

    ``show`` and ``record`` never wait, ``shown`` waits until stream and transcript have what was shown and
    recorded; ``folder`` is private to the run and removed after it.
    """

    live: LiveLease
    plane: ControlPlane
    sandbox: Sandbox
    timing: Timing
    rng: random.Random
    clock: Clock
    redactor: Redactor
    show: Callable[[Frame], None]
    shown: Callable[[], Awaitable[None]]
    folder: Path
    record: Record = unrecorded
    tools: ToolSettings = field(default_factory=ToolSettings)
    models: ModelSettings = field(default_factory=ModelSettings)
    network: Network | None = None
    """The way out of its sandboxes; None: the agent may reach no host."""
    brought: Path | None = None
    """The folder with the files of its event, which is shown as ``in``; None: there are none."""
    servers: ServerNetwork | None = None
    """The way to the MCP servers that its workspace declares; None: it uses none that has an address."""


Runtime = Callable[[Run], Awaitable[Ending]]
