"""Records what single actors handle, while somebody looks.

Whoever is recorded has a handler of its own in place of its class's. So nobody else's messages pass one line
of this, and nothing is tested for each message.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from types import CoroutineType
from typing import Any, Final, Protocol

from sexton_engine.actor import Actor
from sexton_engine.mail.deadlines import NEVER, Deadlines
from sexton_engine.mail.mailbox import Envelope
from sexton_engine.statistics import HandledMessage

__all__ = ["RECORDED", "RECORDINGS_MAX", "Recordings"]

RECORDED: Final = 50
"""Messages that are kept of an actor."""
RECORDINGS_MAX: Final = 32
"""Actors that are recorded at a time; one more takes the place of the one looked at longest ago."""
HANDLER: Final = "on_receive"


class _Activation(Protocol):
    """The part of a cell that is needed here."""

    @property
    def kind(self) -> str: ...
    @property
    def key(self) -> Hashable: ...

    current: Envelope | None


class _Note:
    """A message as it is being handled."""

    __slots__ = ("began_at", "failed", "message", "sent_at", "took_s")

    def __init__(self, message: Any, sent_at: float, began_at: float) -> None:
        self.message = message
        self.sent_at = sent_at
        self.began_at = began_at
        self.took_s: float | None = None
        self.failed = False

    def handled(self) -> HandledMessage:
        waited_s = max(0.0, self.began_at - self.sent_at)
        return HandledMessage(self.message, self.began_at, waited_s, self.took_s, self.failed)


class _Recording:
    """The messages of one address, until nobody looks any more."""

    __slots__ = ("_clock", "_forget", "actor", "due", "notes", "until")

    def __init__(self, clock: Callable[[], float], until: float, forget: Callable[[], None]) -> None:
        self._clock = clock
        self._forget = forget
        self.notes: deque[_Note] = deque(maxlen=RECORDED)
        self.actor: Actor | None = None
        self.due = self.until = until

    def fire(self, now: float) -> float | None:
        """End it, unless somebody has looked meanwhile."""
        if self.until > now:
            return self.until
        self.due = NEVER
        self.leave()
        self._forget()
        return None

    def follow(self, cell: _Activation, actor: Actor) -> None:
        """Replace this instance's handler by one that notes."""
        self.leave()
        handle = actor.on_receive

        def on_receive(message: Any) -> Any:
            note = self._begin(cell, message)
            try:
                reply = handle(message)
            except BaseException:
                self._end(note, failed=True)
                raise
            if type(reply) is CoroutineType:
                return self._await(reply, note)
            self._end(note)
            return reply

        setattr(actor, HANDLER, on_receive)
        self.actor = actor

    def leave(self) -> None:
        """Give the instance its own handler back."""
        if self.actor is not None:
            vars(self.actor).pop(HANDLER, None)
            self.actor = None

    def _begin(self, cell: _Activation, message: Any) -> _Note:
        now = self._clock()
        envelope = cell.current
        note = _Note(message, now if envelope is None else envelope.sent_at, now)
        self.notes.append(note)
        return note

    def _end(self, note: _Note, *, failed: bool = False) -> None:
        note.took_s = self._clock() - note.began_at
        note.failed = failed

    async def _await(self, coroutine: CoroutineType[Any, Any, Any], note: _Note) -> Any:
        failed = True
        try:
            reply = await coroutine
            failed = False
        finally:
            self._end(note, failed=failed)
        return reply


class Recordings:
    """All recordings of one system, by address."""

    __slots__ = ("_by_address", "_clock")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._by_address: dict[tuple[str, Hashable], _Recording] = {}

    def __len__(self) -> int:
        return len(self._by_address)

    def follow(self, cell: _Activation, actor: Actor) -> None:
        """A new instance is there: it is recorded too, if its address is."""
        if self._by_address:
            recording = self._by_address.get((cell.kind, cell.key))
            if recording is not None:
                recording.follow(cell, actor)

    def look(
        self, cell: _Activation, actor: Actor | None, for_s: float, deadlines: Deadlines
    ) -> list[HandledMessage]:
        """What was recorded of the address, newest first; it goes on for ``for_s`` seconds from now."""
        address = (cell.kind, cell.key)
        until = self._clock() + for_s
        recording = self._by_address.get(address)
        if recording is None:
            if len(self._by_address) >= RECORDINGS_MAX:
                self._make_room(deadlines)
            recording = _Recording(self._clock, until, lambda: self._forget(address))
            self._by_address[address] = recording
            deadlines.arm(recording)
        recording.until = max(recording.until, until)
        if actor is not None and recording.actor is not actor:
            recording.follow(cell, actor)
        return [note.handled() for note in reversed(recording.notes)]

    def _make_room(self, deadlines: Deadlines) -> None:
        address, oldest = min(self._by_address.items(), key=lambda one: one[1].until)
        oldest.leave()
        deadlines.cancel(oldest)
        self._forget(address)

    def _forget(self, address: tuple[str, Hashable]) -> None:
        self._by_address.pop(address, None)
