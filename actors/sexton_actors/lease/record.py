"""One lease as its actor holds it, with the gates under it and the timer on its deadline."""

from typing import Final

from sexton_actors.held.record import Held
from sexton_actors.lease.metering import Wait
from sexton_actors.lease.transitions.state import UNKNOWN, LeaseState
from sexton_actors.protocol.lease import Expire
from sexton_actors.refusal import Refusal
from sexton_actors.terms import DEADLINE_SLACK_S
from sexton_storage.records.gates import Gate
from sexton_storage.rules import LIVE_LEASE

EXPIRE: Final = Expire()


class HeldLease(Held[LeaseState]):
    """A lease and the gates that were pending under it."""

    __slots__ = ()

    subject = "The lease"

    def is_live(self) -> bool:
        """Whether it holds its agent, as far as is known here."""
        return self.record is not None and self.record.lease.status in LIVE_LEASE

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
        # Another node may have resolved the gate, and had nobody here to tell.
        return self.record is not None and is_waiting(self.record)

    def adopt(self, record: LeaseState) -> LeaseState:
        """And watch its deadline while there is one."""
        super().adopt(record)
        if record.lease.status in LIVE_LEASE:
            left_s = max(0, record.lease.expires_at - self.world.now_ms()) / 1000
            self.context.set_timer("deadline", left_s + DEADLINE_SLACK_S, EXPIRE)
        else:
            self.context.cancel_timer("deadline")
        return record

    def forget(self) -> None:
        """There is none, or no longer."""
        super().forget()
        self.context.cancel_timer("deadline")


def is_waiting(state: LeaseState) -> bool:
    """Whether a gate is pending under it, as far as is known here."""
    return any(wait.until is None for wait in state.waits)


def wait_of(gate: Gate) -> Wait:
    """The time the gate was pending, as metering sees it."""
    return Wait(gate.id, gate.requested_at, gate.updated_at)
