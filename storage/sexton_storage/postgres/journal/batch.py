"""Runs one batch of hot writes inside a transaction that somebody else begins and commits."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple
from uuid import UUID

from sexton_storage.decisions.audit import has_changed
from sexton_storage.postgres.connections.audit_entries import APPEND, entry_json
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.journal.appends import (
    APPEND_FUNCTION,
    append_at_once,
    append_events,
    goes_alone,
    recall_appends,
)
from sexton_storage.postgres.journal.claims import PREPARE_RESERVE, claim_events, reserve_slots
from sexton_storage.postgres.journal.ends import end_events
from sexton_storage.postgres.journal.events import cancel_events
from sexton_storage.postgres.journal.frames import News, NumberedFrames, check_appends
from sexton_storage.postgres.journal.gates import open_gates, resolve_gates
from sexton_storage.postgres.journal.improvement import PREPARE_SCORES
from sexton_storage.postgres.journal.leases import (
    RENEW_FUNCTION,
    LeaseWrite,
    are_of_one_day,
    recall,
    renew_at_once,
    save_leases,
)
from sexton_storage.postgres.journal.memories import remember_reports
from sexton_storage.postgres.sql.columns import array_literal
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
#
# All that opens a batch goes in one message: while trio is busy, each answer of the database may wait for the
# interpreter's lock as long as one of trio's turns takes. These statements are therefore prepared by name.
_OPENING = """
PREPARE sexton_mark (uuid, bigint) AS
INSERT INTO journal_lanes (id, batch, at) VALUES ($1, $2, sexton_now_ms())
ON CONFLICT (id) DO UPDATE SET batch = excluded.batch, at = excluded.at;

PREPARE sexton_lock_tenants (uuid[]) AS
SELECT FROM tenants WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE;

PREPARE sexton_lock_tenants_of (uuid[], uuid[], uuid[]) AS
SELECT FROM tenants
 WHERE id IN (SELECT unnest($1)
              UNION SELECT tenant_id FROM leases WHERE id = ANY($2)
              UNION SELECT tenant_id FROM agent_heads WHERE zombie_id = ANY($3))
 ORDER BY id FOR NO KEY UPDATE;

PREPARE sexton_lock_heads (uuid[], uuid[], uuid[]) AS
SELECT FROM agent_heads
 WHERE zombie_id IN (SELECT unnest($1)
                     UNION SELECT zombie_id FROM leases WHERE id = ANY($2)
                     UNION SELECT zombie_id FROM gates WHERE id = ANY($3))
 ORDER BY zombie_id FOR NO KEY UPDATE;
"""
PREPARE = f"{_OPENING}{PREPARE_RESERVE}{PREPARE_SCORES}"
"""What a session prepares by name."""
FUNCTIONS = (RENEW_FUNCTION, APPEND_FUNCTION)
"""What a session makes for itself, to keep a batch of one kind in one message."""
Numbered = list[tuple[int, Any]]


class BatchMark(NamedTuple):
    """The name of one attempt at a batch: the lane's id and a number that only grows."""

    lane_id: UUID
    number: int


class Touched(NamedTuple):
    """What keeps a write apart from others of its batch."""

    alone: tuple[Hashable, ...] = ()
    """What no other write of the batch may touch."""
    shared: tuple[Hashable, ...] = ()
    """What others may touch beside it, but none that wants it alone."""


def _touched_by_append(write: AppendEvent) -> Touched:
    zombie_id, firing = write.event.zombie_id, write.firing
    alone: list[Hashable] = [] if write.dedup_key is None else [(zombie_id, write.dedup_key)]
    if firing is not None:
        alone.append((zombie_id, firing.schedule, firing.timezone))
    if write.follow_up_id is not None:
        alone.append(write.follow_up_id)
    by_body = write.body_key is not None and write.body_key != write.dedup_key
    return Touched(tuple(alone), ((zombie_id, write.body_key),) if by_body else ())


TOUCHED: Mapping[type, Callable[[Any], Touched]] = {
    # A number is hashed without a call of Python.
    RenewLease: lambda write: Touched((write.lease.id.int,)),
    EndLease: lambda write: Touched((write.lease_id.int,)),
    AppendEvent: _touched_by_append,
    ClaimEvent: lambda write: Touched((write.zombie_id,)),
    OpenGate: lambda write: Touched(((write.gate.event_id, write.gate.action_id),)),
    ResolveGate: lambda write: Touched((write.gate_id,)),
    CancelEvent: lambda write: Touched((write.event_id,)),
    AppendFrames: lambda _: Touched(),
}


def _array(ids: Iterable[UUID]) -> str:
    """Spell an array of ids for a script; there is nothing in an id to escape."""
    return f"'{array_literal(tuple(ids))}'"


class Batch:
    """The writes of one transaction, sorted by kind; their position is their order of arrival."""

    def __init__(self, writes: Sequence[Write[Any]]) -> None:
        self.answers: list[Any] = [None] * len(writes)
        self._writes: Sequence[Any] = writes
        self.news: News = ()
        self.rest = ""
        """What is left to execute, with its end, when the statements whose answers matter have run."""
        self._by_kind: dict[type, Numbered] = {}
        self._only_renews = set(map(type, writes)) == {RenewLease}
        if self._only_renews:
            self._by_kind[RenewLease] = list(enumerate(writes))
        else:
            for numbered in enumerate(writes):
                self._by_kind.setdefault(type(numbered[1]), []).append(numbered)
        self._only_appends = set(self._by_kind) == {AppendEvent}
        leases: list[tuple[int, LeaseWrite]] = self._of(RenewLease) + self._of(EndLease)
        self._leases = leases if self._only_renews else sorted(leases, key=itemgetter(0))

    def _of(self, kind: type) -> Numbered:
        return self._by_kind.get(kind, [])

    async def begin(self, connection: Connection, mark: BatchMark, lock_ms: int | None = None) -> None:
        """Begin the transaction, leave the mark, and lock, waiting for ``lock_ms`` or as the session does."""
        script = "BEGIN; " if lock_ms is None else f"BEGIN; SET LOCAL lock_timeout = {lock_ms}; "
        script += f"EXECUTE sexton_mark ('{mark.lane_id}', {mark.number})"
        tenants = {w.lease.tenant_id for _, w in self._of(RenewLease)}
        if self._only_renews:
            script += f"; EXECUTE sexton_lock_tenants ({_array(tenants)})"
        else:
            script += self._other_locks(tenants)
        await connection.execute(script)

    def _other_locks(self, tenants: Iterable[UUID]) -> str:
        leases = _array(w.lease_id for _, w in self._of(EndLease))
        claims = [w for _, w in self._of(ClaimEvent)]
        claimed = _array(w.zombie_id for w in claims)
        gates = _array(w.gate_id for _, w in self._of(ResolveGate))
        zombies = _array(
            [
                *(w.event.zombie_id for _, w in self._of(AppendEvent)),
                *(w.gate.zombie_id for _, w in self._of(OpenGate)),
                *(w.zombie_id for kind in (ClaimEvent, CancelEvent, AppendFrames) for _, w in self._of(kind)),
            ]
        )
        locks = (
            f"; EXECUTE sexton_lock_tenants_of ({_array(tenants)}, {leases}, {claimed})"
            f"; EXECUTE sexton_lock_heads ({zombies}, {leases}, {gates})"
        )
        return f"{locks}; {reserve_slots(claims)}" if claims else locks

    @property
    def is_of_one_message(self) -> bool:
        """Whether ``commit_at_once`` does it."""
        if self._only_renews:
            return are_of_one_day(self._writes)
        return self._only_appends and all(map(goes_alone, self._writes))

    async def commit_at_once(self, connection: Connection, mark: BatchMark) -> None:
        """Begin, run and commit, in one message."""
        if self._only_renews:
            await renew_at_once(connection, mark, self._writes, self.answers)
        else:
            self.news = await append_at_once(connection, mark, self._writes, self.answers)

    async def recall(self, connection: Connection) -> None:
        """Find the answers again that came with the commit, and were lost with it."""
        if None not in self.answers:
            return
        if self._only_renews:
            await recall(connection, self._writes, self.answers)
        else:
            self.news = await recall_appends(connection, self._writes, self.answers)

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
                self.rest = await end_events(connection, ends, answers)
                await remember_reports(connection, ends, answers)
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
        asked = [numbered for numbered in appends if numbered[1].audit is not None]
        if cancels or resolutions or asked:
            await self._keep_lines(connection, [*cancels, *resolutions, *asked])

    async def commit(self, connection: Connection) -> None:
        """Run what is left, and commit, in one message."""
        await connection.execute(f"{self.rest}; COMMIT" if self.rest else "COMMIT")

    async def _keep_lines(self, connection: Connection, writes: Numbered) -> None:
        # The last to be locked, and in one order: each waits for commits only, never for each other's rows.
        entries = [w.audit for ord_, w in writes if w.audit is not None and has_changed(self.answers[ord_])]
        for entry in sorted(entries, key=attrgetter("log_id")):
            await connection.execute(APPEND, entry_json(entry))
