"""The keyed timers of one actor."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final, TypeAlias

from sexton_engine.errors import EngineError
from sexton_engine.mail.deadlines import NEVER, Deadlines

__all__ = ["TIMERS_MAX", "Ring", "Timer", "Timers"]

TIMERS_MAX: Final = 65_536
"""Timers that one actor may have armed at once."""


class Timer:
    """A message that is due; it counts as armed until it is delivered, not only until it has fired."""

    __slots__ = ("due", "fired", "left_s", "message", "name", "placed", "ring")

    def __init__(
        self,
        name: Hashable,
        due: float,
        message: Any,
        ring: Callable[[Timer], None],
        left_s: Callable[[], float] | None = None,
    ) -> None:
        self.name = name
        self.message = message
        self.left_s = left_s
        """Tells the seconds that are left when the time has come; None: there are none."""
        self.ring = ring
        self.due = due
        self.placed = due
        """Where the entry lies in the heap; ``due`` may have moved later."""
        self.fired = False

    def fire(self, now: float) -> float | None:
        """Ring, or find the later place."""
        if self.due <= now and self.left_s is not None:
            self.due = now + _seconds(self.left_s)
        if self.due > now:
            self.placed = self.due
            return self.due
        self.fired = True
        self.ring(self)
        return None


def _seconds(left_s: Callable[[], float]) -> float:
    try:
        return left_s()
    except Exception:  # noqa: BLE001 - it runs in nobody's turn: the message is delivered, and the actor sees
        return 0.0


Ring: TypeAlias = Callable[[Timer], None]
"""Brings the message of a timer that is due to its actor."""


class Timers:
    """By name, at most one armed timer each."""

    __slots__ = ("_armed", "_deadlines", "_ring")

    def __init__(self, deadlines: Deadlines, ring: Ring) -> None:
        self._armed: dict[Hashable, Timer] = {}
        self._deadlines = deadlines
        self._ring = ring

    def __len__(self) -> int:
        return len(self._armed)

    def view(self, now: float) -> list[tuple[str, float]]:
        """Each armed timer with the seconds until it is due, the next first."""
        left = [(str(timer.name), max(0.0, timer.due - now)) for timer in self._armed.values()]
        return sorted(left, key=lambda one: one[1])

    def set(
        self, name: Hashable, due: float, message: Any, left_s: Callable[[], float] | None = None
    ) -> None:
        """Arm, or replace. Moving a deadline later touches no heap."""
        timer = self._armed.get(name)
        if timer is not None and not timer.fired and timer.placed <= due:
            timer.due = due
            timer.message = message
            timer.left_s = left_s
            return
        if timer is not None:
            self._disarm(timer)
        elif len(self._armed) >= TIMERS_MAX:
            msg = f"more than {TIMERS_MAX} timers in one actor"
            raise EngineError(msg)
        timer = self._armed[name] = Timer(name, due, message, self._ring, left_s)
        self._deadlines.arm(timer)

    def cancel(self, name: Hashable) -> None:
        """Disarm; a name that is not armed is fine."""
        timer = self._armed.pop(name, None)
        if timer is not None:
            self._disarm(timer)

    def cancel_all(self) -> None:
        """Disarm every timer."""
        for timer in self._armed.values():
            self._disarm(timer)
        self._armed.clear()

    def claim(self, timer: Timer) -> bool:
        """Whether the timer is still wanted, now that its message is to be handled; it is done with then."""
        if self._armed.get(timer.name) is not timer:
            return False
        del self._armed[timer.name]
        return True

    def _disarm(self, timer: Timer) -> None:
        if timer.fired:
            timer.due = NEVER  # no longer in the heap
        else:
            self._deadlines.cancel(timer)
