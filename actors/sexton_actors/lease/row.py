"""One lease's row as its actor holds it, with the timer on its deadline."""

from uuid import UUID

from sexton_actors.keys import uuid_key
from sexton_actors.lease.messages import Expire
from sexton_actors.lease.metering import Wait
from sexton_actors.lease.transitions.state import LOST, UNKNOWN, LeaseState
from sexton_actors.refusal import Refusal
from sexton_actors.terms import DEADLINE_SLACK_S
from sexton_actors.world import World
from sexton_engine import Context
from sexton_storage.records import Gate
from sexton_storage.rules import LIVE_LEASE

EXPIRE = Expire()


class LeaseRow:
    """What is known of the row. It may be behind: every write names the version that was seen."""

    __slots__ = ("context", "state", "world")

    def __init__(self, context: Context, world: World) -> None:
        self.context = context
        self.world = world
        self.state: LeaseState | None = None

    def __repr__(self) -> str:
        return f"<LeaseRow {self.context.key} {self.state.lease.status if self.state else 'not loaded'}>"

    @property
    def id(self) -> UUID:
        return uuid_key(self.context)

    def is_live(self) -> bool:
        """Whether it holds its agent, as far as is known here."""
        return self.state is not None and self.state.lease.status in LIVE_LEASE

    async def load(self) -> LeaseState | None:
        """Read it anew; None when there is no such lease, or no longer."""
        found = await self.world.storage.leases.load_with_gates(self.id)
        if found is None:
            self.state = None
            self.context.cancel_timer("deadline")
            return None
        lease, gates = found
        return self.adopt(LeaseState(lease, tuple(wait_of(gate) for gate in gates)))

    async def current(self) -> LeaseState | None:
        """What is known, loaded if nothing is; with a gate pending, the gates are looked at again.

        Another node may have resolved one and had nobody here to tell.
        """
        state = self.state
        if state is None:
            return await self.load()
        if is_waiting(state):
            gates = await self.world.storage.gates.of_lease(state.lease.id)
            state = self.state = LeaseState(state.lease, tuple(wait_of(gate) for gate in gates))
        return state

    def adopt(self, state: LeaseState) -> LeaseState:
        """Take a saved state for the truth, and watch its deadline while there is one."""
        self.state = state
        if state.lease.status in LIVE_LEASE:
            left_s = max(0, state.lease.expires_at - self.world.now_ms()) / 1000
            self.context.set_timer("deadline", left_s + DEADLINE_SLACK_S, EXPIRE)
        else:
            self.context.cancel_timer("deadline")
        return state

    def unknown(self) -> Refusal:
        return Refusal(UNKNOWN, f"There is no lease {self.id}.")

    def raced(self, code: str = LOST) -> Refusal:
        return Refusal(code, f"Lease {self.id} changes hands faster than it can be read.")


def is_waiting(state: LeaseState) -> bool:
    """Whether a gate is pending under it, as far as is known here."""
    return any(wait.until is None for wait in state.waits)


def wait_of(gate: Gate) -> Wait:
    """The time the gate was pending, as metering sees it."""
    return Wait(gate.id, gate.requested_at, gate.updated_at)
