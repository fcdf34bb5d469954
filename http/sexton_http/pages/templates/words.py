"""How the console writes times, sums, ids and states, and how it shows text that comes from outside."""

import unicodedata
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple, Protocol

from sexton_storage.records.configs import ConfigStatus
from sexton_storage.records.events import EventStatus
from sexton_storage.records.gates import GateStatus
from sexton_storage.records.grants import GrantStatus
from sexton_storage.records.insights import SLACK_BAND_MS
from sexton_storage.records.zombies import ZombieStatus

SECOND_MS: Final = 1_000
MINUTE_S: Final = 60
HOUR_S: Final = 3_600
DAY_S: Final = 86_400
KIB: Final = 1024
FIRST_PRINTABLE: Final = 0x20
DELETE: Final = 0x7F
SLACK_BANDS: Final = 6
FIRST_REFUSAL: Final = 400
"""The statuses from here on say no."""
ID_TAIL: Final = 8
"""Characters of an id that a page shows; the first ones of an id that is made by time look all alike."""
_KEPT: Final = frozenset("\n\t")


class Mark(NamedTuple):
    """A state as the console shows it: a shape and a word before the color, which never stands alone."""

    shape: str
    word: str
    tone: str
    """The class of its color: accent, amber, red, green, violet or mute."""


class Band(Protocol):
    """Leases that have about the same time left."""

    @property
    def from_ms(self) -> int: ...

    @property
    def leases(self) -> int: ...


EVENTS: Final[Mapping[str, Mark]] = {
    EventStatus.RECEIVED: Mark("○", "waiting", "mute"),
    EventStatus.WAITING_APPROVAL: Mark("◆", "needs a person", "amber"),
    EventStatus.RUNNING: Mark("●", "running", "accent"),
    EventStatus.PROCESSED: Mark("✓", "done", "green"),
    EventStatus.AGENT_ERROR: Mark("■", "failed", "red"),
    EventStatus.GATE_BLOCKED: Mark("⊘", "denied at a gate", "violet"),
    EventStatus.CANCELLED: Mark("‖", "cancelled", "mute"),
    EventStatus.DEAD_LETTERED: Mark("■", "given up", "red"),
}
GATES: Final[Mapping[str, Mark]] = {
    GateStatus.PENDING: Mark("◆", "needs a person", "amber"),
    GateStatus.APPROVED: Mark("✓", "approved", "green"),
    GateStatus.DENIED: Mark("⊘", "denied", "violet"),
    GateStatus.TIMED_OUT: Mark("⊘", "timed out", "violet"),
    GateStatus.AUTO_KILLED: Mark("■", "ended with its run", "red"),
}
AGENTS: Final[Mapping[str, Mark]] = {
    ZombieStatus.ACTIVE: Mark("✓", "active", "green"),
    ZombieStatus.PAUSED: Mark("‖", "paused by the platform", "amber"),
    ZombieStatus.STOPPED: Mark("‖", "stopped", "mute"),
    ZombieStatus.KILLED: Mark("■", "killed", "red"),
}
RUNNERS: Final[Mapping[str, Mark]] = {
    "online": Mark("●", "online", "accent"),
    "busy": Mark("●", "busy", "accent"),
    "offline": Mark("■", "offline", "red"),
    "cordoned": Mark("‖", "cordoned", "amber"),
    "draining": Mark("‖", "draining", "amber"),
    "drained": Mark("‖", "drained", "mute"),
    "revoked": Mark("⊘", "revoked", "violet"),
}


FAILURES: Final[Mapping[str, Mark]] = {
    "open": Mark("■", "open", "red"),
    "acknowledged": Mark("◆", "acknowledged", "amber"),
    "muted": Mark("‖", "muted", "mute"),
}
DELIVERIES: Final[Mapping[str, Mark]] = {
    "accepted": Mark("✓", "accepted", "green"),
    "duplicate": Mark("✓", "a repeat", "mute"),
    "ignored": Mark("○", "ignored", "mute"),
    "challenge": Mark("✓", "challenge", "mute"),
    "refused": Mark("■", "refused", "red"),
    "replayed": Mark("✓", "replayed", "green"),
}
SCHEDULES: Final[Mapping[str, Mark]] = {
    "active": Mark("✓", "active", "green"),
    "paused": Mark("‖", "paused", "amber"),
    "resting": Mark("○", "rests while its agent or workspace is not active", "mute"),
    "never": Mark("■", "never fires: no time fits", "red"),
}
VERSIONS: Final[Mapping[str, Mark]] = {
    ConfigStatus.DRAFT: Mark("○", "draft", "mute"),
    ConfigStatus.COMPILED: Mark("○", "ready", "accent"),
    ConfigStatus.INVALID: Mark("■", "makes no agent", "red"),
    ConfigStatus.ACTIVE: Mark("✓", "active", "green"),
    ConfigStatus.SUPERSEDED: Mark("‖", "replaced", "mute"),
}
GRANTS: Final[Mapping[str, Mark]] = {
    GrantStatus.PENDING: Mark("◆", "needs a person", "amber"),
    GrantStatus.APPROVED: Mark("✓", "approved", "green"),
    GrantStatus.DENIED: Mark("⊘", "denied", "violet"),
    GrantStatus.REVOKED: Mark("⊘", "revoked", "violet"),
}
JOBS: Final[Mapping[str, Mark]] = {
    "waiting": Mark("○", "waiting", "mute"),
    "running": Mark("●", "running", "accent"),
    "paused": Mark("‖", "paused", "amber"),
    "stopping": Mark("‖", "stopping", "amber"),
    "stopped": Mark("‖", "stopped", "mute"),
    "done": Mark("✓", "done", "green"),
    "failed": Mark("■", "failed", "red"),
}


def mark(marks: Mapping[str, Mark], state: str) -> Mark:
    """A state that has no mark yet is shown by its name.

    >>> mark(EVENTS, "running"), mark(EVENTS, "dreaming")
    (Mark(shape='●', word='running', tone='accent'), Mark(shape='○', word='dreaming', tone='mute'))
    """
    return marks.get(state, Mark("○", state.replace("_", " "), "mute"))


def outcome(status: int) -> Mark:
    """What came of a request.

    >>> outcome(204).word, outcome(404).word
    ('done', 'refused')
    """
    if status < FIRST_REFUSAL:
        return Mark("✓", "done", "green")
    return Mark("⊘", "refused", "violet")


def span(ms: int) -> str:
    """How long something took or takes.

    >>> [span(ms) for ms in (0, 8, 999, 1_400, 64_000, 3_600_000, 90_000_000)]
    ['0 ms', '8 ms', '999 ms', '1.4 s', '1 m 04 s', '1 h 00 m', '1 d 1 h']
    """
    if ms < SECOND_MS:
        return f"{max(ms, 0)} ms"
    seconds = ms // SECOND_MS
    if seconds < MINUTE_S:
        return f"{ms / SECOND_MS:.1f} s"
    if seconds < HOUR_S:
        return f"{seconds // MINUTE_S} m {seconds % MINUTE_S:02} s"
    if seconds < DAY_S:
        return f"{seconds // HOUR_S} h {seconds % HOUR_S // MINUTE_S:02} m"
    return f"{seconds // DAY_S} d {seconds % DAY_S // HOUR_S} h"


def ago(at_ms: int, now_ms: int) -> str:
    """Where a time lies from now, in one unit.

    >>> [ago(0, now) for now in (400, 12_000, 180_000, 7_200_000, 172_800_000)]
    ['now', '12 s ago', '3 m ago', '2 h ago', '2 d ago']
    >>> ago(12_000, 0), ago(1_560_000, 0)
    ('in 12 s', 'in 26 m')
    """
    seconds = abs(now_ms - at_ms) // SECOND_MS
    if not seconds:
        return "now"
    for size, unit in ((DAY_S, "d"), (HOUR_S, "h"), (MINUTE_S, "m"), (1, "s")):
        if seconds >= size:
            count = f"{seconds // size} {unit}"
            return f"{count} ago" if at_ms <= now_ms else f"in {count}"
    raise AssertionError(seconds)


def exact(at_ms: int) -> str:
    """The very time, as the element `time` and its title have it.

    >>> exact(1)
    '1970-01-01T00:00:00.001Z'
    """
    at = datetime.fromtimestamp(at_ms / SECOND_MS, UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at_ms % SECOND_MS:03}Z"


def tail(text: str) -> str:
    """The end of an id, which tells it from its neighbours.

    >>> tail("01a207a3-7aeb-7138-92b1-eec033778c32")
    '33778c32'
    """
    return text[-ID_TAIL:]


def slack_counts(bands: Iterable[Band]) -> list[int]:
    """How many leases have how much left, in bands of 5 s from 0 to 30.

    >>> from sexton_storage.records.insights import SlackBand
    >>> slack_counts([SlackBand(0, 1, 0), SlackBand(20_000, 3, 21_000)])
    [1, 0, 0, 0, 3, 0]
    """
    counts = [0] * SLACK_BANDS
    for band in bands:
        counts[min(band.from_ms // SLACK_BAND_MS, SLACK_BANDS - 1)] += band.leases
    return counts


def size(count: int) -> str:
    """A number of bytes.

    >>> [size(count) for count in (1, 4_096, 1_500_000, 3 * 1024**3)]
    ['1 B', '4.0 KiB', '1.4 MiB', '3.0 GiB']
    """
    if count < KIB:
        return f"{count} B"
    amount = float(count)
    for unit in ("KiB", "MiB", "GiB"):
        amount /= KIB
        if amount < KIB:
            return f"{amount:.1f} {unit}"
    return f"{amount / KIB:.1f} TiB"


def plain(text: str) -> str:
    r"""Text from outside with each control and format character as a mark, so that none acts on the reader.

    >>> plain("a\x1b[31m\u202eb\x00\n")
    'a␛[31m[U+202E]b␀\n'
    """
    if text.isprintable():
        return text
    return "".join(character if character in _KEPT else _shown(character) for character in text)


def _shown(character: str) -> str:
    code = ord(character)
    if code < FIRST_PRINTABLE:
        return chr(0x2400 + code)
    if code == DELETE:
        return "␡"
    if unicodedata.category(character) in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}:
        return f"[U+{code:04X}]"
    return character
