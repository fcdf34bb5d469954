"""Keeps the writes of tenants whose rows somebody else holds, apart from all others and in their order."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from sexton_storage.postgres.journal.selection import Waiting, choose

AGAIN_FIRST_S = 0.02
AGAIN_MAX_S = 0.25
"""Pauses between attempts at one tenant's writes: what a tenant costs the others is an attempt for each."""
WORTH_TELLING_S = 1.0
"""Whoever holds a tenant's rows for longer is told of in the log."""


@dataclass(slots=True)
class _Queue:
    writes: deque[Waiting]
    since: float
    next_try: float
    pause: float = AGAIN_FIRST_S
    told: bool = False


class Aside:
    """A queue for each tenant that is blocked. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._queues: dict[UUID, _Queue] = {}
        self.count = 0
        """Writes that wait here."""

    def __contains__(self, tenant_id: UUID | None) -> bool:
        return tenant_id in self._queues

    def __bool__(self) -> bool:
        return bool(self._queues)

    def add(self, tenant_id: UUID, writes: Sequence[Waiting], now: float) -> None:
        """Put writes behind those that wait already."""
        queue = self._queues.get(tenant_id)
        self.count += len(writes)
        if queue is None:
            self._queues[tenant_id] = _Queue(deque(writes), now, now + AGAIN_FIRST_S)
        else:
            queue.writes.extend(writes)

    def due(self, now: float) -> Sequence[UUID]:
        """Tenants whose writes are to be tried again."""
        return [tenant_id for tenant_id, queue in self._queues.items() if queue.next_try <= now]

    def next_try(self) -> float:
        """When the first of them is due."""
        return min((queue.next_try for queue in self._queues.values()), default=float("inf"))

    def peek(self, tenant_id: UUID) -> Waiting:
        return self._queues[tenant_id].writes[0]

    def take(self, tenant_id: UUID, limit: int) -> Sequence[Waiting]:
        """Take a batch of one tenant's writes, in order."""
        queue = self._queues[tenant_id]
        taken, back = choose(deque(), queue.writes, limit)
        queue.writes.extendleft(reversed(back))
        self.count -= len(taken)
        return taken

    def blocked(self, tenant_id: UUID, taken: Iterable[Waiting], now: float) -> bool:
        """Put writes back to the front, to be tried again after a pause that grows.

        True once, when that has gone on long enough to be worth reporting.
        """
        queue = self._queues[tenant_id]
        writes = list(taken)
        queue.writes.extendleft(reversed(writes))
        self.count += len(writes)
        queue.next_try = now + queue.pause
        queue.pause = min(2 * queue.pause, AGAIN_MAX_S)
        tell = not queue.told and now - queue.since >= WORTH_TELLING_S
        queue.told |= tell
        return tell

    def let_go(self, tenant_id: UUID, now: float) -> float:
        """Forget a tenant that is not blocked any more, unless writes of it still wait.

        Gives for how many seconds it had been blocked; 0 when that was not told, or it stays.
        """
        queue = self._queues[tenant_id]
        if queue.writes:
            return 0.0
        del self._queues[tenant_id]
        return now - queue.since if queue.told else 0.0

    def since_before(self, oldest: float) -> Sequence[Waiting]:
        """Take out all that have waited since before ``oldest``."""
        late: list[Waiting] = []
        for queue in self._queues.values():
            late += [w for w in queue.writes if w.since < oldest]
            queue.writes = deque(w for w in queue.writes if w.since >= oldest)
        self.count -= len(late)
        self._queues = {tenant_id: queue for tenant_id, queue in self._queues.items() if queue.writes}
        return late

    def everything(self) -> Sequence[Waiting]:
        return [waiting for queue in self._queues.values() for waiting in queue.writes]
