"""One lease's row as its actor holds it, with the timer on its deadline."""

from typing import Final
from uuid import UUID

import trio

from sexton_actors.addresses import uuid_key
from sexton_actors.lease.metering import Wait
from sexton_actors.lease.transitions.state import UNKNOWN, LeaseState
from sexton_actors.protocol.lease import Expire
from sexton_actors.refusal import Refusal
from sexton_actors.terms import DEADLINE_SLACK_S
from sexton_actors.world import World
from sexton_engine import Context
from sexton_storage.records.gates import Gate
from sexton_storage.rules import LIVE_LEASE

EXPIRE = Expire()
SHARED_FOR: Final = 4
"""Decisions after a lost race that each read the row first; another lost race begins the count again."""
RACE_PAUSE_S: Final = 0.02
"""What a second lost race waits at most before the next try; each further one waits that much longer."""
RACED: Final = "UZ-API-003"


class LeaseRow:
    """What is known of the row. It may be behind: every write names the version that was seen."""

    __slots__ = ("_shared", "context", "state", "world")

    def __init__(self, context: Context, world: World) -> None:
        self.context = context
        self.world = world
        self.state: LeaseState | None = None
        self._shared = 0

    def __repr__(self) -> str:
        return f"<LeaseRow {self.context.key} {self.state.lease.status if self.state else 'not loaded'}>"

    @property
    def id(self) -> UUID:
        return uuid_key(self.context)

    def is_live(self) -> bool:
        """Whether it holds its agent, as far as is known here."""
        return self.state is not None and self.state.lease.status in LIVE_LEASE

    async def load(self) -> LeaseState | None:
        """Read it again; None when there is no such lease, or no longer."""
        found = await self.world.storage.leases.load_with_gates(self.id)
        if found is None:
            self.state = None
            self.context.cancel_timer("deadline")
            return None
        lease, gates = found
        return self.adopt(LeaseState(lease, tuple(wait_of(gate) for gate in gates)))

    @property
    def is_shared(self) -> bool:
        """Whether another node has written the row of late, so that what is known here may be old."""
        return self._shared > 0

    async def lost_race(self, what: str, tries: int) -> LeaseState | None:
        """Another writer was first, ``tries`` times now: the row as it is after that.

        To read it costs less than to lose: from here on it is read first, until nobody else writes it. The
        pause is random, so that nodes that are asked at the same moment do not meet again and again.
        """
        self._shared = SHARED_FOR
        self.world.meters.races[what] += 1
        if tries > 1:
            part = int(self.world.new_token(2), 16) / 0xFFFF
            await trio.sleep(part * RACE_PAUSE_S * (tries - 1))
        return await self.load()

    async def current(self) -> LeaseState | None:
        """What is known, loaded if nothing is, or if another node writes it too.

        With a gate pending, the gates are looked at again: another node may have resolved one and had nobody
        here to tell.
        """
        state = self.state
        if state is None or self._shared:
            found = await self.load()
            same = state is not None and found is not None and found.lease.version == state.lease.version
            self._shared = self._shared - 1 if same and self._shared else self._shared
            return found
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

    def raced(self) -> Refusal:
        """It may well be held: this is no word about that, only that it is to be asked again."""
        detail = f"Lease {self.id} is written by other nodes faster than it can be read; try again."
        return Refusal(RACED, detail, retry_after_s=1)


def is_waiting(state: LeaseState) -> bool:
    """Whether a gate is pending under it, as far as is known here."""
    return any(wait.until is None for wait in state.waits)


def wait_of(gate: Gate) -> Wait:
    """The time the gate was pending, as metering sees it."""
    return Wait(gate.id, gate.requested_at, gate.updated_at)
