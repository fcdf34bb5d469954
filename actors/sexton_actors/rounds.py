"""The base of actors that do something at intervals, however the last round ended."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from sexton_actors.world import World
from sexton_engine import Actor, Context, MailboxSpec, Message
from sexton_storage.errors import StorageUnavailable


class Round(msgspec.Struct, frozen=True):
    """One thing that an actor does again and again."""

    message: Message[None]
    """Begins the round; its type is the round's name."""
    every_s: float
    work: Callable[[], Awaitable[float | None]]
    """Does it once; the seconds after which to come again, if that is sooner than the interval."""
    first_s: float = 0.0
    """After the start of the actor."""


class RoundsActor(Actor):
    """Sets the next round before it begins this one, so that an outage does not end the rounds.

    A crash takes the timers along; the start of the next instance sets them again.
    """

    mailbox = MailboxSpec(capacity=16)
    transparent = (StorageUnavailable,)

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context)
        self._world = world
        self._rounds = {type(one.message): one for one in self.rounds()}

    def rounds(self) -> Sequence[Round]:
        """What this actor does, and how often; asked once."""
        raise NotImplementedError

    def on_start(self) -> None:
        """Begin all rounds."""
        for one in self._rounds.values():
            self._come(one, one.first_s)

    async def on_receive(self, message: Any) -> Any:
        """One round. An actor that is told other things too has its own dispatch."""
        await self.come_round(message)

    async def come_round(self, message: Message[None]) -> None:
        """Do the round of this message, after the next is set."""
        one = self._rounds[type(message)]
        self._come(one, one.every_s)
        sooner_s = await one.work()
        if sooner_s is not None:
            self._come(one, sooner_s)

    def come_now(self, message: Message[Any]) -> None:
        """Begin the round of this message as soon as the mailbox allows."""
        self._come(self._rounds[type(message)], 0.0)

    def _come(self, one: Round, after_s: float) -> None:
        self.context.set_timer(type(one.message).__name__, after_s, one.message)
