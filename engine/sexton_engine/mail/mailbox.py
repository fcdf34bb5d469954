"""The bounded queue of one actor, in lanes."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from sexton_engine.mail.deadlines import NEVER
from sexton_engine.mail.reply import ReplyPort
from sexton_engine.mail.timers import Timer
from sexton_engine.message import Lane

__all__ = ["SYSTEM_LANE_CAPACITY", "Envelope", "Mailbox", "MailboxSpec", "WhenFull"]

SYSTEM_LANE_CAPACITY: Final = 65_536
"""Messages each of the lanes above the user's holds; then they refuse, whatever the policy."""

USER: Final = Lane.USER


class WhenFull(Enum):
    """What a mailbox without room does with one more message in the user lane."""

    WAIT = "wait"
    """The sender waits, if it can; who cannot wait (``tell``) is refused."""
    REFUSE = "refuse"
    """The new message is refused."""
    DROP_OLDEST = "drop_oldest"
    """The oldest message of the lane makes room; for streams, where the latest matters."""


@dataclass(frozen=True, slots=True)
class MailboxSpec:
    """How much an actor lets wait; ``capacity`` counts the messages of the user lane."""

    capacity: int = 1024
    when_full: WhenFull = WhenFull.REFUSE

    def __post_init__(self) -> None:
        if self.capacity < 1:
            msg = f"a mailbox holds at least one message, not {self.capacity}"
            raise ValueError(msg)


class Envelope:
    """A message with its reply port and its arrival, in seconds on the engine's clock."""

    __slots__ = ("crashes", "lane", "message", "port", "reply", "sent_at", "timer")

    reply: Any
    """What the handler returned, where there is no port for it."""

    def __init__(
        self, message: Any, port: ReplyPort | None, sent_at: float, lane: Lane, timer: Timer | None = None
    ) -> None:
        self.message = message
        self.port = port
        self.sent_at = sent_at
        self.lane = lane
        self.timer = timer
        """The timer it came from, until that is known to be still wanted."""
        self.crashes = 0

    @property
    def is_unanswered(self) -> bool:
        """Whether somebody waits for what the handler returns, without a port."""
        return False

    def open_port(self) -> ReplyPort | None:
        """The reply port, if there is one; made where that was put off."""
        return self.port

    def take_port(self) -> ReplyPort | None:
        """The reply port, for somebody who takes the reply over; there is none afterwards."""
        port, self.port = self.port, None
        return port

    def deadline(self) -> float:
        """When the one who asked runs out of time; ``NEVER`` if nobody did."""
        return NEVER if self.port is None else self.port.deadline

    def __repr__(self) -> str:
        return f"<Envelope {self.message!r} in {self.lane.name}>"


class Mailbox:
    """Three lanes in the order of ``Lane``; each first in, first out.

    A plain data structure: it wakes nobody and reads no clock. The lanes are made when needed
    and dropped by ``rest``, so the mailbox of an idle actor is a few words.
    """

    __slots__ = ("_control", "_supervision", "_user", "peak", "spec", "waiting")

    def __init__(self, spec: MailboxSpec) -> None:
        self.spec = spec
        self.peak = 0
        """The most messages that ever lay in the user lane."""
        self._control: deque[Envelope] | None = None
        self._supervision: deque[Envelope] | None = None
        self._user: deque[Envelope] | None = None
        self.waiting: deque[Envelope] | None = None
        """Envelopes whose senders wait for room."""

    def __len__(self) -> int:
        return sum(len(lane) for lane in (self._control, self._supervision, self._user) if lane is not None)

    def __bool__(self) -> bool:
        return bool(self._user or self._control or self._supervision)

    def __repr__(self) -> str:
        return f"<Mailbox {len(self._user or ())}/{self.spec.capacity}, peak {self.peak}>"

    def offer(self, envelope: Envelope, *, may_wait: bool) -> Envelope | None:
        """Take the envelope in, or let its sender wait for room.

        Returns the envelope that has to go instead: the oldest one, this one itself when it is
        refused, or none.
        """
        if envelope.lane is not USER:
            return self._offer_above(envelope)
        lane = self._user
        if lane is None:
            lane = self._user = deque()
        depth = len(lane)
        if depth >= self.spec.capacity or self.waiting:
            return self._overflow(envelope, lane, may_wait=may_wait)
        lane.append(envelope)
        if depth >= self.peak:
            self.peak = depth + 1
        return None

    def _offer_above(self, envelope: Envelope) -> Envelope | None:
        lane = self._lane(envelope.lane)
        if len(lane) >= SYSTEM_LANE_CAPACITY:
            return envelope
        lane.append(envelope)
        return None

    def _overflow(self, envelope: Envelope, lane: deque[Envelope], *, may_wait: bool) -> Envelope | None:
        match self.spec.when_full:
            case WhenFull.DROP_OLDEST:
                lane.append(envelope)
                return lane.popleft()
            case WhenFull.WAIT if may_wait:
                if self.waiting is None:
                    self.waiting = deque()
                self.waiting.append(envelope)
                return None
            case WhenFull.WAIT | WhenFull.REFUSE:
                return envelope

    def withdraw(self, envelope: Envelope) -> bool:
        """Take back an envelope that still waits for room; ``False`` if it does not."""
        if self.waiting is None or envelope not in self.waiting:
            return False
        self.waiting.remove(envelope)
        return True

    def is_waiting(self, envelope: Envelope) -> bool:
        """Whether the envelope still waits for room."""
        return self.waiting is not None and envelope in self.waiting

    def take(self) -> Envelope | None:
        """The next envelope: of the highest lane that has one, its oldest."""
        lane = self._control
        if lane:
            return lane.popleft()
        lane = self._supervision
        if lane:
            return lane.popleft()
        lane = self._user
        if lane:
            return lane.popleft()
        return None

    def admit(self) -> Envelope | None:
        """Move the first envelope that waits into the lane, if there is room now, and return it.

        Those whose senders have gone meanwhile were never taken in, and are forgotten.
        """
        waiting = self.waiting
        if not waiting or (self._user is not None and len(self._user) >= self.spec.capacity):
            return None
        while waiting:
            envelope = waiting.popleft()
            if envelope.port is None or not envelope.port.is_expired:
                self._lane(Lane.USER).append(envelope)
                return envelope
        return None

    def put_back(self, envelope: Envelope) -> None:
        """Make an envelope that was taken the next of its lane again; it had its room already."""
        self._lane(envelope.lane).appendleft(envelope)

    def drain(self) -> list[Envelope]:
        """Everything, those that wait for room last; the mailbox is empty afterwards."""
        lanes = (self._control, self._supervision, self._user, self.waiting)
        self._control = self._supervision = self._user = self.waiting = None
        return [envelope for lane in lanes if lane is not None for envelope in lane]

    def rest(self) -> bool:
        """Give back the memory of the empty lanes; whether all of them are."""
        if self._user is None and self._control is None and self._supervision is None:
            return True  # of an actor that is asked only while it is idle
        control = self._control = self._control or None
        supervision = self._supervision = self._supervision or None
        user = self._user = self._user or None
        self.waiting = self.waiting or None
        return user is None and control is None and supervision is None

    def oldest_at(self) -> float | None:
        """When the oldest message waiting was sent, in seconds; ``None`` if none waits."""
        lanes = (self._control, self._supervision, self._user)
        return min((lane[0].sent_at for lane in lanes if lane), default=None)

    def _lane(self, lane: Lane) -> deque[Envelope]:
        match lane:
            case Lane.CONTROL:
                if self._control is None:
                    self._control = deque()
                return self._control
            case Lane.SUPERVISION:
                if self._supervision is None:
                    self._supervision = deque()
                return self._supervision
            case Lane.USER:
                if self._user is None:
                    self._user = deque()
                return self._user
