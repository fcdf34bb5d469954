"""The numbers that are no settings, with their places in the code and what can be chosen instead."""

from types import ModuleType
from typing import Final, NamedTuple

from sexton_actors import terms as actor_terms
from sexton_http.gateway import limits as rates, operations
from sexton_http.wire import timeouts
from sexton_runner import timing
from sexton_storage import terms as storage_terms

_UNITS: Final = (("_MS", 1), ("_S", 1000))
_STEPS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))


class Limit(NamedTuple):
    module: ModuleType
    name: str
    meaning: str
    instead: str
    """What an operator or an agent can choose in its place; empty: it is for the code alone."""

    @property
    def place(self) -> str:
        return f"{self.module.__name__}.{self.name}"

    @property
    def value(self) -> str:
        return spelled(self.name, getattr(self.module, self.name))


LIMITS: Final = (
    Limit(actor_terms, "LEASE_TERM_MS", "How long a lease holds without a renewal.", ""),
    Limit(
        actor_terms,
        "EVENT_CEILING_MS",
        "How long one event may be worked on.",
        "less for a run: `--run-wall-s`, `--run-most`, an agent's `resources.wall`",
    ),
    Limit(
        actor_terms,
        "MAX_ATTEMPTS",
        "Attempts at an event that count, before it is `dead_lettered`.",
        "replay the event",
    ),
    Limit(
        actor_terms,
        "GATE_TIMEOUT_DEFAULT_MS",
        "How long an approval waits for a person.",
        "another time for each rule of an agent: [Manifests](manifests.md)",
    ),
    Limit(actor_terms, "RUN_NANOS_PER_SEC", "Nanos that a second of a run costs.", "a free trial's price"),
    Limit(operations, "MAX_BODY_BYTES", "The largest body of a request.", "files go in parts"),
    Limit(operations, "MAX_WEBHOOK_BYTES", "The largest body of a webhook.", ""),
    Limit(storage_terms, "DEDUP_WINDOW_MS", "How long an `event_id` of a webhook is known.", ""),
    Limit(storage_terms, "KEY_KEEP_MS", "How long an `Idempotency-Key` is known.", ""),
    Limit(storage_terms, "MEMORY_LIMIT", "Entries that one agent remembers.", "`sexton agent forget`"),
    Limit(storage_terms, "CONFIGS_KEPT", "Versions of an agent's files that are kept.", ""),
    Limit(storage_terms, "FOLLOW_UPS_LIMIT", "Follow-ups of one agent that may wait.", ""),
    Limit(storage_terms, "GRANTS_LIMIT", "Services that one agent may have asked for.", ""),
    Limit(storage_terms, "ONLINE_MS", "How long a runner counts as online that says nothing.", ""),
    Limit(actor_terms, "FRAMES_KEEP_MS", "How long frames of a stream can be read again.", ""),
    Limit(actor_terms, "FRAMES_KEEP_COUNT", "As many frames of one agent, at most.", ""),
    Limit(storage_terms, "JOBS_KEEP_MS", "How long a bulk job that is over is known.", ""),
    Limit(
        rates,
        "BURST_S",
        "Seconds' worth of a rate that may come at once.",
        "the rate: `requests_per_second` of a plan",
    ),
    Limit(timeouts, "READ_S", "A request has to arrive whole within this of its first byte.", ""),
    Limit(timeouts, "WRITE_S", "A client that takes no bytes for this long is cut.", ""),
    Limit(timeouts, "KEEP_ALIVE_S", "How long a connection without a request is kept.", "a proxy in front"),
    Limit(timeouts, "GRACE_S", "How long requests have to end once a server was told to stop.", ""),
    Limit(timing, "LEASE_SAFETY_S", "How much sooner than its term a runner gives a lease up.", ""),
)


def spelled(name: str, value: float) -> str:
    """A number with the unit that its name ends with.

    >>> (
    ...     spelled("LEASE_TERM_MS", 30_000),
    ...     spelled("CEILING_MS", 43_200_000),
    ...     spelled("MAX_BODY_BYTES", 2 << 20),
    ... )
    ('30 s', '12 h', '2 MiB')
    >>> spelled("LIMIT", 10_000), spelled("STALL_MS", 2_500), spelled("KEEP_ALIVE_S", 75.0)
    ('10,000', '2.5 s', '75 s')
    """
    for ending, factor in _UNITS:
        if name.endswith(ending):
            return _time(value * factor)
    if name.endswith("_BYTES"):
        size, unit = (value / (1 << 20), "MiB") if value >= 1 << 20 else (value / (1 << 10), "KiB")
        return f"{size:g} {unit}"
    return f"{value:,}"


def _time(ms: float) -> str:
    for length, unit in _STEPS:
        if ms >= length and (unit == "s" or ms % length == 0):
            return f"{ms / length:g} {unit}"
    return f"{ms:g} ms"
