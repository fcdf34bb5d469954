"""Erasures and bulk jobs among the commands that are decided twice: by the rules, and by the statements."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, NamedTuple
from unittest import mock
from uuid import UUID

import trio
from msgspec.structs import replace

from sexton_storage.errors import Conflict
from sexton_storage.event_filter.parse import parse_filter
from sexton_storage.memory.erasures import MemoryErasures
from sexton_storage.memory.faults import Faults
from sexton_storage.memory.jobs import MemoryJobs
from sexton_storage.memory.journal import MemoryJournal
from sexton_storage.postgres.stores.erasures import PostgresErasures
from sexton_storage.postgres.stores.jobs import PostgresJobs
from sexton_storage.records.erasures import OVER, Erasure, ErasureStatus
from sexton_storage.records.jobs import Job, JobKind, JobStatus, Selection
from sexton_storage.records.workspaces import Workspace
from tests.storage.row_texts import PATH, VALUE, request_of, text_of
from tests.storage.row_worlds import World
from tests.worlds.erasure_records import new_erasure

KINDS: Final = (
    "begin erasure",
    *["go on with erasure"] * 4,
    "stop erasure",
    "begin job",
    *["save job"] * 2,
    *["look for events"] * 2,
)
LIMITS: Final = (1, 3, 9)
"""How many of a workspace may be under way: few, so that some are refused."""
SURFACES_MAX: Final = 18
"""An erasure goes on by at most this number of surfaces, so that other commands come in between."""
FILTERS: Final = (
    "after:0",
    "status:received,running",
    "status:processed",
    "-status:agent_error",
    "type:push",
    f'"{VALUE}"',
    f'request.{PATH}:"{VALUE}"',
)
FIRST: Final = (-1, 0)


class Compared(NamedTuple):
    """What a command came to."""

    asked: Any
    found: list[str]
    """Where the two answer differently."""
    answer: str


Run = Callable[[Callable[[Any], Awaitable[Any]]], Awaitable[Any]]
"""Does a piece of work on the connection of the statements."""


class Bulk:
    """The stores of one world, side by side."""

    def __init__(self, world: World, run: Run) -> None:
        self._world = world
        faults, database = Faults(), mock.Mock()

        async def work_on(work: Any, *_: Any, **__: Any) -> Any:
            return await run(work)

        database.change = database.read = work_on
        journal = MemoryJournal(world.tables, faults)
        self._erasures = MemoryErasures(world.tables, faults, journal), PostgresErasures(database)
        self._jobs = MemoryJobs(world.tables, faults, journal), PostgresJobs(database)

    async def compare(self, kind: str) -> Compared:
        match kind:
            case "begin erasure":
                return await self._begin_erasure()
            case "go on with erasure":
                return await self._go_on()
            case "stop erasure":
                return await self._stop()
            case "begin job":
                return await self._begin_job()
            case "save job":
                return await self._save_job()
            case _:
                return await self._look()

    def _workspace(self) -> Workspace:
        return self._world.dice.one(*self._world.tables.workspaces.values())

    async def _begin(self, memory: Any, postgres: Any, asked: Erasure | Job, noun: str) -> Compared:
        """Add it to both, where no more than some of its workspace may be under way."""
        limit = self._world.dice.one(*LIMITS)
        statement = await postgres.add(asked, limit=limit)
        rule = _of_memory(memory.add, asked, limit=limit)
        return _compared(asked, rule, statement, f"{noun} begun" if rule else f"{noun} refused")

    # --- erasures -------------------------------------------------------------------------------------------

    async def _begin_erasure(self) -> Compared:
        world, workspace = self._world, self._workspace()
        dice, owner = world.dice, (workspace.tenant_id, workspace.id)
        erasure_id, is_dry = dice.one(dice.id(), *world.tables.erasures), dice.often(25)
        erasure = new_erasure(erasure_id, *owner, path=PATH, value=VALUE, now=world.now)
        return await self._begin(*self._erasures, replace(erasure, dry_run=is_dry), "erasure")

    async def _go_on(self) -> Compared:
        """By some surfaces; a page of the statements is a part of a surface, and of the rules all of it."""
        world = self._world
        if not world.tables.erasures:
            return await self._begin_erasure()
        erasure_id = self._one_erasure(going_on=9)
        memory, postgres = self._erasures
        rule = statement = None
        for _ in range(1 + world.dice.upto(SURFACES_MAX)):
            statement = await postgres.step(erasure_id)
            while statement is not None and statement.after:
                statement = await postgres.step(erasure_id)
            rule = _of_memory(memory.step, erasure_id)
            if rule != statement or rule is None or rule.status in {*OVER, ErasureStatus.WAITING}:
                break
        told = "none" if rule is None else rule.status
        return _compared(("go on", erasure_id), rule, statement, f"erasure {told}")

    async def _stop(self) -> Compared:
        erasure_id = self._one_erasure(going_on=1)
        memory, postgres = self._erasures
        statement = await postgres.stop(erasure_id)
        rule = _of_memory(memory.stop, erasure_id)
        answer = "no erasure to stop" if rule is None else f"stop: {rule.status}"
        return _compared(("stop", erasure_id), rule, statement, answer)

    def _one_erasure(self, *, going_on: int) -> UUID:
        """Any one, or one that is not there; those that are not over are ``going_on`` times as likely."""
        dice, rows = self._world.dice, self._world.tables.erasures
        open_ones = [one.id for one in rows.values() if one.status not in OVER]
        return dice.one(*(open_ones * going_on), *rows, dice.id())

    # --- bulk jobs ------------------------------------------------------------------------------------------

    async def _begin_job(self) -> Compared:
        world, workspace = self._world, self._workspace()
        dice, job_id = world.dice, world.dice.one(world.dice.id(), *world.tables.jobs)
        replays = dice.often(60)
        job = Job(
            job_id,
            workspace.tenant_id,
            workspace.id,
            JobKind.REPLAY if replays else JobKind.CANCEL,
            JobStatus.WAITING,
            1,
            text_of(job_id, "status:agent_error"),
            "user:1",
            "operator",
            world.now,
            world.now,
            dice.upto(30),
            dice.upto(9),
            request_json=request_of(job_id) if replays else None,
            merges=replays and dice.often(50),
            rate_limit=dice.one(0, 0, 20),
        )
        return await self._begin(*self._jobs, job, "job")

    async def _save_job(self) -> Compared:
        world = self._world
        dice, jobs = world.dice, list(world.tables.jobs.values())
        job = dice.one(*jobs) if jobs else None
        if job is None:
            return Compared("save", [], "no job to save")
        status = dice.one(*JobStatus, JobStatus.RUNNING, JobStatus.RUNNING)
        is_over = status in {JobStatus.DONE, JobStatus.STOPPED, JobStatus.FAILED}
        page = tuple(dice.some(list(world.tables.events), 20)) if status is JobStatus.RUNNING else ()
        changed = replace(
            job,
            version=job.version + dice.one(1, 1, 1, 1, 0, 2),
            status=status,
            updated_at=world.now,
            done=job.done + dice.upto(3),
            refused={"UZ-ZMB-012": 1} if dice.often(30) else job.refused,
            page=page,
            page_agents=tuple(world.tables.events[one].zombie_id for one in page),
            holder=dice.id() if page else None,
            held_until=world.now + 3_000 if page else 0,
            ended_at=world.now if is_over else None,
        )
        memory, postgres = self._jobs
        statement = await _kept(postgres.save(changed))
        rule = _of_memory(_saved, memory, changed)
        return _compared(changed, rule, statement, "job saved" if rule else "job changed meanwhile")

    async def _look(self) -> Compared:
        """What is due, and what a job would be about."""
        world, workspace = self._world, self._workspace()
        dice, agents = world.dice, world.tables.zombies
        text = dice.one(*FILTERS, f"agent:{dice.one(*agents)}", f"before:{world.now - dice.upto(9_000)}")
        kind = dice.one(JobKind.REPLAY, JobKind.CANCEL)
        about = Selection(workspace.id, kind, parse_filter(text, now=world.now))
        after = dice.one(FIRST, *[(e.created_at, world.tables.arrivals[e.id]) for e in self._some_events()])
        until, limit = dice.one(1 << 40, 1 + dice.upto(40)), 1 + dice.upto(9)
        memory, postgres = self._jobs
        page = partial(_page, about=about, after=after, until=until, limit=limit, now=world.now)
        statement = await page(postgres)
        rule = _of_memory(page, memory)
        return _compared((about, after, until), rule, statement, f"{kind}: {min(2, rule[-1])} found")

    def _some_events(self) -> list[Any]:
        return self._world.dice.some(list(self._world.tables.events.values()), 20)


async def _page(
    store: Any, *, about: Selection, after: tuple[int, int], until: int, limit: int, now: int
) -> tuple[Any, ...]:
    due = await store.due(now=now, limit=99)
    survey = await store.survey(about, sample=3)
    found = await store.page(about, after=after, until_arrival=until, limit=limit)
    known = await store.known([one.event_id for one in found] + [UUID(int=1)])
    # Those that are free since the same moment come in no order.
    return sorted(due), survey.total, survey.sample, list(found), known, len(found)


def _of_memory(method: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any) -> Any:
    # It answers at once, so nothing of this thread's own loop waits.
    return trio.run(partial(method, *args, **kwargs))


async def _saved(store: MemoryJobs, job: Job) -> bool:
    return await _kept(store.save(job))


async def _kept(saving: Awaitable[None]) -> bool:
    try:
        await saving
    except Conflict:
        return False
    return True


def _compared(asked: Any, rule: Any, statement: Any, answer: str) -> Compared:
    same = rule == statement
    found = [] if same else [f"answer to {asked}:\n  rule {rule}\n  statement {statement}"]
    return Compared(asked, found, answer)
