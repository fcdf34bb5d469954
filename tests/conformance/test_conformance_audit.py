"""A change and its line of the audit log are there together, or neither is."""

from typing import Any
from uuid import UUID

import pytest
import trio
from msgspec.structs import replace

from sexton_storage.attribution import attributed
from sexton_storage.decisions.audit import GENESIS, first_break
from sexton_storage.documents import from_json
from sexton_storage.errors import NameTaken
from sexton_storage.records.api_keys import ApiKey
from sexton_storage.records.audit import AuditEntry, AuditFilter, AuditHead, AuditLine
from sexton_storage.records.crons import ScheduleNote
from sexton_storage.records.gates import GateStatus
from sexton_storage.records.jobs import JobStatus
from sexton_storage.records.users import Role
from sexton_storage.refusals import Lost
from sexton_storage.rules import CANCELLED_LABEL
from sexton_storage.writes import AppendEvent, CancelEvent, OpenGate, ResolveGate
from tests.conformance.test_conformance_deliveries import one
from tests.conformance.test_conformance_failures import fail, put
from tests.conformance.test_conformance_jobs import job_of
from tests.worlds.storage import StorageWorld, new_id

HOSTILE = "ann\x00\ud800<b>\u202e'; drop table audit_log; --"


def entry_of(world: StorageWorld, action: str = "api_key.create", **more: Any) -> AuditEntry:
    entry = AuditEntry(new_id(), world.tenant_id, action, "user:1", "ann", "192.0.2.1", "r1")
    return replace(entry, **more)


def key_of(world: StorageWorld, name: str) -> ApiKey:
    key_id = new_id()
    return ApiKey(key_id, world.tenant_id, name, "", Role.USER, key_id.bytes, 1)


async def lines(world: StorageWorld, log_id: UUID | None = None) -> list[AuditLine]:
    return [*await world.storage.audit.read(log_id or world.tenant_id, limit=1000)]


async def test_a_change_brings_its_line_and_what_changes_nothing_brings_none(world: StorageWorld) -> None:
    keys, made = world.storage.api_keys, key_of(world, "first")
    with attributed(entry_of(world, workspace_id=world.workspace_id)):
        await keys.create(made)
    with attributed(entry_of(world)), pytest.raises(NameTaken):
        await keys.create(key_of(world, "first"))
    with attributed(entry_of(world, "api_key.delete")):
        assert not await keys.delete(world.tenant_id, new_id())
    await keys.revoke(world.tenant_id, made.id, 5)
    with attributed(entry_of(world, "api_key.revoke")):
        await keys.revoke(world.tenant_id, made.id, 6)
    [line] = await lines(world)

    assert (line.seq, line.target, line.previous_hash) == (1, str(made.id), GENESIS.hash)
    assert from_json(line.body)["workspace_id"] == str(world.workspace_id)
    assert await world.storage.audit.head(world.tenant_id) == AuditHead(1, line.hash)
    assert first_break([line]) == AuditHead(1, line.hash)


async def test_a_job_brings_the_line_of_who_began_it_and_its_pages_bring_none(world: StorageWorld) -> None:
    job = job_of(world)
    entry = entry_of(world, "job.replay", workspace_id=world.workspace_id)
    with attributed(entry):
        assert await world.storage.jobs.add(job, limit=5)
        assert await world.storage.jobs.add(job, limit=5)
    await world.storage.jobs.save(replace(job, version=2, done=1))
    with attributed(entry_of(world, "job.pause")):
        await world.storage.jobs.save(replace(job, version=3, done=1, status=JobStatus.PAUSED))
    begun, paused = await lines(world)

    assert [from_json(line.body)["action"] for line in (begun, paused)] == ["job.replay", "job.pause"]
    assert {line.target for line in (begun, paused)} == {str(job.id)}


async def test_schedules_deliveries_and_failures_that_people_change_are_told_and_rounds_are_not(
    world: StorageWorld,
) -> None:
    agent, store = await world.agent(), world.storage
    kept, note = one(agent, world.now), ScheduleNote(agent.id, "0 5 * * *", "UTC")
    await store.deliveries.keep([kept], [])
    await fail(world, agent, "it broke")
    await store.failures.sort(put(await store.failures.unsorted(limit=9)))
    [group] = await store.failures.list(world.workspace_id, limit=9, now=world.now)
    await store.crons.note_missed(replace(note, missed=1, missed_from=1, missed_until=1, missed_why="x"))
    assert await lines(world) == []

    with attributed(entry_of(world, "schedule.pause")):
        await store.crons.pause(replace(note, paused_at=5, paused_by="user:1"))
    with attributed(entry_of(world, "delivery.replay")):
        await store.deliveries.settle(replace(kept.delivery, replays=1, replayed_at=5, replayed_by="user:1"))
    for until in (9, 9):
        with attributed(entry_of(world, "failure.mute")):
            await store.failures.mute(group.id, "user:1", until)
    key, write = b"k" * 32, store.journal.write
    for _ in range(2):
        asked = AppendEvent(world.event_of(agent), key, None, None, (), audit=entry_of(world, "schedule.run"))
        await write(asked)
    told = [from_json(line.body)["action"] for line in await lines(world)]
    assert told == ["schedule.pause", "delivery.replay", "failure.mute", "schedule.run"]


async def test_one_request_has_one_line_however_many_transactions_it_makes(world: StorageWorld) -> None:
    entry = entry_of(world, target="all")
    with attributed(entry):
        for name in ("a", "b"):
            await world.storage.api_keys.create(key_of(world, name))

    assert [line.target for line in await lines(world)] == ["all"]


async def test_a_task_that_begins_meanwhile_works_for_nobody(world: StorageWorld) -> None:
    async with trio.open_nursery() as nursery:
        with attributed(entry_of(world)):
            nursery.start_soon(world.storage.api_keys.create, key_of(world, "a"))

    assert await lines(world) == []


async def test_an_answer_to_a_gate_is_kept_with_its_line_and_a_late_one_is_not(world: StorageWorld) -> None:
    agent = await world.agent()
    await world.append(agent)
    lease = (await world.claim(agent)).lease
    gate = world.gate_of(world.event_of(agent, id=lease.event_id), lease)
    await world.storage.journal.write(OpenGate(gate, lease.fencing_token, ()))
    answers = []
    for _ in range(2):
        entry = entry_of(world, "approval.approve", target=str(gate.id))
        write = ResolveGate(
            gate.id, GateStatus.APPROVED, 5, "user:1", "", world.event_of(agent).status, None, (), entry
        )
        answers.append(await world.storage.journal.write(write))
    cancels = [
        await world.storage.journal.write(
            CancelEvent(agent.id, event_id, 6, (), entry_of(world, "event.cancel", target=str(event_id)))
        )
        for event_id in (lease.event_id, new_id())
    ]
    kept = await lines(world)

    assert [isinstance(one, Lost) for one in (*answers, *cancels)] == [False, True, False, True]
    assert [line.target for line in kept] == [str(gate.id), str(lease.event_id)]
    assert isinstance(first_break(kept), AuditHead)
    assert CANCELLED_LABEL


async def test_what_many_change_at_once_hangs_together(world: StorageWorld) -> None:
    async def make(number: int) -> None:
        with attributed(entry_of(world, log_id=(world.tenant_id, UUID(int=7))[number % 2])):
            await world.storage.api_keys.create(key_of(world, f"k{number}"))

    async with trio.open_nursery() as nursery:
        for number in range(16):
            nursery.start_soon(make, number)

    for log_id in (world.tenant_id, UUID(int=7)):
        kept = await lines(world, log_id)
        assert [line.seq for line in kept] == [*range(1, 9)]
        assert first_break(kept) == await world.storage.audit.head(log_id)


async def test_lines_are_found_by_who_what_and_where_and_hostile_text_is_text(world: StorageWorld) -> None:
    audit, tenant_id = world.storage.audit, world.tenant_id
    for action, actor in (("a.one", "user:1"), ("a.two", "api:2"), ("b.one", HOSTILE)):
        entry = entry_of(world, action, actor=actor, name=HOSTILE, facts={HOSTILE: HOSTILE})
        with attributed(replace(entry, workspace_id=world.workspace_id if actor == "api:2" else None)):
            await world.storage.api_keys.create(key_of(world, action))
    kept = await lines(world)

    async def found(**wanted: Any) -> list[int]:
        return [line.seq for line in await audit.list(tenant_id, AuditFilter(**wanted), limit=9)]

    assert await found() == [3, 2, 1]
    assert await found(action="a.*") == [2, 1]
    assert await found(actor="api:2") == await found(workspace_id=world.workspace_id) == [2]
    assert await found(target=kept[0].target) == [1]
    assert await found(since=kept[0].at, until=kept[-1].at + 1) == [3, 2, 1]
    assert await found(until=kept[0].at) == await found(action="%") == []
    assert [line.seq for line in await audit.list(tenant_id, AuditFilter(), limit=1, before=3)] == [2]
    assert from_json(kept[2].body)["name"] == "ann\ufffd?<b>\u202e'; drop table audit_log; --"
    assert first_break(kept) == await audit.head(tenant_id)
