"""Reads all rows once faults have healed, a page at a time, under the names that the checker knows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, Protocol
from uuid import UUID

import trio

from tests.nemesis.recorder import Recorder

OPEN: Final = """
SELECT count(*) FROM events WHERE status NOT IN ('processed', 'agent_error', 'cancelled', 'dead_lettered')
"""
EVENTS: Final = """
SELECT id::text AS event, tenant_id::text AS tenant, zombie_id::text AS agent, status,
       charged_nanos AS charged,
       coalesce(request_json::json -> 'raw' ->> 'nemesis',
                substring(request_json::json ->> 'message' FROM '^nemesis (.*)$')) AS delivery
  FROM events WHERE id > $1 AND id <= $2
"""
LEASES: Final = """
SELECT zombie_id::text AS agent, fencing_token AS token, event_id::text AS event, status,
       granted_at AS granted, ended_at AS ended
  FROM leases WHERE event_id > $1 AND event_id <= $2
"""
GATES: Final = """
SELECT id::text AS gate, event_id::text AS event, action_id AS action, status
  FROM gates WHERE event_id > $1 AND event_id <= $2
"""
METERING: Final = """
SELECT event_id::text AS event, attempt, slice_seq AS slice, tenant_id::text AS tenant,
       charged_nanos AS charged
  FROM metering WHERE event_id > $1 AND event_id <= $2
"""
READS: Final = {"events": EVENTS, "leases": LEASES, "gates": GATES, "metering": METERING}
BALANCES: Final = "SELECT id::text AS tenant, balance_nanos AS balance FROM tenants"
PAGE_ENDS: Final = "SELECT id FROM events WHERE id > $1 ORDER BY id OFFSET $2 LIMIT 1"
PAGE: Final = 1_000
"""Events in a page. What belongs to no event is on one of the pages all the same."""
FIRST: Final = UUID(int=0)
LAST: Final = UUID(int=2**128 - 1)
LOOK_S: Final = 0.5


class Primary(Protocol):
    """A database that can be asked for the first value of a query, and for all its rows."""

    async def ask(self, query: str, *args: object) -> Any: ...

    async def rows(self, query: str, *args: object) -> list[Any]: ...


async def until_all_has_ended(primary: Primary, patience_s: float) -> int:
    """Wait until every event has come to its end, and no longer; gives how many have not."""
    left = int(await primary.ask(OPEN))
    with trio.move_on_after(patience_s):
        while left:
            await trio.sleep(LOOK_S)
            left = int(await primary.ask(OPEN))
    return left


async def balances(primary: Primary) -> dict[str, int]:
    """Of each tenant."""
    return {row["tenant"]: row["balance"] for row in await primary.rows(BALANCES)}


async def read_all(primary: Primary, recorder: Recorder, process: int, given: Mapping[str, int]) -> None:
    """The last operations of a history. ``given``: the tenants' balances before the first event."""
    async for begin, end in _pages(primary):
        for name, query in READS.items():
            op = recorder.begin(process, f"read-{name}", {})
            rows: list[Any] = [dict(row) for row in await primary.rows(query, begin, end)]
            recorder.ok(op, {"rows": rows})
    op = recorder.begin(process, "read-money", {})
    left = await balances(primary)
    rows = [{"tenant": tenant, "given": given.get(tenant, 0), "balance": left[tenant]} for tenant in left]
    recorder.ok(op, {"rows": rows})


async def _pages(primary: Primary) -> AsyncIterator[tuple[UUID, UUID]]:
    """Ranges of ids that together hold every one."""
    begin = FIRST
    while (end := await primary.ask(PAGE_ENDS, begin, PAGE - 1)) is not None:
        yield begin, end
        begin = end
    yield begin, LAST
