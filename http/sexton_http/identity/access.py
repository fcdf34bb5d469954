"""Has tokens asked about again, on every node, when what a person, a key or a sign-in may do has changed."""

from collections.abc import Callable, Sequence
from uuid import UUID

from sexton_http.wire.stop_signal import Stop
from sexton_storage.signals import Signal, Signals, Topic

Forget = Callable[[frozenset[UUID]], None]


class AccessChanges:
    """Tokens that depend on such an id are forgotten, and what was opened with them ends.

    Nothing is decided here: whoever comes again is looked up, and let in or refused by what the rows say.
    """

    def __init__(self, signals: Signals) -> None:
        self._signals = signals
        self._forgets: list[Forget] = []
        self._watched: dict[UUID, list[Stop]] = {}
        signals.listen(self._hear)

    def __repr__(self) -> str:
        return f"<AccessChanges, {len(self._watched)} watched>"

    def on_change(self, forget: Forget) -> None:
        """Call ``forget`` with the ids, at once on this node and soon after a change on another."""
        self._forgets.append(forget)

    def tell(self, *ids: UUID) -> None:
        """Say that a change of these was committed: here and to the other nodes."""
        self._apply(frozenset(ids))
        self._signals.send(*(Signal(Topic.ACCESS, one) for one in ids))

    def watch(self, ids: Sequence[UUID]) -> Stop:
        """Set when one of them changes. Give it back to ``unwatch``."""
        stop = Stop()
        for one in ids:
            self._watched.setdefault(one, []).append(stop)
        return stop

    def unwatch(self, ids: Sequence[UUID], stop: Stop) -> None:
        for one in ids:
            stops = self._watched[one]
            stops.remove(stop)
            if not stops:
                del self._watched[one]

    def _hear(self, signals: Sequence[Signal]) -> None:
        ids = frozenset(signal.id for signal in signals if signal.topic is Topic.ACCESS)
        if ids:
            self._apply(ids)

    def _apply(self, ids: frozenset[UUID]) -> None:
        for forget in self._forgets:
            forget(ids)
        for one in ids:
            for stop in tuple(self._watched.get(one, ())):
                stop.set()
