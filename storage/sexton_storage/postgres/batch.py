"""Runs one batch of hot writes inside a transaction that somebody else begins and commits."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple
from uuid import UUID

from sexton_storage.postgres.connection import Connection
from sexton_storage.postgres.hot_claims import claim_events
from sexton_storage.postgres.hot_events import append_events, cancel_events
from sexton_storage.postgres.hot_frames import News, NumberedFrames, check_appends
from sexton_storage.postgres.hot_gates import open_gates, resolve_gates
from sexton_storage.postgres.hot_leases import LeaseWrite, end_events, save_leases
from sexton_storage.writes import (
    AppendEvent,
    AppendFrames,
    CancelEvent,
    ClaimEvent,
    EndLease,
    OpenGate,
    RenewLease,
    ResolveGate,
    Write,
)

# Locks are taken in one order on every node: tenants by id, then heads by id, then lease rows by the
# statements that change them. Two batches that both change a lease lock its tenant or its agent first, so
# they cannot meet crosswise. The mark is the batch's number in the lane's own row: it tells afterwards
# whether this transaction committed.
_MARK = """
WITH marked AS (
    INSERT INTO journal_lanes (id, batch, at) VALUES ($1, $2, sexton_now_ms())
    ON CONFLICT (id) DO UPDATE SET batch = excluded.batch, at = excluded.at
), locked AS (
    SELECT id FROM tenants WHERE {which} ORDER BY id FOR NO KEY UPDATE
)
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8, (SELECT count(*) FROM locked)
"""
_FIRST_OF_RENEWALS = _MARK.format(which="id = ANY($3::uuid[])")
_FIRST = _MARK.format(
    which="""id IN (SELECT unnest($3::uuid[])
                  UNION SELECT tenant_id FROM leases WHERE id = ANY($4::uuid[])
                  UNION SELECT tenant_id FROM agent_heads WHERE zombie_id = ANY($5::uuid[]))"""
)
_HEADS = """
SELECT count(*) FROM (
    SELECT FROM agent_heads
     WHERE zombie_id IN (SELECT unnest($1::uuid[])
                         UNION SELECT zombie_id FROM leases WHERE id = ANY($2::uuid[])
                         UNION SELECT zombie_id FROM gates WHERE id = ANY($3::uuid[]))
     ORDER BY zombie_id FOR NO KEY UPDATE) locked
"""
Numbered = list[tuple[int, Any]]


class BatchMark(NamedTuple):
    """The name of one attempt at a batch: the lane's id and a number that only grows."""

    lane_id: UUID
    number: int


KEYS: Mapping[type, Callable[[Any], Hashable | None]] = {
    RenewLease: lambda write: write.lease.id,
    EndLease: lambda write: write.lease_id,
    AppendEvent: lambda write: None if write.dedup_key is None else (write.event.zombie_id, write.dedup_key),
    ClaimEvent: lambda write: write.zombie_id,
    OpenGate: lambda write: (write.gate.event_id, write.gate.action_id),
    ResolveGate: lambda write: write.gate_id,
    CancelEvent: lambda write: write.event_id,
    AppendFrames: lambda _: None,
}
"""What two writes of one batch must not share, by kind; None when a write may stand beside any other."""


class Batch:
    """The writes of one transaction, sorted by kind; their position is their order of arrival."""

    def __init__(self, writes: Sequence[Write[Any]]) -> None:
        self.answers: list[Any] = [None] * len(writes)
        self.news: News = ()
        self._by_kind: dict[type, Numbered] = {}
        for numbered in enumerate(writes):
            self._by_kind.setdefault(type(numbered[1]), []).append(numbered)
        self._only_renews = self._by_kind.keys() == {RenewLease}
        leases: list[tuple[int, LeaseWrite]] = self._of(RenewLease) + self._of(EndLease)
        self._leases = leases if self._only_renews else sorted(leases, key=itemgetter(0))

    def _of(self, kind: type) -> Numbered:
        return self._by_kind.get(kind, [])

    async def begin(self, connection: Connection, mark: BatchMark) -> float:
        """Leave the mark and lock; gives the database's clock in ms."""
        tenants = list({w.lease.tenant_id for _, w in self._of(RenewLease)})
        if self._only_renews:
            return float(await connection.fetchval(_FIRST_OF_RENEWALS, *mark, tenants))
        leases = [w.lease_id for _, w in self._of(EndLease)]
        zombies = [w.zombie_id for _, w in self._of(ClaimEvent)]
        clock = await connection.fetchval(_FIRST, *mark, tenants, leases, zombies)
        await self._lock_heads(connection)
        return float(clock)

    async def _lock_heads(self, connection: Connection) -> None:
        zombies = [
            *(w.event.zombie_id for _, w in self._of(AppendEvent)),
            *(w.gate.zombie_id for _, w in self._of(OpenGate)),
            *(w.zombie_id for kind in (ClaimEvent, CancelEvent, AppendFrames) for _, w in self._of(kind)),
        ]
        leases = [w.lease_id for _, w in self._of(EndLease)]
        await connection.fetchval(_HEADS, zombies, leases, [w.gate_id for _, w in self._of(ResolveGate)])

    async def run(self, connection: Connection) -> None:
        """Run all statements; afterwards every write has its answer.

        The order of kinds is one that lets the most succeed: what frees an agent or an event comes before
        what wants it. All of them are under way at once, so any order is a true one; frames alone keep the
        order of arrival.
        """
        frames, answers = NumberedFrames(), self.answers
        if self._leases:
            ends = await save_leases(connection, self._leases, answers)
            if ends:
                await end_events(connection, ends, answers)
                for ord_, write, _ in ends:
                    frames.add(ord_, write.frames)
        if cancels := self._of(CancelEvent):
            await cancel_events(connection, cancels, answers, frames)
        if resolutions := self._of(ResolveGate):
            await resolve_gates(connection, resolutions, answers, frames)
        if gates := self._of(OpenGate):
            await open_gates(connection, gates, answers, frames)
        if appends := self._of(AppendEvent):
            await append_events(connection, appends, answers, frames)
        if claims := self._of(ClaimEvent):
            await claim_events(connection, claims, answers, frames)
        if activity := self._of(AppendFrames):
            await check_appends(connection, activity, answers, frames)
        self.news = await frames.save(connection)
