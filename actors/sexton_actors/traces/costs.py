"""Shares a lease's bill among what it paid for, to the nano."""

from collections.abc import Mapping
from typing import Any

from sexton_actors.traces.spans import count, word
from sexton_storage.records.leases import Lease, ModelShare, Rates

_PER_MTOK = 1_000_000
_PARTS = ("input", "cached_input", "cache_write", "output")


def price_of(lease: Lease, answer: Mapping[str, Any]) -> int:
    """What the tokens of one answer of a model cost by the lease's rates, rounded down; in nanos.

    >>> lease = Lease(*[None] * 7, 1, "reported", 1, 0, 0, 0, 0, Rates(0, 3_000_000, output_nanos_per_mtok=5))
    >>> price_of(lease, {"model": "m", "input_tokens": 2, "output_tokens": 400_000})
    8
    """
    rates = _rates(lease, word(answer, "model"))
    return sum(
        count(answer, f"{part}_tokens") * getattr(rates, f"{part}_nanos_per_mtok") // _PER_MTOK
        for part in _PARTS
    )


def _rates(lease: Lease, model: str) -> Rates | ModelShare:
    for share in lease.shares or ():
        if share.model == model:
            return share
    return lease.rates


class Purse:
    """What is left of a bill. It never gives more than it has, whatever a run says of its tokens.

    >>> purse = Purse(10)
    >>> purse.take(4), purse.take(9), purse.rest()
    (4, 6, 0)
    """

    def __init__(self, nanos: int) -> None:
        self._left = nanos

    def take(self, wanted: int) -> int:
        given = max(0, min(wanted, self._left))
        self._left -= given
        return given

    def rest(self) -> int:
        """All that nobody took: the time, and what rounding has left."""
        left, self._left = self._left, 0
        return left
