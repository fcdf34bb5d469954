"""One lease as its actor holds it, with the gates under it and the timer on its deadline."""

from typing import Final

from sexton_actors.held.record import Held
from sexton_actors.lease.metering import Wait
from sexton_actors.lease.transitions.state import UNKNOWN, LeaseState
from sexton_actors.protocol.lease import Expire
from sexton_actors.refusal import Refusal
from sexton_actors.terms import DEADLINE_SLACK_S
from sexton_actors.world import World
from sexton_engine import Context
from sexton_storage.records.gates import Gate
from sexton_storage.rules import LIVE_LEASE

EXPIRE: Final = Expire()


class HeldLease(Held[LeaseState]):
    """A lease and the gates that were pending under it."""

    __slots__ = ("_is_watched",)

    subject = "The lease"

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context, world)
        self._is_watched = False
        """Whether the timer is set on its deadline."""

    def is_live(self) -> bool:
        """Whether it holds its agent, as far as is known here."""
        return self.record is not None and self.record.lease.status in LIVE_LEASE

    def seems_over(self) -> bool:
        """Whether its term has passed, as far as is known here; nobody is told so before it is read again."""
        lease = None if self.record is None else self.record.lease
        return lease is not None and lease.status in LIVE_LEASE and lease.expires_at <= self.world.now_ms()

    def unknown(self) -> Refusal:
        return Refusal(UNKNOWN, f"There is no lease {self.id}.")

    async def _read(self) -> LeaseState | None:
        found = await self.world.storage.leases.load_with_gates(self.id)
        if found is None:
            return None
        lease, gates = found
        return LeaseState(lease, tuple(wait_of(gate) for gate in gates))

    def _version(self, record: LeaseState) -> int:
        return record.lease.version

    def _may_have_changed(self, _mark: int) -> bool:
        # Another node may have resolved the gate or renewed the lease, and had nobody here to tell.
        return self.record is not None and (is_waiting(self.record) or self.seems_over())

    def adopt(self, record: LeaseState) -> LeaseState:
        """And watch its deadline while there is one."""
        super().adopt(record)
        if record.lease.status in LIVE_LEASE:
            left_s = self._left_s() or DEADLINE_SLACK_S
            self.context.set_timer("deadline", left_s, EXPIRE, left_s=self._left_s)
            self._is_watched = True
        else:
            self._unwatch()
        return record

    def adopt_renewed(self, record: LeaseState) -> LeaseState:
        """The same after a renewal: the deadline is later, as the timer finds out when it is due."""
        if not self._is_watched or self.freshness.read_at is None:
            return self.adopt(record)
        self.record = record
        return record

    def _left_s(self) -> float:
        """Until it has passed by the database's clock too; 0 when it is over."""
        left_ms = 0 if self.record is None else self.record.lease.expires_at - self.world.now_ms()
        return left_ms / 1000 + DEADLINE_SLACK_S if left_ms > 0 else 0.0

    def rang(self) -> None:
        """The timer is used up: whoever adopts the lease next sets it again."""
        self._is_watched = False

    def _unwatch(self) -> None:
        self._is_watched = False
        self.context.cancel_timer("deadline")

    def forget(self) -> None:
        """There is none, or no longer."""
        super().forget()
        self._unwatch()


def is_waiting(state: LeaseState) -> bool:
    """Whether a gate is pending under it, as far as is known here."""
    return any(wait.until is None for wait in state.waits)


def wait_of(gate: Gate) -> Wait:
    """The time the gate was pending, as metering sees it."""
    return Wait(gate.id, gate.requested_at, gate.updated_at)
