"""What ends together with an actor's instance: timers, tasks, open replies."""

from __future__ import annotations

import trio

from sexton_engine.mail.deadlines import Deadlines
from sexton_engine.mail.reply import ReplyPort
from sexton_engine.mail.timers import Ring, Timer, Timers

__all__ = ["Attachments"]


class Attachments:
    """Made when an instance first needs one of them; most actors never do."""

    __slots__ = ("deferred", "tasks", "timers")

    def __init__(self) -> None:
        self.timers: Timers | None = None
        self.tasks: set[trio.CancelScope] = set()
        self.deferred: set[ReplyPort] = set()
        """Replies that the actor took over and has not given yet; a settled port leaves the set."""

    def __bool__(self) -> bool:
        return bool(self.timers or self.tasks or self.deferred)

    def timers_of(self, deadlines: Deadlines, ring: Ring) -> Timers:
        """The timers, made on first use."""
        if self.timers is None:
            self.timers = Timers(deadlines, ring)
        return self.timers

    def take_over(self, port: ReplyPort) -> None:
        """Keep the reply until it is given, or the instance ends."""
        if not port.is_expired:
            port.keeper = self.deferred
            self.deferred.add(port)

    def claims(self, timer: Timer) -> bool:
        """Whether the message of this timer is still to be delivered."""
        return self.timers is not None and self.timers.claim(timer)

    def end(self, error: Exception) -> None:
        """Cancel timers and tasks; those who wait for a reply get the error."""
        if self.timers is not None:
            self.timers.cancel_all()
        for scope in list(self.tasks):
            scope.cancel()
        for port in list(self.deferred):
            port.set_exception(error)
