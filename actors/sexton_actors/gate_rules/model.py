"""The gates of one agent as its trigger file declares them."""

from enum import StrEnum

import msgspec

MAX_GATE_RULES = 64
MAX_ANOMALY_RULES = 8
MAX_PATTERNS = 8
"""In all conditions together: each may be looked for in a long text."""
MAX_CHECKS = 16
MAX_GLOB_CHARS = 128
MAX_THRESHOLD_COUNT = 1_000
MAX_THRESHOLD_WINDOW_S = 86_400
MAX_GATE_TIMEOUT_MS = 24 * 3_600_000
DEFAULT_GATE_TIMEOUT_MS = 3_600_000
MAX_CHECK_TIMEOUT_S = 900
DEFAULT_CHECK_TIMEOUT_S = 300
MAX_REPAIR_ATTEMPTS = 5
MAX_COMMAND_CHARS = 4_096


class Behaviour(StrEnum):
    APPROVE = "approve"
    """A person decides."""
    AUTO_KILL = "auto_kill"
    """Nobody is asked: the gate is ``auto_killed`` and the agent paused."""
    DENY = "deny"
    """Nobody is asked: it is not done, and the agent goes on."""


class GateRule(msgspec.Struct, frozen=True):
    """``tool`` and ``action`` are literals or globs (``*`` only); a ``condition`` must hold too."""

    tool: str
    action: str
    behavior: Behaviour
    condition: str | None = None


class AnomalyRule(msgspec.Struct, frozen=True):
    """The same tool and action ``threshold_count`` times within ``threshold_window_s`` seconds."""

    pattern: str
    threshold_count: int
    threshold_window_s: int


class Check(msgspec.Struct, frozen=True):
    """A command run in the sandbox once the agent says that it is done; a failure goes back to it."""

    name: str
    command: str
    timeout_s: int = DEFAULT_CHECK_TIMEOUT_S
    repair_attempts: int = 0


class Gates(msgspec.Struct, frozen=True):
    rules: tuple[GateRule, ...] = ()
    anomaly_rules: tuple[AnomalyRule, ...] = ()
    timeout_ms: int = DEFAULT_GATE_TIMEOUT_MS
    checks: tuple[Check, ...] = ()
