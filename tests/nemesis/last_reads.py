"""Reads all rows once faults have healed, under the names that the checker knows."""

from __future__ import annotations

from typing import Any, Final

import trio

from tests.nemesis.recorder import Recorder
from tests.worlds.synchronous_pair import Machine

OPEN: Final = """
SELECT count(*) FROM events WHERE status NOT IN ('processed', 'agent_error', 'cancelled', 'dead_lettered')
"""
EVENTS: Final = """
SELECT id::text AS event, zombie_id::text AS agent, status, charged_nanos AS charged,
       coalesce(request_json::json -> 'raw' ->> 'nemesis',
                substring(request_json::json ->> 'message' FROM '^nemesis (.*)$')) AS delivery
  FROM events
"""
LEASES: Final = """
SELECT zombie_id::text AS agent, fencing_token AS token, event_id::text AS event, status,
       granted_at AS granted, ended_at AS ended
  FROM leases
"""
GATES: Final = "SELECT id::text AS gate, event_id::text AS event, action_id AS action, status FROM gates"
METERING: Final = "SELECT event_id::text, attempt, slice_seq, charged_nanos FROM metering"
BALANCE: Final = "SELECT balance_nanos FROM tenants WHERE id = $1"
LOOK_S: Final = 0.5


async def until_all_has_ended(primary: Machine, patience_s: float) -> int:
    """Wait until every event has come to its end, and no longer; gives how many have not."""
    left = int(await primary.ask(OPEN))
    with trio.move_on_after(patience_s):
        while left:
            await trio.sleep(LOOK_S)
            left = int(await primary.ask(OPEN))
    return left


async def read_all(primary: Machine, recorder: Recorder, process: int, tenant: str, given: int) -> None:
    """The last operations of a history. ``given``: the tenant's balance before the first event."""
    for name, query in (("events", EVENTS), ("leases", LEASES), ("gates", GATES)):
        op = recorder.begin(process, f"read-{name}", {})
        recorder.ok(op, {"rows": [dict(row) for row in await primary.rows(query)]})
    op = recorder.begin(process, "read-money", {})
    metering: list[Any] = [list(row) for row in await primary.rows(METERING)]
    balance = int(await primary.ask(BALANCE, tenant))
    recorder.ok(op, {"rows": [{"given": given, "balance": balance, "metering": metering}]})
