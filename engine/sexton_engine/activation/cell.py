"""One activation: an address with its mailbox, and the actor's current instance."""

from __future__ import annotations

from collections.abc import Coroutine, Hashable
from typing import Any, Protocol

import trio

from sexton_engine.activation.attachments import Attachments
from sexton_engine.activation.kind import Kind
from sexton_engine.activation.phase import NO_REQUEST, OVER, SUSPENDED, Phase, Request
from sexton_engine.actor import Actor
from sexton_engine.context import ActorSystem, Context
from sexton_engine.errors import ActorStopped, EngineError, MailboxFull
from sexton_engine.hold import Hold
from sexton_engine.mail.dead_letters import Reason
from sexton_engine.mail.deadlines import NEVER
from sexton_engine.mail.mailbox import Envelope, Mailbox
from sexton_engine.mail.reply import ReplyPort
from sexton_engine.message import Lane
from sexton_engine.pykka_bridge.references import CellRef
from sexton_engine.pykka_bridge.trio_actor import TrioRef

__all__ = ["Cell"]


class Cancellable(Protocol):
    """What is left to be seen of the worker that runs an activation."""

    def cancel(self) -> None: ...


class Cell(Context):
    """At most one worker runs it at a time; that is what makes an actor's messages come one by one.

    This is the side that the engine uses. What the actor itself may do with it is in ``ContextCell``.
    """

    __slots__ = (
        "__weakref__",
        "_ref",
        "actor",
        "attachments",
        "begun",
        "crashed_at",
        "current",
        "due",
        "end_event",
        "failure",
        "held_by",
        "last_active",
        "mailbox",
        "name",
        "of_kind",
        "phase",
        "requested",
        "resume_wanted",
        "scheduled",
        "watchers",
        "watching",
        "worker",
        "worker_task",
    )

    def __init__(self, of_kind: Kind[Cell], key: Hashable) -> None:
        self.of_kind = of_kind
        self.name = key
        self.mailbox = Mailbox(of_kind.mailbox)
        self.phase = Phase.ASLEEP
        self.requested = Request.NONE
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
        self._ref: CellRef | None = None
        self.attachments: Attachments | None = None
        self.watchers: dict[Cell, None] | None = None
        self.watching: set[Cell] | None = None

    def __repr__(self) -> str:
        return f"<Cell {self.of_kind.name}/{self.name} {self.phase.value} {self.mailbox!r}>"

    # --- who it is -------------------------------------------------------------------------------------

    @property
    def kind(self) -> str:
        """The kind under which it is reached."""
        return self.of_kind.name

    @property
    def key(self) -> Hashable:
        """The key under which it is reached."""
        return self.name

    @property
    def system(self) -> ActorSystem:
        """The system it lives in."""
        return self.of_kind.env.system

    @property
    def ref(self) -> TrioRef[Any]:
        """pykka's reference to this activation."""
        if self._ref is None:
            self._ref = CellRef(self.of_kind.env.ids(), self._post_from_pykka, self._is_over)
            if self.actor is not None:
                self._ref.point_at(self.actor)
        return self._ref

    def _is_over(self) -> bool:
        return self.phase is Phase.OVER

    def _post_from_pykka(self, message: Any, port: ReplyPort | None) -> None:
        self.post_quietly(Envelope(message, port, self.of_kind.env.monotonic(), Lane.USER))

    # --- mail ------------------------------------------------------------------------------------------

    def post(self, envelope: Envelope, *, may_wait: bool) -> None:
        """Take mail in; raises ``MailboxFull`` or ``ActorStopped``."""
        if self.phase is OVER or self.of_kind.closed:
            self.of_kind.add_dead_letter(self.name, envelope.message, Reason.STOPPED)
            msg = f"{self.of_kind.name}/{self.name} is stopped"
            raise ActorStopped(msg)
        gone = self.mailbox.offer(envelope, may_wait=may_wait)
        if gone is not None:
            self._turn_away(gone, envelope)
        if not self.scheduled:
            self.wake()

    def _turn_away(self, gone: Envelope, new: Envelope) -> None:
        full = MailboxFull(f"the mailbox of {self.of_kind.name}/{self.name} is full ({self.mailbox!r})")
        if gone is new:
            self.of_kind.add_dead_letter(self.name, gone.message, Reason.REFUSED)
            raise full
        self.of_kind.add_dead_letter(self.name, gone.message, Reason.DROPPED)
        if gone.port is not None:
            gone.port.set_exception(full)

    def post_quietly(self, envelope: Envelope) -> None:
        """Take mail in that nobody stands behind; what cannot be is a dead letter already."""
        try:
            self.post(envelope, may_wait=False)
        except (MailboxFull, ActorStopped) as exc:
            if envelope.port is not None:
                envelope.port.set_exception(exc)

    def count_late_reply(self, reply: Any) -> None:
        """Count a reply that nobody waits for."""
        self.of_kind.add_dead_letter(self.name, reply, Reason.LATE_REPLY)

    # --- turns -----------------------------------------------------------------------------------------

    def wake(self) -> None:
        """Have a worker run it, unless it is suspended, held or over."""
        phase = self.phase
        if self.scheduled or phase is OVER:
            return
        self.of_kind.mail.add(self)
        if phase is SUSPENDED or (self.of_kind.paused and self.requested is NO_REQUEST):
            return
        self.scheduled = True
        self.of_kind.env.schedule(self)

    def rest(self, now: float) -> bool:
        """Note since when there is nothing to do, and give memory back; ``False`` if there is mail."""
        if not self.mailbox.rest():
            return False
        self.scheduled = False
        self.worker = self.worker_task = None
        self.last_active = now
        self.of_kind.mail.discard(self)
        return True

    def instance(self) -> Actor:
        """The actor of an activation that is awake."""
        if self.actor is None:
            raise EngineError(f"{self!r} has no instance")
        return self.actor

    def construct(self) -> Actor:
        """Make a new instance; whatever the factory raises is raised."""
        actor = self.actor = self.of_kind.start(self)
        self.of_kind.mailbox = self.mailbox.spec = actor.mailbox
        self.of_kind.mailbox_known = True
        if self._ref is not None:
            self._ref.point_at(actor)
        self.of_kind.env.recordings.follow(self, actor)
        return actor

    def fire(self, now: float) -> float | None:
        """Put itself to sleep if it has been idle for long enough; else tell when to look again."""
        idle_s = self.of_kind.idle_s
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
        self.request(Request.PASSIVATE)
        return None

    def arm_passivation(self) -> None:
        """Look after ``idle_s`` seconds whether it may be put to sleep; once is enough."""
        env, idle_s = self.of_kind.env, self.of_kind.idle_s
        if idle_s is not None and self.due == NEVER:
            self.due = env.monotonic() + idle_s
            env.deadlines.arm(self)

    def is_idle(self) -> bool:
        """Whether it waits for nothing: no mail, no turn, no timer, task, deferred reply or watch."""
        return not self.scheduled and self.phase is Phase.AWAKE and self.holds_nothing()

    def holds_nothing(self) -> bool:
        """Whether it has no mail and nothing that could bring some by itself."""
        return not (self.mailbox or self.attachments or self.watching)

    # --- requests --------------------------------------------------------------------------------------

    def request(self, request: Request) -> None:
        """Have it done in the next turn, after the message being handled."""
        if self.phase is not Phase.OVER and request > self.requested:
            self.requested = request
            self.wake()

    def interrupt(self, request: Request) -> bool:
        """Have it done now, cancelling what it does; ``False`` if no worker has it: then the caller acts."""
        self.requested = max(request, self.requested)
        if self.worker is None:
            return False
        self.worker.cancel()
        return True

    async def wait_end(self) -> None:
        """Return once the instance is gone: suspended, asleep or over."""
        while self.actor is not None or self.worker is not None or self.requested is not Request.NONE:
            if self.end_event is None:
                self.end_event = trio.Event()
            await self.end_event.wait()

    def announce_end(self) -> None:
        """Wake those in ``wait_end``."""
        if self.end_event is not None:
            event, self.end_event = self.end_event, None
            event.set()

    # --- what ends with the instance -------------------------------------------------------------------

    def attached(self) -> Attachments:
        """What the instance has under way, made on first use."""
        if self.attachments is None:
            self.attachments = Attachments()
        return self.attachments

    def drop_instance(self, error: Exception) -> None:
        """Let go of the instance and what it had under way; those who wait for a reply get the error."""
        self.actor = self.held_by = None
        if self.begun is not None:
            self.begun.close()
            self.begun = None
        attachments, self.attachments = self.attachments, None
        if attachments is not None:
            attachments.end(error)
