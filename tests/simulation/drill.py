"""Plants faults in the product, one at a time, and tells which judge notices each at which seed.

Run as a program it prints the table: ``python -m tests.simulation.drill``.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.decisions import append, claim, gates, renew
from sexton_storage.memory import apply_leases
from sexton_storage.memory.reads import MemoryLeases
from sexton_storage.memory.tables import Tables
from sexton_storage.records.gates import GateStatus
from sexton_storage.refusals import LEASED, Lost
from tests.simulation.product.judges import Broken
from tests.simulation.product.life import Size, lasting, live

MOST_SEEDS: Final = 200


class Fault(NamedTuple):
    """What is put into which place; ``make`` is given what was there."""

    says: str
    owner: Any
    name: str
    make: Callable[[Any], Any]


def _never_seen(_: Any) -> Any:
    return lambda *_: None


def _leased_again(held_back: Any) -> Any:
    def changed(*asked: Any) -> Any:
        reason = held_back(*asked)
        return None if reason == LEASED else reason

    return changed


def _same_token(new_lease: Any) -> Any:
    return lambda write, row, *, token: new_lease(write, row, token=max(1, token - 1))


def _no_fence(_: Any) -> Any:
    def changed(lease: Any, write: Any, clock: int) -> Lost | None:
        del write, clock
        return Lost("gone") if lease is None else None

    return changed


def _twice(charge: Any) -> Any:
    def changed(lease: Any, part: Any, tenant: Any, spent: Any, now: int) -> Any:
        return charge(lease, part, charge(lease, part, tenant, spent, now).tenant, spent, now)

    return changed


def _again(resolve: Any) -> Any:
    def changed(rows: Any, write: Any) -> Any:
        gate = rows.gate
        pending = None if gate is None else replace(gate, status=GateStatus.PENDING)
        return resolve(replace(rows, gate=pending), write)

    return changed


def _nothing_expired(_: Any) -> Any:
    async def changed(self: Any, *, limit: int) -> list[UUID]:
        del limit
        await self._round_trip()
        return []

    return changed


def _newest_first(received: Any) -> Any:
    return lambda tables, agent: received(tables, agent)[::-1]


FAULTS: Final = (
    Fault("a delivery that comes again is another event", append, "seen", _never_seen),
    Fault("an agent is leased although it is leased", claim, "held_back", _leased_again),
    Fault("the fencing token does not grow", claim, "new_lease", _same_token),
    Fault("what has ended can be ended again", apply_leases, "may_end", _no_fence),
    Fault("a renewal debits twice", renew, "charge", _twice),
    Fault("a gate is decided again", gates, "resolve_gate", _again),
    Fault("nobody looks for dead runners", MemoryLeases, "expired", _nothing_expired),
    Fault("the newest event goes first", Tables, "received", _newest_first),
)


@contextmanager
def planted(fault: Fault) -> Iterator[None]:
    """Have the product do wrong until the end of the block."""
    kept = getattr(fault.owner, fault.name)
    setattr(fault.owner, fault.name, fault.make(kept))
    try:
        yield
    finally:
        setattr(fault.owner, fault.name, kept)


def found(fault: Fault, size: Size, seeds: int = MOST_SEEDS) -> tuple[int, str] | None:
    """The first seed whose judges notice the fault, and which judge that was."""
    for seed in range(seeds):
        with planted(fault):
            try:
                live(seed, size)
            except (Broken, BaseExceptionGroup) as error:
                return seed, _told(error)
    return None


def _told(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error).partition(":")[0] if isinstance(error, Broken) else repr(error)


def main() -> int:
    """1 when a fault was not noticed."""
    missed = 0
    for fault in FAULTS:
        seen = found(fault, lasting(5))
        missed += seen is None
        told = "NOT NOTICED" if seen is None else f"seed {seen[0]}: {seen[1]}"
        sys.stdout.write(f"{fault.says:<50} {told}\n")
        sys.stdout.flush()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
