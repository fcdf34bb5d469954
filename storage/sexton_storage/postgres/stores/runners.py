"""Runners in PostgreSQL."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from sexton_storage.errors import Conflict
from sexton_storage.paging import RUNNER_SORTS, sort_key
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.sql.rows import Rows
from sexton_storage.postgres.sql.schema import ENROLMENTS, RUNNERS
from sexton_storage.postgres.stores.base import Conditions, PostgresStore
from sexton_storage.records.runners import EnrolmentToken, Runner, RunnerChange

CHANGES = Rows(RunnerChange)
_RUNNER = f"SELECT {RUNNERS.columns()} FROM runners"
_USE_UP = """
UPDATE enrolment_tokens SET used_at = sexton_now_ms()
 WHERE token_hash = $1 AND used_at IS NULL AND expires_at > sexton_now_ms() RETURNING true
"""
_OPEN = f"""
SELECT {ENROLMENTS.columns()} FROM enrolment_tokens
 WHERE token_hash = $1 AND used_at IS NULL AND expires_at > sexton_now_ms()
"""
_SAVE = """
UPDATE runners SET admin_state = $3, offers = $4, release = $5, version = $2
 WHERE id = $1 AND version = $2 - 1 RETURNING id
"""


class PostgresRunners(PostgresStore):
    async def enrol(self, runner: Runner, *, enrolment_hash: bytes | None) -> bool:
        async def work(connection: Connection) -> bool:
            if enrolment_hash is not None and not await connection.fetchval(_USE_UP, enrolment_hash):
                return False
            await connection.execute(RUNNERS.insert("runners"), *RUNNERS.values(runner))
            return True

        return await self._database.change(work)

    async def find_by_hash(self, token_hash: bytes) -> Runner | None:
        return RUNNERS.maybe(await self._row(f"{_RUNNER} WHERE token_hash = $1", token_hash))

    async def load(self, runner_id: UUID) -> Runner | None:
        return RUNNERS.maybe(await self._row(f"{_RUNNER} WHERE id = $1", runner_id))

    async def hosts(self, runner_ids: Sequence[UUID]) -> Mapping[UUID, str]:
        rows = await self._rows("SELECT id, host_id FROM runners WHERE id = ANY($1)", list(set(runner_ids)))
        return {row[0]: row[1] for row in rows}

    async def list(self, *, page: int, page_size: int, sort: str) -> tuple[Sequence[Runner], int]:
        field, descends = sort_key(sort, RUNNER_SORTS)
        way = "DESC" if descends else "ASC"
        everyone, order = Conditions("true"), f"{field} {way}, id {way}"
        return await self._page(RUNNERS, "runners", everyone, order, page=page, page_size=page_size)

    async def save(self, runner: Runner, change: RunnerChange | None = None) -> None:
        async def work(connection: Connection) -> bool:
            args = (runner.id, runner.version, runner.admin_state, runner.offers, runner.release)
            if await connection.fetchval(_SAVE, *args) is None:
                return False
            if change is not None:
                await connection.execute(CHANGES.insert("runner_changes"), *CHANGES.values(change))
            return True

        if not await self._database.change(work):
            raise Conflict(f"runner {runner.id} is not at version {runner.version - 1}")

    async def touch(self, seen: Sequence[tuple[UUID, int]]) -> None:
        await self._move_on("runners", "last_seen_at", seen)

    async def mint_enrolment(self, token: EnrolmentToken) -> None:
        values = ENROLMENTS.values(token)
        await self._database.change(lambda c: c.execute(ENROLMENTS.insert("enrolment_tokens"), *values))

    async def open_enrolment(self, token_hash: bytes) -> EnrolmentToken | None:
        return ENROLMENTS.maybe(await self._row(_OPEN, token_hash))
