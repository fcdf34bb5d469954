"""An agent that is changed, decided on and deleted while things go wrong around it."""

import logging
from functools import partial
from typing import Any
from uuid import UUID

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from sexton_actors.proposal.drafts import Draft
from sexton_actors.protocol import zombie as m
from sexton_actors.protocol.hub import GONE, AwaitFrames
from sexton_actors.protocol.lease import Reported
from sexton_actors.protocol.runner import Beat, Heartbeat, SetAdminState
from sexton_actors.refusal import Refusal
from sexton_actors.runner.listeners import LISTENERS_MAX
from sexton_storage.records.configs import ConfigStatus
from sexton_storage.records.improvement import Proposal, ProposalStatus
from sexton_storage.records.leases import LeaseStatus
from tests.worlds.actors import ActorsWorld, Later, crash_once
from tests.worlds.samples import skill_md, trigger_md

BETTER = skill_md() + "Look twice.\n"


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Crashes are logged, and here they are ordered."""
    caplog.set_level(logging.CRITICAL, "sexton_engine")


async def propose(world: ActorsWorld, zombie_id: UUID) -> Proposal:
    proposal = await world.system.ask("zombie", zombie_id, m.Propose(Draft("t", "r", BETTER), "user:1"))
    assert isinstance(proposal, Proposal), proposal
    return proposal


def active(world: ActorsWorld, zombie_id: UUID) -> list[UUID]:
    configs = world.storage.tables.configs.values()
    return [c.id for c in configs if c.zombie_id == zombie_id and c.status is ConfigStatus.ACTIVE]


# --- crashes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [False, True])
async def test_a_crash_around_the_commit_of_new_files_leaves_one_active_version(
    world: ActorsWorld, autojump_clock: MockClock, *, after: bool
) -> None:
    zombie_id = await world.install()
    done = crash_once(world.storage.zombies, "save", after=after)
    changed = await world.system.ask("zombie", zombie_id, m.Reconfigure(BETTER, None, "user:1"))

    assert done
    assert isinstance(changed, m.Configured)
    assert active(world, zombie_id) == [changed.zombie.config_version_id]
    assert changed.zombie.config_revision == 2, "what was kept before the crash is not made again"


@pytest.mark.parametrize("after", [False, True])
async def test_a_crash_around_an_approval_applies_the_proposal_once(
    world: ActorsWorld, autojump_clock: MockClock, *, after: bool
) -> None:
    zombie_id = await world.install()
    proposal = await propose(world, zombie_id)
    done = crash_once(world.storage.zombies, "save", after=after)
    decided = await world.system.ask("zombie", zombie_id, m.ApproveProposal(proposal.id, "user:1"))
    assert done
    assert isinstance(decided, Refusal if after else m.Decided), (
        "the second try finds what the first has done"
    )

    kept = world.storage.tables.proposals[proposal.id]
    assert kept.status is ProposalStatus.APPLIED
    assert active(world, zombie_id) == [kept.config_version_id]
    assert len(world.storage.tables.configs) == 2


@pytest.mark.parametrize("step", ["kill", "delete"])
@pytest.mark.parametrize("after", [False, True])
async def test_a_crash_at_each_step_of_a_deletion_ends_in_a_deletion(
    world: ActorsWorld, autojump_clock: MockClock, step: str, *, after: bool
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    await world.deliver(zombie_id)
    await world.grant(runner_id)
    done = crash_once(world.storage.zombies, step, after=after)
    removed = await world.system.ask("zombie", zombie_id, m.Remove("user:1"))
    assert done
    assert isinstance(removed, Refusal if (step, after) == ("delete", True) else m.Removed)

    tables = world.storage.tables
    assert not tables.zombies
    assert not tables.events
    assert not tables.leases

    await trio.sleep(60)
    await world.nothing(runner_id)


async def test_a_lost_race_is_decided_again_on_what_is_true_then(
    world: ActorsWorld, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    zombie_id = await world.install()
    tables = world.storage.tables
    original = world.storage.zombies.newest_revision
    raced: list[int] = []

    async def another_node_is_first(asked: UUID) -> int:
        newest = await original(asked)
        if not raced:
            raced.append(1)
            config = tables.configs[tables.zombies[asked].config_version_id]
            tables.configs[UUID(int=7)] = replace(
                config, id=UUID(int=7), revision=newest + 1, status=ConfigStatus.DRAFT
            )
        return newest

    monkeypatch.setattr(world.storage.zombies, "newest_revision", another_node_is_first)
    changed = await world.system.ask("zombie", zombie_id, m.Reconfigure(BETTER, None, "user:1"))

    assert isinstance(changed, m.Configured)
    assert changed.zombie.config_revision == 3


async def test_an_agent_that_another_node_has_deleted_is_unknown_to_every_request(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id = await world.install()
    proposal = await propose(world, zombie_id)
    await world.storage.zombies.delete(zombie_id)
    asked: list[Any] = [
        m.Reconfigure(BETTER, None, "user:1"),
        m.DraftVersion(BETTER, trigger_md()),
        m.CompileVersion(proposal.base_config_version_id),
        m.ActivateVersion(proposal.base_config_version_id, "user:1"),
        m.Propose(Draft("t", "r", BETTER), "user:1"),
        m.ApproveProposal(proposal.id, "user:1"),
        m.Remove("user:1"),
    ]
    for message in asked:
        refused = await world.system.ask("zombie", zombie_id, message)
        assert isinstance(refused, Refusal), message
        assert refused.code == "UZ-ZMB-009", message


# --- runs of agents that are changed or deleted -------------------------------------------------------------


async def test_a_run_goes_on_as_it_began_and_the_next_is_given_the_new_files(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    await world.deliver(zombie_id)
    await world.deliver(zombie_id)
    first = await world.grant(runner_id)
    changed = await world.system.ask("zombie", zombie_id, m.Reconfigure(BETTER, None, "user:1"))
    assert isinstance(changed, m.Configured)
    assert isinstance(await world.report(first), Reported)

    second = await world.grant(runner_id)
    assert second.manifest.instructions.endswith("Look twice.")
    assert second.lease.config_version_id == changed.zombie.config_version_id
    assert first.lease.config_version_id != second.lease.config_version_id

    world.everything_adds_up()


async def test_tags_that_change_move_the_agents_work_to_other_runners(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, weak = await world.install(), await world.enrol("weak")
    strong = await world.enrol("strong", labels=("gpu",))
    tagged = skill_md(tags="gpu")
    await world.system.ask("zombie", zombie_id, m.Reconfigure(tagged, None, "user:1"))
    await world.deliver(zombie_id)
    await world.nothing(weak, 2)
    await world.grant(strong)


async def test_a_late_report_of_a_deleted_agents_run_changes_nothing(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    event_id = await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    await world.renewed(grant)
    assert isinstance(await world.system.ask("zombie", zombie_id, m.Remove("user:1")), m.Removed)

    balance = world.balance()
    for late in (world.report(grant), world.renew(grant), world.activity(grant, "chunk")):
        refused = await late
        assert isinstance(refused, Refusal)
        assert refused.code == "UZ-RUN-006"
    assert world.balance() == balance
    assert world.rows(event_id), "what it has cost stays accounted for"
    assert not world.storage.tables.scores

    beat = await world.system.ask("runner", runner_id, Heartbeat((grant.lease.id,)))
    assert beat == Beat("ok", (grant.lease.id,))


async def test_those_who_read_the_stream_of_a_deleted_agent_are_told_that_it_is_gone(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    here, elsewhere = await world.install(), await world.install("nurse")
    async with trio.open_nursery() as nursery:
        readers = [
            Later(nursery, partial(world.system.ask, "hub", "", AwaitFrames(zombie_id, 99, 20.0), timeout=30))
            for zombie_id in (here, here, elsewhere)
        ]
        await trio.sleep(5)
        began = trio.current_time()
        await world.system.ask("zombie", here, m.Remove("user:1"))
        assert [(await reader.value()).head for reader in readers[:2]] == [GONE, GONE]
        assert trio.current_time() == began

        await world.storage.zombies.delete(elsewhere)
        assert (await readers[2].value()).head == GONE, "another node's deletion is found by looking"
        assert trio.current_time() - began < 2


# --- heartbeats that are held open --------------------------------------------------------------------------


def listening(
    nursery: trio.Nursery, world: ActorsWorld, runner_id: UUID, *lease_ids: UUID
) -> "Later[Beat | Refusal]":
    message = Heartbeat(lease_ids, wait_ms=20_000)
    return Later(nursery, lambda: world.system.ask("runner", runner_id, message, timeout=30))


async def test_a_kill_is_told_at_once_on_a_heartbeat_that_waits(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    async with trio.open_nursery() as nursery:
        beat = listening(nursery, world, runner_id, grant.lease.id)
        await trio.sleep(5)
        assert not beat.is_there

        await world.change_status(zombie_id, "killed")
        killed_at = trio.current_time()
        assert await beat.value() == Beat("ok", (grant.lease.id,))
        assert beat.at == killed_at


async def test_a_kill_on_another_node_is_heard_within_a_second(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    async with trio.open_nursery() as nursery:
        beat = listening(nursery, world, runner_id, grant.lease.id)
        await trio.sleep(5.3)
        tables = world.storage.tables
        tables.leases[grant.lease.id] = replace(
            tables.leases[grant.lease.id], status=LeaseStatus.CANCELLING, version=2
        )
        marked_at = trio.current_time()

        assert await beat.value() == Beat("ok", (grant.lease.id,))
        assert beat.at is not None
        assert beat.at - marked_at <= 1


async def test_a_heartbeat_waits_no_longer_than_it_says(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    for claimed, waited in (((grant.lease.id,), 3), ((), 0)):
        began = trio.current_time()
        beat = await world.system.ask("runner", runner_id, Heartbeat(claimed, wait_ms=3000), timeout=10)
        assert (beat, trio.current_time() - began) == (Beat("ok", ()), waited)


async def test_a_runner_that_is_drained_or_revoked_hears_it_while_it_waits(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    async with trio.open_nursery() as nursery:
        beat = listening(nursery, world, runner_id, grant.lease.id)
        await trio.sleep(1)
        await world.system.ask("runner", runner_id, SetAdminState("draining"))
        drained_at = trio.current_time()

        assert await beat.value() == Beat("drain", ())
        assert beat.at == drained_at
    async with trio.open_nursery() as nursery:
        beat = listening(nursery, world, runner_id, grant.lease.id)
        await trio.sleep(0.3)
        await world.system.ask("runner", runner_id, SetAdminState("revoked"))
        refused = await beat.value()

        assert isinstance(refused, Refusal)
        assert refused.code == "UZ-RUN-009"


async def test_only_so_many_heartbeats_of_a_runner_wait(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    await world.deliver(zombie_id)
    lease_id = (await world.grant(runner_id)).lease.id
    async with trio.open_nursery() as nursery:
        waiting = [listening(nursery, world, runner_id, lease_id) for _ in range(LISTENERS_MAX)]
        await trio.sleep(1)
        began = trio.current_time()
        one_more = Heartbeat((lease_id,), wait_ms=20_000)
        assert await world.system.ask("runner", runner_id, one_more) == Beat("ok", ())
        assert trio.current_time() == began
        assert not any(beat.is_there for beat in waiting)

        nursery.cancel_scope.cancel()

    assert world.storage.tables.runners[runner_id].last_seen_at is not None
