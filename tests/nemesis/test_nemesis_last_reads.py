"""The last reads of a history find every row, on however many pages."""

import io
import json
from typing import Any

import asyncpg
import pytest

from sexton_storage.portal import Portal, open_portal
from sexton_storage.postgres import open_postgres_storage
from tests.nemesis import last_reads
from tests.nemesis.checker.seen import READS
from tests.nemesis.last_reads import balances, read_all, until_all_has_ended
from tests.nemesis.recorder import Recorder
from tests.worlds.storage import RICH, StorageWorld

EVENTS = 5


class Asked:
    """A database, asked as its machine is."""

    def __init__(self, portal: Portal, dsn: str) -> None:
        self._portal = portal
        self._dsn = dsn

    async def ask(self, query: str, *args: object) -> Any:
        rows = await self.rows(query, *args)
        return rows[0][0] if rows else None

    async def rows(self, query: str, *args: object) -> list[Any]:
        async def ask() -> list[Any]:
            connection = await asyncpg.connect(self._dsn)
            try:
                rows: list[Any] = await connection.fetch(query, *args)
                return rows
            finally:
                await connection.close()

        return await self._portal.run(ask)


@pytest.mark.parametrize("page", [1, 2, EVENTS, 1_000])
async def test_all_rows_are_read_whatever_a_page_holds(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    monkeypatch.setattr(last_reads, "PAGE", page)
    out = io.BytesIO()
    async with open_portal() as portal, open_postgres_storage(postgres_dsn) as storage:
        world = await StorageWorld(storage).found()
        agent = await world.agent()
        events = [await world.append(agent, request_json='{"message": "nemesis d1"}') for _ in range(EVENTS)]
        primary = Asked(portal, postgres_dsn)
        given = await balances(primary)
        left = await until_all_has_ended(primary, 0)
        await read_all(primary, Recorder(out), 0, given)

    entries = [json.loads(line) for line in out.getvalue().splitlines()]
    told = [entry for entry in entries if entry["kind"] == "ok"]
    rows = [row for entry in told if entry["f"] == "read-events" for row in entry["value"]["rows"]]
    [money] = [entry["value"]["rows"] for entry in told if entry["f"] == "read-money"]

    assert left == EVENTS
    assert {entry["f"] for entry in told} == {f"read-{name}" for name in READS}
    assert sorted(row["event"] for row in rows) == sorted(str(event.id) for event in events)
    assert {(row["tenant"], row["agent"], row["delivery"]) for row in rows} == {
        (str(world.tenant_id), str(agent.id), "d1")
    }
    assert money == [{"tenant": str(world.tenant_id), "given": RICH, "balance": RICH}]
