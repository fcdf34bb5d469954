"""Holds the answers of those who wait for one gate, each with a timer."""

from typing import Any, Final

from sexton_actors.protocol.gate import Await, AwaitOver, Refresh
from sexton_engine import DEFERRED, Context, ReplyPort
from sexton_storage.records.gates import Gate

WAITERS_MAX: Final = 1024
"""Those who wait for one gate; one more is answered at once with the gate as it is."""


class Waiters:
    """Each is answered once: when the gate is resolved, or when its time is over."""

    __slots__ = ("_context", "_look_every_s", "_tickets", "_waiting")

    def __init__(self, context: Context, look_every_s: float) -> None:
        self._context = context
        self._look_every_s = look_every_s
        self._waiting: dict[int, ReplyPort] = {}
        self._tickets = 0

    def __repr__(self) -> str:
        return f"<Waiters {len(self._waiting)} waiting>"

    def has_room(self) -> bool:
        return len(self._waiting) < WAITERS_MAX

    def add(self, message: Await) -> Any:
        """Hold the answer back, for as long as it says it waits; ``DEFERRED`` is the handler's result."""
        self._tickets += 1
        self._waiting[self._tickets] = self._context.defer()
        self._context.set_timer(self._tickets, message.wait_ms / 1000, AwaitOver(self._tickets))
        if len(self._waiting) == 1:
            self.look_again()
        return DEFERRED

    def look_again(self) -> None:
        """Have the gate read again soon, while somebody waits: another node may resolve it unheard."""
        if self._waiting:
            self._context.set_timer("look", self._look_every_s, Refresh())

    def answer(self, ticket: int, gate: Gate) -> None:
        port = self._waiting.pop(ticket, None)
        self._context.cancel_timer(ticket)
        if port is not None:
            port.set(gate)

    def answer_all(self, gate: Gate) -> None:
        """Nothing more will come of it."""
        self._context.cancel_timer("look")
        for ticket in tuple(self._waiting):
            self.answer(ticket, gate)
