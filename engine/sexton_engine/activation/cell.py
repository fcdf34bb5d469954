"""One activation: an address with its mailbox, and the actor that lives there now."""

from __future__ import annotations

from collections.abc import Coroutine, Hashable
from enum import Enum, IntEnum
from typing import Any, Final, Protocol, TypeVar

import trio

from sexton_engine.activation.kind import Home
from sexton_engine.actor import Actor
from sexton_engine.context import ActorSystem, Context, Terminated
from sexton_engine.errors import ActorStopped, EngineError, MailboxFull
from sexton_engine.hold import Hold
from sexton_engine.mail.dead_letters import Reason
from sexton_engine.mail.deadlines import NEVER
from sexton_engine.mail.mailbox import Envelope, Mailbox
from sexton_engine.mail.reply import ReplyPort
from sexton_engine.mail.timers import Timer, Timers
from sexton_engine.message import Lane
from sexton_engine.pykka_bridge.references import CellRef
from sexton_engine.pykka_bridge.trio_actor import TrioRef

__all__ = ["AWAKE", "MAY_FINISH", "NO_WISH", "Cell", "Phase", "Wish"]

R = TypeVar("R")


class Phase(Enum):
    """Where an activation is in its life."""

    ASLEEP = "asleep"
    """There is no instance; the next turn makes one."""
    STARTING = "starting"
    AWAKE = "awake"
    STOPPING = "stopping"
    SUSPENDED = "suspended"
    """There is no instance; mail waits until the supervisor has decided."""
    OVER = "over"


class Cancellable(Protocol):
    """What is left to be seen of the worker that runs an activation."""

    def cancel(self) -> None: ...


class Wish(IntEnum):
    """What is wanted of an activation besides its messages; a higher wish overrides a lower one."""

    NONE = 0
    PASSIVATE = 1
    SUSPEND = 2
    """Stop, but keep the mail: a sibling's crash restarts this one too."""
    STOP = 3
    FAIL = 4
    """A child task crashed: crash as well."""
    KILL = 5
    KILL_KEEPING_MAIL = 6


# For what every message passes: in Python 3.11 an enum finds its members by a call.
AWAKE: Final = Phase.AWAKE
OVER: Final = Phase.OVER
NO_WISH: Final = Wish.NONE
MAY_FINISH: Final = Wish.STOP
"""The highest wish that lets what is under way come to its end."""


class Cell(Context):
    """At most one worker runs it at a time; that is what makes an actor's messages come one by one.

    What the actor itself may do with it is in ``ActingCell``.
    """

    __slots__ = (
        "__weakref__",
        "_ref",
        "actor",
        "begun",
        "crashed_at",
        "current",
        "deferred",
        "due",
        "end_event",
        "failure",
        "held_by",
        "home",
        "last_active",
        "mailbox",
        "name",
        "phase",
        "resume_wanted",
        "scheduled",
        "tasks",
        "timers",
        "watchers",
        "watching",
        "wish",
        "worker",
        "worker_task",
    )

    def __init__(self, home: Home[Cell], key: Hashable) -> None:
        self.home = home
        self.name = key
        self.mailbox = Mailbox(home.mailbox)
        self.phase = Phase.ASLEEP
        self.wish = Wish.NONE
        self.actor: Actor | None = None
        self.scheduled = False
        """In the queue of the workers, or with one of them."""
        self.begun: Coroutine[Any, Any, Any] | None = None
        """What a handler handed out instead of a reply, when no worker was there to await it."""
        self.held_by: Hold | None = None
        """Taken by the handler of ``current``. In force, it is the worker too, and it counts as scheduled."""
        self.worker: Cancellable | None = None
        """Cancels what the actor is doing now."""
        self.worker_task: trio.lowlevel.Task | None = None
        self.current: Envelope | None = None
        self.failure: BaseException | None = None
        self.resume_wanted = False
        self.last_active = 0.0
        self.due = NEVER
        self.crashed_at: list[float] | None = None
        """When it was restarted, as far as that counts for the intensity of a family."""
        self.end_event: trio.Event | None = None
        self.deferred: set[ReplyPort] | None = None
        self._ref: CellRef | None = None
        self.tasks: set[trio.CancelScope] | None = None
        self.timers: Timers | None = None
        self.watchers: dict[Cell, None] | None = None
        self.watching: set[Cell] | None = None

    def __repr__(self) -> str:
        return f"<Cell {self.home.kind}/{self.name} {self.phase.value} {self.mailbox!r}>"

    # --- who it is -------------------------------------------------------------------------------------

    @property
    def kind(self) -> str:
        """The kind under which it is reached."""
        return self.home.kind

    @property
    def key(self) -> Hashable:
        """The key under which it is reached."""
        return self.name

    @property
    def system(self) -> ActorSystem:
        """The system it lives in."""
        return self.home.env.system

    @property
    def ref(self) -> TrioRef[Any]:
        """pykka's reference to this activation."""
        if self._ref is None:
            self._ref = CellRef(self.home.env.ids(), self._post_from_pykka, self._is_over)
            if self.actor is not None:
                self._ref.point_at(self.actor)
        return self._ref

    def _is_over(self) -> bool:
        return self.phase is Phase.OVER

    def _post_from_pykka(self, message: Any, port: ReplyPort | None) -> None:
        self.post_quietly(Envelope(message, port, self.home.env.monotonic(), Lane.USER))

    # --- mail ------------------------------------------------------------------------------------------

    def post(self, envelope: Envelope, *, may_wait: bool) -> None:
        """Take mail in; raises ``MailboxFull`` or ``ActorStopped``."""
        if self.phase is OVER or self.home.closed:
            self.home.bury(self.name, envelope.message, Reason.STOPPED)
            msg = f"{self.home.kind}/{self.name} is stopped"
            raise ActorStopped(msg)
        gone = self.mailbox.offer(envelope, may_wait=may_wait)
        if gone is not None:
            self._turn_away(gone, envelope)
        if not self.scheduled:
            self.wake()

    def _turn_away(self, gone: Envelope, new: Envelope) -> None:
        full = MailboxFull(f"the mailbox of {self.home.kind}/{self.name} is full ({self.mailbox!r})")
        if gone is new:
            self.home.bury(self.name, gone.message, Reason.REFUSED)
            raise full
        self.home.bury(self.name, gone.message, Reason.DROPPED)
        if gone.port is not None:
            gone.port.set_exception(full)

    def post_quietly(self, envelope: Envelope) -> None:
        """Take mail in that nobody stands behind; what cannot be is a dead letter already."""
        try:
            self.post(envelope, may_wait=False)
        except (MailboxFull, ActorStopped) as exc:
            if envelope.port is not None:
                envelope.port.set_exception(exc)

    def late(self, reply: Any) -> None:
        """Count a reply that nobody waits for."""
        self.home.bury(self.name, reply, Reason.LATE_REPLY)

    # --- turns -----------------------------------------------------------------------------------------

    def wake(self) -> None:
        """Have a worker run it, unless it is suspended, held or over."""
        phase = self.phase
        if self.scheduled or phase is OVER:
            return
        self.home.mail.add(self)
        if phase is Phase.SUSPENDED or (self.home.held and self.wish is NO_WISH):
            return
        self.scheduled = True
        self.home.env.schedule(self)

    def rest(self, now: float) -> None:
        """Nothing to do: give the memory of the lanes back, and note since when."""
        self.scheduled = False
        self.worker = self.worker_task = None
        self.last_active = now
        self.mailbox.rest()
        self.home.mail.discard(self)

    def instance(self) -> Actor:
        """The actor of an activation that is awake."""
        if self.actor is None:
            raise EngineError(f"{self!r} has no instance")
        return self.actor

    def construct(self) -> Actor:
        """Make a new instance; whatever the factory raises is raised."""
        actor = self.actor = self.home.start(self)
        self.home.mailbox = self.mailbox.spec = actor.mailbox
        self.home.mailbox_known = True
        if self._ref is not None:
            self._ref.point_at(actor)
        return actor

    def fire(self, now: float) -> float | None:
        """Put itself to sleep if it has been idle for long enough; else tell when to look again."""
        idle_s = self.home.idle_s
        if idle_s is None or self.phase is Phase.OVER:
            self.due = NEVER
            return None
        if not self.is_idle():
            return now + idle_s
        if self.last_active + idle_s > now:
            return self.last_active + idle_s
        # Not armed meanwhile: the entry would keep a passivated activation in memory.
        # One that refuses to sleep arms again.
        self.due = NEVER
        self.wish_for(Wish.PASSIVATE)
        return None

    def arm_passivation(self) -> None:
        """Look after ``idle_s`` seconds whether it may be put to sleep; once is enough."""
        env, idle_s = self.home.env, self.home.idle_s
        if idle_s is not None and self.due == NEVER:
            self.due = env.monotonic() + idle_s
            env.deadlines.arm(self)

    def is_idle(self) -> bool:
        """Whether it waits for nothing: no mail, no turn, no timer, task, deferred reply or watch."""
        return not self.scheduled and self.phase is Phase.AWAKE and self.holds_nothing()

    def holds_nothing(self) -> bool:
        """Whether it has no mail and nothing that could bring some by itself."""
        return not (self.mailbox or self.timers or self.tasks or self.deferred or self.watching)

    # --- wishes ----------------------------------------------------------------------------------------

    def wish_for(self, wish: Wish) -> None:
        """Have it done in the next turn, after the message being handled."""
        if self.phase is not Phase.OVER and wish > self.wish:
            self.wish = wish
            self.wake()

    def interrupt(self, wish: Wish) -> bool:
        """Have it done now, cancelling what it does; ``False`` if no worker has it: then the caller acts."""
        self.wish = max(wish, self.wish)
        if self.worker is None:
            return False
        self.worker.cancel()
        return True

    async def wait_end(self) -> None:
        """Return once the instance is gone: suspended, asleep or over."""
        while self.actor is not None or self.worker is not None or self.wish is not Wish.NONE:
            if self.end_event is None:
                self.end_event = trio.Event()
            await self.end_event.wait()

    def tell_end(self) -> None:
        """Wake those in ``wait_end``."""
        if self.end_event is not None:
            event, self.end_event = self.end_event, None
            event.set()

    # --- what dies with the instance ---------------------------------------------------------------------

    def shed(self, error: Exception) -> None:
        """Drop the instance with its timers, tasks and open replies; the askers get the error."""
        self.actor = self.held_by = None
        if self.begun is not None:
            self.begun.close()
            self.begun = None
        if self.timers is not None:
            self.timers.cancel_all()
            self.timers = None
        tasks, self.tasks = self.tasks, None
        for scope in tasks or ():
            scope.cancel()
        deferred, self.deferred = self.deferred, None
        for port in list(deferred or ()):
            port.set_exception(error)

    def take_watchers(self) -> list[Cell]:
        """Those who are to be told of the end; each is handed out once. Its own watches end too."""
        watchers, self.watchers = self.watchers, None
        watching, self.watching = self.watching, None
        for other in watching or ():
            if other.watchers is not None:
                other.watchers.pop(self, None)
        for watcher in watchers or ():
            if watcher.watching is not None:
                watcher.watching.discard(self)
        return list(watchers or ())

    def announce(self, terminated: Terminated) -> None:
        """Tell this watcher."""
        self.post_quietly(Envelope(terminated, None, self.home.env.monotonic(), Lane.SUPERVISION))

    def claims(self, timer: Timer) -> bool:
        """Whether the message of this timer is still to be delivered."""
        return self.timers is not None and self.timers.claim(timer)
