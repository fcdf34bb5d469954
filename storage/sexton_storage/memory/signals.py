"""Signals of a storage that has no other nodes."""

from collections.abc import Sequence

from sexton_storage.signals import Hear, Signal


class MemorySignals:
    """Keeps what was sent, for tests to look at; ``hear`` is what another node would tell."""

    def __init__(self) -> None:
        self.sent: list[Signal] = []
        self._listeners: list[Hear] = []

    def send(self, *signals: Signal) -> None:
        self.sent = [*self.sent[-1000:], *signals]

    def listen(self, hear: Hear) -> None:
        self._listeners.append(hear)

    def hear(self, signals: Sequence[Signal]) -> None:
        """As if they came from another node."""
        for listener in self._listeners:
            listener(signals)
