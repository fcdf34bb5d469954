"""How long events have waited in the last hour, by the labels that they need of a runner."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final

from sexton_storage.records.fleet import Census, LabelDemand

MOST_LABELS: Final = 20
"""Sets of labels that have numbers of their own."""
MINUTES: Final = 60
MINUTE_MS: Final = 60_000

Labels = tuple[str, ...] | None
"""None: every set that has no numbers of its own."""


def most_wanted(demand: Sequence[LabelDemand]) -> dict[Labels, LabelDemand]:
    """Name the ``MOST_LABELS`` sets that want most slots; the others are one.

    >>> wanted = [LabelDemand((), 1, 0, 7), LabelDemand(None, 2, 2, 9)]
    >>> most_wanted([*wanted, *(LabelDemand((f"x{n}",), 1, 1, n) for n in range(20))])[None]
    LabelDemand(required_tags=None, events=3, slots=2, oldest_at=7)
    """
    ordered = sorted(demand, key=lambda one: (one.required_tags is None, -one.slots, -one.events))
    own = [one for one in ordered[:MOST_LABELS] if one.required_tags is not None]
    rest = ordered[len(own) :]
    found: dict[Labels, LabelDemand] = {one.required_tags: one for one in own}
    if rest:
        oldest_at = min((one.oldest_at for one in rest if one.oldest_at is not None), default=None)
        events, slots = sum(one.events for one in rest), sum(one.slots for one in rest)
        found[None] = LabelDemand(None, events, slots, oldest_at)
    return found


class LabelHistory:
    """The last census of each minute, as far as this node has taken one.

    >>> def census(at, *demand):
    ...     return Census(at, 0, None, 0, 0, None, (), demand=demand)
    >>> history = LabelHistory()
    >>> history.note(census(60_000, LabelDemand(("gpu",), 1, 1, 50_000)))
    >>> history.note(census(119_000, LabelDemand(("gpu",), 1, 1, 50_000)))
    >>> history.note(census(185_000))
    >>> {labels: ages[-4:] for labels, ages in history.ages().items()}
    {('gpu',): [None, 69000, None, 0]}
    """

    def __init__(self) -> None:
        self._minutes: deque[tuple[int, Mapping[Labels, int]]] = deque(maxlen=MINUTES)

    def __repr__(self) -> str:
        return f"<LabelHistory of {len(self._minutes)} minutes>"

    def note(self, census: Census) -> None:
        """Keep it, in place of an earlier one of the same minute."""
        minute = census.at // MINUTE_MS
        if self._minutes and self._minutes[-1][0] >= minute:
            self._minutes.pop()
        wanted = most_wanted(census.demand).items()
        ages = {
            labels: max(0, census.at - one.oldest_at) for labels, one in wanted if one.oldest_at is not None
        }
        self._minutes.append((minute, ages))

    def ages(self) -> dict[Labels, list[int | None]]:
        """By labels, how long the oldest had waited that may run, in ms: a number for each of 60 minutes.

        The last is of the newest census. 0: none waited. None: no census was taken.
        """
        if not self._minutes:
            return {}
        first = self._minutes[-1][0] - MINUTES + 1
        known = {minute - first: ages for minute, ages in self._minutes if minute >= first}
        labels = {one for ages in known.values() for one in ages}
        return {
            one: [known[place].get(one, 0) if place in known else None for place in range(MINUTES)]
            for one in sorted(labels, key=lambda one: (one is None, one or ()))
        }
