"""The records of agents, and what is ready to run."""

from uuid import UUID

import pytest
from msgspec.structs import replace

from sexton_storage.errors import Conflict, NameTaken
from sexton_storage.event_filter.parse import parse_filter
from sexton_storage.paging import Page
from sexton_storage.records.configs import ConfigStatus, ConfigVersion
from sexton_storage.records.events import EventStatus, ReadyAgent
from sexton_storage.records.gates import GateStatus
from sexton_storage.records.grants import GrantStatus
from sexton_storage.records.leases import LeaseStatus
from sexton_storage.records.tenants import PlanTier
from sexton_storage.records.zombies import AgentStanding, SeenAgent, ZombieStatus, summary_of
from sexton_storage.writes import AppendEvent, EventEnd, OpenGate
from tests.worlds.storage import StorageWorld, new_id


async def test_an_agent_is_loaded_as_it_was_created(world: StorageWorld) -> None:
    agent = await world.agent(allows_unsandboxed=True, required_tags=("a", "b"), decides_by_token=False)

    assert await world.storage.zombies.load(agent.id) == agent
    assert await world.storage.zombies.load_config(agent.config_version_id) == world.config_of(agent)
    assert await world.storage.zombies.load(new_id()) is None
    assert await world.storage.zombies.load_config(new_id()) is None


async def test_a_name_is_used_once_in_a_workspace(world: StorageWorld) -> None:
    agent = await world.agent(name="sexton")
    with pytest.raises(NameTaken):
        await world.agent(name="sexton")
    other = await world.agent(name="other")
    with pytest.raises(NameTaken):
        await world.storage.zombies.save(replace(other, name="sexton", version=2), ())
    await (await world.beside()).agent(name="sexton")
    await world.storage.zombies.delete(agent.id)
    await world.agent(name="sexton")


async def test_a_save_goes_by_version(world: StorageWorld) -> None:
    agent = await world.agent()
    stopped = replace(agent, status=ZombieStatus.STOPPED, version=2, updated_at=agent.updated_at + 1)
    await world.storage.zombies.save(stopped, (world.frame(agent, "status_changed"),))
    assert await world.storage.zombies.load(agent.id) == stopped

    with pytest.raises(Conflict):
        await world.storage.zombies.save(replace(agent, version=2), (world.frame(agent, "status_changed"),))
    assert await world.storage.zombies.load(agent.id) == stopped
    assert await world.storage.frames.bounds(agent.id) == (1, 1)

    with pytest.raises(Conflict):
        await world.storage.zombies.save(
            world.agent_record(version=2, config_version_id=agent.config_version_id), ()
        )


async def test_a_save_leaves_what_events_move(world: StorageWorld) -> None:
    agent = await world.agent()
    event = await world.append(agent)
    await world.storage.zombies.save(replace(agent, version=2, last_event_at=None), ())
    loaded = await world.storage.zombies.load(agent.id)

    assert loaded is not None
    assert loaded.last_event_at == event.created_at


async def test_a_new_configuration_takes_the_place_of_the_old(world: StorageWorld) -> None:
    agent = await world.agent()
    config = ConfigVersion(
        new_id(), agent.id, 2, ConfigStatus.COMPILED, "# new", "# t", {"tools": ["sql"]}, world.now
    )
    changed = replace(agent, version=2, config_version_id=config.id, config_revision=2, required_tags=("x",))
    await world.storage.zombies.save(changed, (), config)
    assert await world.storage.zombies.load(agent.id) == replace(changed, compiled=config.compiled)
    assert await world.storage.zombies.load_config(config.id) == replace(config, status=ConfigStatus.ACTIVE)

    old = await world.storage.zombies.load_config(agent.config_version_id)
    assert old is not None
    assert old.status is ConfigStatus.SUPERSEDED

    back = replace(changed, version=3, config_version_id=old.id, config_revision=1)
    await world.storage.zombies.save(back, (), old)
    loaded = await world.storage.zombies.load(agent.id)
    assert loaded is not None
    assert loaded.compiled == agent.compiled


async def test_agents_are_listed_newest_first_by_pages(world: StorageWorld) -> None:
    agents = [await world.agent(created_at=world.now + i // 2) for i in range(7)]
    expected = sorted(agents, key=lambda a: (a.created_at, a.id), reverse=True)
    found: list[UUID] = []
    page = None
    while part := await world.storage.zombies.list(world.workspace_id, limit=3, after=page):
        found += [a.id for a in part]
        page = Page(part[-1].created_at, part[-1].id)

    assert found == [a.id for a in expected]
    assert await world.storage.zombies.count(world.workspace_id) == 7


async def test_agents_are_found_by_status_and_name(world: StorageWorld) -> None:
    stopped = await world.agent(name="a_b", status=ZombieStatus.STOPPED)
    await world.agent(name="axb")
    await world.agent(name="a?b")
    await world.agent(name="a[x]b")
    listed = await world.storage.zombies.list(world.workspace_id, limit=9, status=ZombieStatus.STOPPED)
    assert [a.id for a in listed] == [stopped.id]

    by_glob = {
        g: await world.storage.zombies.list(world.workspace_id, limit=9, name_glob=g)
        for g in ("a_*", "a?b", "a[x]b", "a[*]b", "a*b", "%", "a\\?b")
    }
    expected = {"a_*": 1, "a?b": 1, "a[x]b": 1, "a[*]b": 1, "a*b": 4, "%": 0, "a\\?b": 0}
    assert {g: len(found) for g, found in by_glob.items()} == expected


async def test_agents_are_found_by_the_status_of_a_grant(world: StorageWorld) -> None:
    waits, has = (
        {"hub": {"status": status}, "two": {"status": "denied"}} for status in ("pending", "approved")
    )
    waiting, _, _ = (await world.agent(lending=waits), await world.agent(lending=has), await world.agent())
    found = await world.storage.zombies.list(world.workspace_id, limit=9, lending=GrantStatus.PENDING)
    assert [(agent.id, agent.lending) for agent in found] == [(waiting.id, waits)]

    denied = await world.storage.zombies.list(world.workspace_id, limit=9, lending=GrantStatus.DENIED)
    assert len(denied) == 2


async def test_a_kill_ends_all_that_is_open_in_one_commit(world: StorageWorld) -> None:
    agent = await world.agent()
    running = await world.append(agent)
    lease = (await world.claim(agent)).lease
    waiting = await world.append(agent)
    at_gate = world.event_of(agent)
    gate = world.gate_of(at_gate)
    await world.storage.journal.write(AppendEvent(at_gate, None, None, None, (), gate))
    in_run = world.gate_of(running, lease)
    await world.storage.journal.write(OpenGate(in_run, lease.fencing_token, ()))
    now = world.now
    killed = replace(agent, status=ZombieStatus.KILLED, version=2)
    ids = await world.storage.zombies.kill(killed, (world.frame(agent, "status_changed"),), now)
    assert list(ids) == [lease.id]
    assert await world.storage.leases.load(lease.id) == replace(
        lease, status=LeaseStatus.CANCELLING, version=2
    )

    for event_id in (waiting.id, at_gate.id):
        ended = await world.storage.events.load(event_id)
        assert ended is not None
        assert (ended.status, ended.completed_at) == (EventStatus.CANCELLED, now)
    still = await world.storage.events.load(running.id)
    assert still is not None
    assert still.status is EventStatus.RUNNING

    for gate_id in (gate.id, in_run.id):
        closed = await world.storage.gates.load(gate_id)
        assert closed is not None
        assert (closed.status, closed.resolved_by, closed.updated_at) == (
            GateStatus.AUTO_KILLED,
            "system:kill",
            now,
        )
    frames = await world.storage.frames.read(agent.id, after=1, limit=9)
    assert [(f.kind, f.event_id) for f in frames] == [
        ("gate_resolved", at_gate.id),
        ("gate_resolved", running.id),
        ("event_complete", waiting.id),
        ("event_complete", at_gate.id),
        ("status_changed", None),
    ]
    assert frames[0].data == {
        "gate_id": str(gate.id),
        "action_id": gate.action_id,
        "status": "auto_killed",
        "resolved_by": "system:kill",
    }
    assert frames[2].data == {"status": "cancelled", "failure_label": "cancelled"}

    with pytest.raises(Conflict):
        await world.storage.zombies.kill(killed, (), now)


async def test_a_kill_of_an_idle_agent_has_no_leases(world: StorageWorld) -> None:
    agent = await world.agent()
    assert not await world.storage.zombies.kill(replace(agent, version=2), (), world.now)

    loaded = await world.storage.zombies.load(agent.id)
    assert loaded is not None
    assert loaded.status is ZombieStatus.KILLED


async def test_a_deleted_agent_leaves_only_its_accounts(world: StorageWorld) -> None:
    agent = await world.agent()
    event = await world.append(agent)
    claimed = await world.claim(agent)
    await world.storage.journal.write(
        OpenGate(gate := world.gate_of(event, claimed.lease), claimed.lease.fencing_token, ())
    )
    await world.end(claimed.lease, EventEnd(EventStatus.PROCESSED), nanos=5)
    assert await world.storage.zombies.delete(agent.id)
    assert not await world.storage.zombies.delete(agent.id)
    assert await world.storage.zombies.load(agent.id) is None
    assert await world.storage.zombies.load_config(agent.config_version_id) is None
    assert await world.storage.events.load(event.id) is None
    assert await world.storage.leases.load(claimed.lease.id) is None
    assert await world.storage.gates.load(gate.id) is None
    assert await world.storage.frames.bounds(agent.id) == (1, 0)
    assert await world.storage.frames.read(agent.id, after=0, limit=9) == []

    (row,) = await world.storage.metering.list(world.tenant_id, event.id)
    assert row.charged_nanos == 5


async def test_metering_rows_are_their_own_tenants(world: StorageWorld) -> None:
    lease = await world.lease()
    await world.renew(lease)
    other = await world.beside()

    assert len(await world.storage.metering.list(world.tenant_id, lease.event_id)) == 1
    assert not await world.storage.metering.list(other.tenant_id, lease.event_id)
    assert not await world.storage.metering.list(world.tenant_id, new_id())


# --- ready --------------------------------------------------------------------------------------------------


async def test_an_agent_with_work_is_ready(world: StorageWorld) -> None:
    agent = await world.agent(allows_unsandboxed=True)
    assert await world.storage.events.ready_agent(agent.id) is None

    first = await world.append(agent)
    await world.append(agent)
    ready = ReadyAgent(agent.id, agent.workspace_id, agent.tenant_id, ("gpu",), True, first.created_at, None)  # noqa: FBT003
    assert await world.storage.events.ready_agent(agent.id) == ready

    lease = (await world.claim(agent)).lease
    assert await world.storage.events.ready_agent(agent.id) is None

    await world.end(lease, EventEnd(EventStatus.PROCESSED))
    again = await world.storage.events.ready_agent(agent.id)
    assert again is not None
    assert again.last_runner_id == lease.runner_id


async def test_the_ready_are_walked_by_pages_in_order_of_their_ids(world: StorageWorld) -> None:
    agents = [await world.agent() for _ in range(9)]
    for agent in agents:
        for _ in range(2):
            await world.append(agent)
    await world.claim(agents[4])
    await world.storage.zombies.save(replace(agents[6], status=ZombieStatus.STOPPED, version=2), ())
    expected = sorted(a.id for i, a in enumerate(agents) if i not in {4, 6})
    found: list[UUID] = []
    after = None
    while part := await world.storage.events.ready(after=after, limit=3):
        found += [r.zombie_id for r in part]
        after = part[-1].zombie_id

    assert found == expected


async def test_nothing_is_ready_in_a_paused_workspace(world: StorageWorld) -> None:
    agent = await world.agent()
    await world.append(agent)
    workspace = await world.storage.workspaces.load(world.workspace_id)
    assert workspace is not None

    await world.storage.workspaces.save(replace(workspace, paused=True))
    assert await world.storage.events.ready_agent(agent.id) is None
    assert list(await world.storage.events.ready(after=None, limit=9)) == []


async def test_lists_are_read_without_what_they_do_not_show(world: StorageWorld) -> None:
    zombies = world.storage.zombies
    cron = {"type": "cron", "schedule": "0 5 * * *"}
    agents = [
        await world.agent(compiled={"triggers": [cron], "tools": ["http"]}),
        await world.agent(name="a_b", status=ZombieStatus.PAUSED, compiled={"triggers": []}),
        await world.agent(),
    ]
    ids = [agent.id for agent in agents]
    gone, theirs = new_id(), await (await world.beside()).agent()
    await world.append(agents[0])

    whole = await zombies.list(world.workspace_id, limit=9)
    listed = await zombies.summaries(world.workspace_id, limit=9)
    assert [replace(one, triggers=list(one.triggers)) for one in listed] == [
        replace(summary_of(one), triggers=list(one.compiled.get("triggers", ()))) for one in whole
    ]
    assert [one.id for one in listed] == ids[::-1]
    assert [list(one.triggers) for one in listed] == [[], [], [cron]]

    page = Page(listed[0].created_at, listed[0].id)
    assert await zombies.summaries(world.workspace_id, limit=1, after=page) == listed[1:2]
    assert await zombies.summaries(world.workspace_id, limit=9, status=ZombieStatus.PAUSED) == listed[1:2]
    assert await zombies.summaries(world.workspace_id, limit=9, name_glob="a_*") == listed[1:2]

    assert await zombies.names([*ids[:2], gone, theirs.id]) == {
        agents[0].id: agents[0].name,
        agents[1].id: "a_b",
        theirs.id: theirs.name,
    }
    assert [one.id for one in await zombies.load_many([ids[2], gone, ids[0]])] == [ids[2], ids[0]]
    assert [*await zombies.load_many(ids)] == [await zombies.load(one) for one in ids]

    [event] = await world.storage.events.list(world.workspace_id, limit=9)
    found = await world.storage.events.search(
        world.workspace_id, parse_filter("status:received", now=world.now), limit=9
    )
    assert (event.zombie_name, [one.zombie_name for one in found.events]) == (
        agents[0].name,
        [agents[0].name],
    )


async def test_an_agent_is_read_with_its_workspace_s_pause_and_a_version_that_is_known_stays(
    world: StorageWorld,
) -> None:
    zombies, workspaces = world.storage.zombies, world.storage.workspaces
    agent = await world.agent()
    workspace = await workspaces.load(world.workspace_id)
    assert workspace is not None
    assert await zombies.load_with_pause(agent.id) == (agent, False)
    assert await zombies.load_with_pause(agent.id, agent) == (agent, False)

    await workspaces.save(replace(workspace, paused=True))
    other = replace(agent, version=2, config_version_id=new_id(), config_revision=2, compiled={"tools": []})
    await zombies.save(other, (), world.config_of(other))

    assert await zombies.load_with_pause(agent.id, agent) == (other, True)
    assert await zombies.load_with_pause(new_id()) is None


async def test_where_an_agent_belongs_is_told_without_what_it_is_made_of(world: StorageWorld) -> None:
    agent = await world.agent(status=ZombieStatus.STOPPED)

    assert await world.storage.zombies.standing(agent.id) == AgentStanding(
        world.workspace_id, world.tenant_id, PlanTier.FREE, ZombieStatus.STOPPED
    )
    assert await world.storage.zombies.standing(new_id()) is None


async def test_the_versions_of_many_agents_are_seen_at_once_and_whether_they_may_work(
    world: StorageWorld,
) -> None:
    agent, other = await world.agent(), await world.agent()
    await world.storage.zombies.save(
        replace(other, version=2, status=ZombieStatus.STOPPED), (world.frame(other, "status_changed"),)
    )
    workspace = await world.storage.workspaces.load(world.workspace_id)
    assert workspace is not None

    before = await world.storage.zombies.look({agent.id, other.id, new_id()})
    await world.storage.workspaces.save(replace(workspace, paused=True))
    after = await world.storage.zombies.look({agent.id})

    assert before == {
        agent.id: SeenAgent(1, workspace_paused=False),
        other.id: SeenAgent(2, workspace_paused=False),
    }
    assert after == {agent.id: SeenAgent(1, workspace_paused=True)}
    assert await world.storage.zombies.look(set()) == {}
