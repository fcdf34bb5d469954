"""Proposals, scores and what runs are told of them, in both kinds of storage."""

from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace

from sexton_storage.errors import Conflict
from sexton_storage.paging import Page
from sexton_storage.records.configs import ConfigStatus, ConfigVersion
from sexton_storage.records.events import EventStatus
from sexton_storage.records.gates import GateStatus
from sexton_storage.records.improvement import DISPLACED_BY, LAST_DECIDED, Proposal, ProposalStatus, Rate
from sexton_storage.records.zombies import Zombie
from sexton_storage.refusals import Lost
from sexton_storage.terms import DEFAULT_CONTEXT_TOKENS, PENDING_KEPT, RATE_EVENTS, REJECTIONS_TOLD
from sexton_storage.writes import EventEnd, OpenGate, ResolveGate
from tests.worlds.storage import StorageWorld, new_id


def proposal_of(world: StorageWorld, agent: Zombie, **changes: Any) -> Proposal:
    made = Proposal(
        id=new_id(),
        zombie_id=agent.id,
        workspace_id=agent.workspace_id,
        tenant_id=agent.tenant_id,
        status=ProposalStatus.PENDING,
        title="Look twice",
        rationale="Once is no proof.",
        diff="--- a\n+++ b\n",
        base_config_version_id=agent.config_version_id,
        created_by="run",
        created_at=world.now,
        source_markdown="# s",
    )
    return replace(made, **changes)


def rejected(world: StorageWorld, proposal: Proposal, reason: str = "no") -> Proposal:
    return replace(
        proposal,
        status=ProposalStatus.REJECTED,
        rejection_reason=reason,
        decided_at=world.now,
        decided_by="user:1",
    )


async def propose(world: StorageWorld, agent: Zombie, **changes: Any) -> Proposal:
    made = proposal_of(world, agent, **changes)
    assert await world.storage.improvement.propose(made)
    return made


async def run(
    world: StorageWorld, agent: Zombie, status: EventStatus = EventStatus.PROCESSED, **more: Any
) -> UUID:
    event = await world.append(agent)
    lease = (await world.claim(agent)).lease
    await world.end(lease, EventEnd(status, **more))
    return event.id


# --- proposals ----------------------------------------------------------------------------------------------


async def test_a_proposal_is_kept_and_listed_newest_first(world: StorageWorld) -> None:
    agent, other = await world.agent(), await world.agent()
    store, at = world.storage.improvement, world.now
    made = [await propose(world, agent, created_at=at + number // 2) for number in range(5)]
    await propose(world, other)
    expected = sorted(made, key=lambda p: (p.created_at, p.id), reverse=True)
    assert list(await store.list(agent.id, limit=9)) == expected

    page = Page(expected[1].created_at, expected[1].id)
    assert list(await store.list(agent.id, limit=2, before=page)) == expected[2:4]

    await store.decide(rejected(world, made[0]))
    assert [p.id for p in await store.list(agent.id, limit=9, status=ProposalStatus.REJECTED)] == [made[0].id]
    assert await store.load(new_id()) is None


async def test_text_that_no_column_can_hold_is_made_to_fit(world: StorageWorld) -> None:
    made = await propose(world, await world.agent(), title="a\x00b", rationale="\ud800", diff="\x00")
    kept = await world.storage.improvement.load(made.id)

    assert kept is not None
    assert (kept.title, kept.rationale, kept.diff) == ("a\ufffdb", "?", "\ufffd")


async def test_nothing_is_proposed_for_an_agent_that_is_gone(world: StorageWorld) -> None:
    agent = await world.agent()
    await world.storage.zombies.delete(agent.id)

    assert not await world.storage.improvement.propose(proposal_of(world, agent))


async def test_a_proposal_is_decided_once(world: StorageWorld) -> None:
    made = await propose(world, await world.agent())
    decided = rejected(world, made)
    await world.storage.improvement.decide(decided)
    assert await world.storage.improvement.load(made.id) == decided

    with pytest.raises(Conflict):
        await world.storage.improvement.decide(replace(decided, rejection_reason="later"))
    assert await world.storage.improvement.load(made.id) == decided


async def test_the_oldest_of_too_many_make_room(world: StorageWorld) -> None:
    agent = await world.agent()
    made = [await propose(world, agent, created_at=world.now + number) for number in range(PENDING_KEPT + 1)]
    pending = await world.storage.improvement.list(agent.id, limit=99, status=ProposalStatus.PENDING)
    assert {p.id for p in pending} == {p.id for p in made[1:]}

    first = await world.storage.improvement.load(made[0].id)
    assert first is not None
    assert (first.status, first.decided_by) == (ProposalStatus.REJECTED, DISPLACED_BY)


async def test_an_applied_proposal_and_its_configuration_are_kept_together_or_not_at_all(
    world: StorageWorld,
) -> None:
    agent = await world.agent()
    made = await propose(world, agent)
    config = replace(world.config_of(agent), id=new_id(), revision=2)
    next_one = replace(agent, version=2, config_version_id=config.id, config_revision=2)
    applied = replace(
        made,
        status=ProposalStatus.APPLIED,
        config_version_id=config.id,
        decided_at=world.now,
        decided_by="user:1",
    )
    zombies = world.storage.zombies
    await zombies.save(next_one, (), config, applied)
    assert await world.storage.improvement.load(made.id) == applied

    loaded = await zombies.load(agent.id)
    assert loaded is not None
    assert loaded.config_version_id == config.id

    third = replace(config, id=new_id(), revision=3)
    after = replace(next_one, version=3, config_version_id=third.id, config_revision=3)
    with pytest.raises(Conflict):
        await zombies.save(after, (), third, replace(applied, config_version_id=third.id))
    assert await zombies.load_config(third.id) is None

    again = await zombies.load(agent.id)
    assert again is not None
    assert again.version == 2


async def test_what_a_run_proposes_is_kept_with_its_end_and_only_with_it(world: StorageWorld) -> None:
    agent = await world.agent()
    await world.append(agent)
    lease = (await world.claim(agent, config_version_id=agent.config_version_id)).lease
    assert lease.config_version_id == agent.config_version_id

    kept = await world.storage.leases.load(lease.id)
    assert kept == lease

    made = proposal_of(world, agent)
    write = world.end_of(lease, EventEnd(EventStatus.PROCESSED), proposals=(made,))
    await world.storage.journal.write(write)
    assert isinstance(await world.storage.journal.write(write), Lost)
    assert [p.id for p in await world.storage.improvement.list(agent.id, limit=9)] == [made.id]


# --- scores -------------------------------------------------------------------------------------------------


async def test_a_finished_run_is_scored_in_the_commit_that_settles_it(world: StorageWorld) -> None:
    agent = await world.agent()
    event = await world.append(agent)
    lease = (await world.claim(agent, budget_daily_nanos=1000)).lease
    for status in (GateStatus.DENIED, GateStatus.APPROVED, GateStatus.TIMED_OUT):
        gate = world.gate_of(event, lease)
        await world.storage.journal.write(OpenGate(gate, lease.fencing_token, ()))
        await world.storage.journal.write(
            ResolveGate(gate.id, status, world.now, "user:1", "", EventStatus.RECEIVED, None, ())
        )
    end = EventEnd(EventStatus.AGENT_ERROR, failure_label="gate_command_failed", failed_checks=1)
    await world.end(lease, end, nanos=500)
    (score,) = await world.storage.improvement.scores(agent.id, limit=9)
    ended = await world.storage.events.load(event.id)

    assert ended is not None
    assert score.created_at == ended.completed_at
    assert (score.event_id, score.outcome) == (event.id, EventStatus.AGENT_ERROR)
    assert (score.attempts, score.denied_gates, score.failed_checks) == (1, 2, 1)
    assert (score.charged_nanos, score.budget_nanos) == (500, 1000)
    assert score.score == pytest.approx(0.1 + 0.1 / 3 + 0.1 / 2 + 0.1 / 2, abs=1e-4)


async def test_a_run_that_goes_back_is_not_scored(world: StorageWorld) -> None:
    agent = await world.agent()
    await world.append(agent)
    lease = (await world.claim(agent)).lease
    await world.end(lease, EventEnd(EventStatus.RECEIVED, give_attempt_back=True))

    assert list(await world.storage.improvement.scores(agent.id, limit=9)) == []
    assert (await world.storage.improvement.trust(agent.id)).streak == 0


async def test_scores_are_listed_newest_first_by_pages(world: StorageWorld) -> None:
    agent = await world.agent()
    ids = [await run(world, agent) for _ in range(5)]
    store = world.storage.improvement
    every = await store.scores(agent.id, limit=9)
    assert {s.event_id for s in every} == set(ids)
    assert list(every) == sorted(every, key=lambda s: (s.created_at, s.event_id), reverse=True)

    page = Page(every[1].created_at, every[1].event_id)
    assert list(await store.scores(agent.id, limit=2, before=page)) == list(every[2:4])


async def test_trust_counts_runs_in_a_row_and_compares_both_sides_of_the_last_change(
    world: StorageWorld,
) -> None:
    agent = await world.agent()
    store = world.storage.improvement
    for status in (EventStatus.AGENT_ERROR, EventStatus.PROCESSED, EventStatus.CANCELLED):
        await run(world, agent, status)
    trust = await store.trust(agent.id)
    assert (trust.streak, trust.last_decided) == (1, ())
    assert (trust.before, trust.after) == (Rate(0, 0), Rate(0, 0)), "nothing was applied yet"

    newest = (await store.scores(agent.id, limit=1))[0].created_at
    made = await propose(world, agent)
    applied = replace(made, status=ProposalStatus.APPLIED, decided_at=newest, decided_by="user:1")
    await store.decide(applied)
    for number in range(LAST_DECIDED):
        await store.decide(replace(rejected(world, await propose(world, agent)), decided_at=newest - number))
    while world.now <= newest:
        pass
    for _ in range(RATE_EVENTS + 1):
        await run(world, agent)
    await run(world, agent, EventStatus.DEAD_LETTERED)
    trust = await store.trust(agent.id)
    assert trust.streak == 0
    assert len(trust.last_decided) == LAST_DECIDED
    assert (trust.before, trust.after) == (Rate(2, 1), Rate(RATE_EVENTS, RATE_EVENTS))


# --- what runs are told -------------------------------------------------------------------------------------


async def test_a_rejection_is_told_until_a_run_that_heard_it_is_processed(world: StorageWorld) -> None:
    agent = await world.agent()
    store = world.storage.improvement
    made = [await propose(world, agent, created_at=world.now + n) for n in range(REJECTIONS_TOLD + 1)]
    for number, proposal in enumerate(made):
        await store.decide(replace(rejected(world, proposal), decided_at=world.now + number))
    for status, left in ((EventStatus.AGENT_ERROR, REJECTIONS_TOLD), (EventStatus.PROCESSED, 1)):
        await world.append(agent)
        lease = (await world.claim(agent)).lease
        lessons = await store.lessons(agent.id, agent.workspace_id, lease.id)
        assert [p.id for p in lessons.rejections] == [p.id for p in made[:REJECTIONS_TOLD]]
        await world.end(lease, EventEnd(status))
        following = await store.lessons(agent.id, agent.workspace_id, new_id())
        assert len(following.rejections) == left


async def test_a_server_that_comes_too_late_takes_nothing_from_the_run_that_was_told(
    world: StorageWorld,
) -> None:
    agent = await world.agent()
    store = world.storage.improvement
    await store.decide(rejected(world, await propose(world, agent)))
    await world.append(agent)
    over = (await world.claim(agent)).lease
    await world.end(over, EventEnd(EventStatus.AGENT_ERROR))
    await world.append(agent)
    lease = (await world.claim(agent)).lease

    told = await store.lessons(agent.id, agent.workspace_id, lease.id)
    late = await store.lessons(agent.id, agent.workspace_id, over.id)
    await world.end(lease, EventEnd(EventStatus.PROCESSED))
    following = await store.lessons(agent.id, agent.workspace_id, new_id())

    assert len(told.rejections) == len(late.rejections) == 1
    assert following.rejections == ()


async def test_a_run_that_was_told_nothing_has_heard_nothing(world: StorageWorld) -> None:
    agent = await world.agent()
    await world.append(agent)
    lease = (await world.claim(agent)).lease
    await world.storage.improvement.decide(rejected(world, await propose(world, agent)))
    await world.end(lease, EventEnd(EventStatus.PROCESSED))
    lessons = await world.storage.improvement.lessons(agent.id, agent.workspace_id, new_id())

    assert len(lessons.rejections) == 1


async def test_a_workspace_sets_its_tokens(world: StorageWorld) -> None:
    agent = await world.agent()
    store = world.storage.improvement
    assert await store.context_tokens(world.workspace_id) is None

    lessons = await store.lessons(agent.id, agent.workspace_id, new_id())
    assert lessons.context_tokens == DEFAULT_CONTEXT_TOKENS

    for tokens in (512, 8192):
        await store.put_context_tokens(world.workspace_id, tokens, world.now)
        assert await store.context_tokens(world.workspace_id) == tokens
    lessons = await store.lessons(agent.id, agent.workspace_id, new_id())
    assert lessons.context_tokens == 8192


# --- versions -----------------------------------------------------------------------------------------------


def version_of(world: StorageWorld, agent: Zombie, revision: int, **changes: Any) -> ConfigVersion:
    made = ConfigVersion(new_id(), agent.id, revision, ConfigStatus.DRAFT, "# s", "# t", {}, world.now)
    return replace(made, **changes)


async def test_a_version_is_drafted_and_compiled_beside_the_active_one(world: StorageWorld) -> None:
    agent, zombies = await world.agent(), world.storage.zombies
    drafted = version_of(world, agent, 2)
    await zombies.keep_config(drafted, None)
    assert await zombies.newest_revision(agent.id) == 2

    compiled = replace(drafted, status=ConfigStatus.COMPILED, compiled={"a": 1})
    await zombies.keep_config(compiled, ConfigStatus.DRAFT)
    assert await zombies.load_config(drafted.id) == compiled

    with pytest.raises(Conflict):
        await zombies.keep_config(
            replace(drafted, status=ConfigStatus.INVALID, findings={"errors": []}), ConfigStatus.DRAFT
        )
    active = await zombies.load(agent.id)
    assert active is not None
    assert active.config_version_id == agent.config_version_id

    listed = await zombies.list_configs(agent.id, limit=9)
    assert [c.status for c in listed] == [ConfigStatus.COMPILED, ConfigStatus.ACTIVE]

    page = Page(listed[0].created_at, listed[0].id)
    assert [c.id for c in await zombies.list_configs(agent.id, limit=1, before=page)] == [listed[1].id]


async def test_a_revision_is_given_once(world: StorageWorld) -> None:
    agent, zombies = await world.agent(), world.storage.zombies
    with pytest.raises(Conflict):
        await zombies.keep_config(version_of(world, agent, 1), None)
    await zombies.keep_config(version_of(world, agent, 2), None)
    taken = version_of(world, agent, 2, status=ConfigStatus.ACTIVE)
    with pytest.raises(Conflict):
        await zombies.save(replace(agent, version=2, config_version_id=taken.id), (), taken)
    loaded = await zombies.load(agent.id)

    assert loaded is not None
    assert loaded.version == 1


async def test_no_version_is_kept_of_an_agent_that_is_gone(world: StorageWorld) -> None:
    agent = await world.agent()
    await world.storage.zombies.delete(agent.id)
    with pytest.raises(Conflict):
        await world.storage.zombies.keep_config(version_of(world, agent, 2), None)

    assert await world.storage.zombies.newest_revision(agent.id) == 0


async def test_the_oldest_of_too_many_versions_go_and_the_active_one_stays(
    world: StorageWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("postgres.stores.zombies", "memory.agents"):
        monkeypatch.setattr(f"sexton_storage.{module}.CONFIGS_KEPT", 2)
    agent, zombies = await world.agent(), world.storage.zombies
    for revision in range(2, 6):
        await zombies.keep_config(version_of(world, agent, revision), None)
    kept = await zombies.list_configs(agent.id, limit=9)

    assert sorted(c.revision for c in kept) == [1, 4, 5]
