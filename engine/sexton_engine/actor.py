"""The supervised actor: subclass it, and let a spec in the supervision tree start it."""

from __future__ import annotations

from inspect import iscoroutinefunction
from typing import Any, ClassVar

from sexton_engine.context import Context
from sexton_engine.mail.mailbox import MailboxSpec
from sexton_engine.pykka_bridge.trio_actor import TrioActor, TrioRef

__all__ = ["TURN_LIMIT", "Actor"]

TURN_LIMIT = 64
"""Messages that an actor handles before another one has its turn."""


class Actor(TrioActor):
    """Handles one message at a time, of its own mailbox, under a supervisor.

    Hooks and ``on_receive`` are ``def`` or ``async def``. One instance is one life: after a crash the
    supervisor makes a new one, which takes over the mailbox.
    """

    kind: ClassVar[str] = "actor"
    mailbox: ClassVar[MailboxSpec] = MailboxSpec()
    turn_limit: ClassVar[int] = TURN_LIMIT
    transparent: ClassVar[tuple[type[Exception], ...]] = ()
    """Exceptions that are no crash: the asker gets them as they are, and the actor lives on unchanged."""

    answers_at_once: ClassVar[bool] = True
    """Whether ``on_receive`` is a plain function, so that an asker's own task may call it; set by itself."""

    context: Context

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.answers_at_once = not iscoroutinefunction(cls.on_receive)

    def __init__(self, context: Context) -> None:
        # pykka's own __init__ would make an inbox, an event and a UUID for each of 100,000 actors;
        # here the activation stands for all three, and the reference is made when somebody asks for it.
        self.context = context

    @property
    def actor_ref(self) -> TrioRef[Any]:
        """pykka's reference to this activation."""
        return self.context.ref

    @property
    def actor_urn(self) -> str:
        """pykka's name for this activation."""
        return self.context.ref.actor_urn

    @actor_urn.setter
    def actor_urn(self, urn: str) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]  # made late
        msg = f"the engine names this actor, it cannot be {urn}"
        raise AttributeError(msg)

    def __str__(self) -> str:
        return f"{self.context.kind}/{self.context.key}"

    def stop(self) -> None:
        """End this activation after the message being handled."""
        self.context.stop()

    def on_burst_start(self) -> None:
        """Run before the first of many questions that one asker puts to idle actors of this kind at once.

        One of them is told, in whatever state it is. All their handlers follow without anything between.
        """

    def on_burst_end(self) -> None:
        """Run after the last of them, of the same actor: what their handlers gathered can be sent as one."""

    def passivatable(self) -> bool:
        """Whether the idle actor may be put to sleep now; asked each ``idle_s`` seconds while it is idle."""
        return True

    def _stop(self) -> Any:
        self.context.stop()

    def _start_actor_loop(self) -> None:
        msg = f"{type(self).__name__} is supervised: its system starts it when it is needed"
        raise TypeError(msg)
