"""The records of agents, and what is ready to run."""

from uuid import UUID

import pytest
from msgspec.structs import replace

from sexton_storage.errors import Conflict, NameTaken
from sexton_storage.paging import Page
from sexton_storage.records.configs import ConfigStatus, ConfigVersion
from sexton_storage.records.events import EventStatus, ReadyAgent
from sexton_storage.records.gates import GateStatus
from sexton_storage.records.leases import LeaseStatus
from sexton_storage.records.zombies import ZombieStatus
from sexton_storage.writes import AppendEvent, EventEnd, OpenGate
from tests.conformance.house import House, new_id


async def test_an_agent_is_loaded_as_it_was_created(house: House) -> None:
    agent = await house.agent(allows_unsandboxed=True, required_tags=("a", "b"))
    assert await house.storage.zombies.load(agent.id) == agent
    assert await house.storage.zombies.load_config(agent.config_version_id) == house.config_of(agent)
    assert await house.storage.zombies.load(new_id()) is None
    assert await house.storage.zombies.load_config(new_id()) is None


async def test_a_name_is_used_once_in_a_workspace(house: House) -> None:
    agent = await house.agent(name="sexton")
    with pytest.raises(NameTaken):
        await house.agent(name="sexton")
    other = await house.agent(name="other")
    with pytest.raises(NameTaken):
        await house.storage.zombies.save(replace(other, name="sexton", version=2), ())
    await (await house.beside()).agent(name="sexton")
    await house.storage.zombies.delete(agent.id)
    await house.agent(name="sexton")


async def test_a_save_goes_by_version(house: House) -> None:
    agent = await house.agent()
    stopped = replace(agent, status=ZombieStatus.STOPPED, version=2, updated_at=agent.updated_at + 1)
    await house.storage.zombies.save(stopped, (house.frame(agent, "status_changed"),))
    assert await house.storage.zombies.load(agent.id) == stopped
    with pytest.raises(Conflict):
        await house.storage.zombies.save(replace(agent, version=2), (house.frame(agent, "status_changed"),))
    assert await house.storage.zombies.load(agent.id) == stopped
    assert await house.storage.frames.bounds(agent.id) == (1, 1)
    with pytest.raises(Conflict):
        await house.storage.zombies.save(
            house.agent_record(version=2, config_version_id=agent.config_version_id), ()
        )


async def test_a_save_leaves_what_events_move(house: House) -> None:
    agent = await house.agent()
    event = await house.append(agent)
    await house.storage.zombies.save(replace(agent, version=2, last_event_at=None), ())
    loaded = await house.storage.zombies.load(agent.id)
    assert loaded is not None
    assert loaded.last_event_at == event.created_at


async def test_a_new_configuration_takes_the_place_of_the_old(house: House) -> None:
    agent = await house.agent()
    config = ConfigVersion(
        new_id(), agent.id, 2, ConfigStatus.COMPILED, "# new", "# t", {"tools": ["sql"]}, house.now
    )
    changed = replace(agent, version=2, config_version_id=config.id, config_revision=2, required_tags=("x",))
    await house.storage.zombies.save(changed, (), config)
    assert await house.storage.zombies.load(agent.id) == replace(changed, compiled=config.compiled)
    assert await house.storage.zombies.load_config(config.id) == replace(config, status=ConfigStatus.ACTIVE)
    old = await house.storage.zombies.load_config(agent.config_version_id)
    assert old is not None
    assert old.status is ConfigStatus.SUPERSEDED
    back = replace(changed, version=3, config_version_id=old.id, config_revision=1)
    await house.storage.zombies.save(back, (), old)
    loaded = await house.storage.zombies.load(agent.id)
    assert loaded is not None
    assert loaded.compiled == agent.compiled


async def test_agents_are_listed_newest_first_by_pages(house: House) -> None:
    agents = [await house.agent(created_at=house.now + i // 2) for i in range(7)]
    expected = sorted(agents, key=lambda a: (a.created_at, a.id), reverse=True)
    found: list[UUID] = []
    page = None
    while part := await house.storage.zombies.list(house.workspace_id, limit=3, after=page):
        found += [a.id for a in part]
        page = Page(part[-1].created_at, part[-1].id)
    assert found == [a.id for a in expected]
    assert await house.storage.zombies.count(house.workspace_id) == 7


async def test_agents_are_found_by_status_and_name(house: House) -> None:
    stopped = await house.agent(name="a_b", status=ZombieStatus.STOPPED)
    await house.agent(name="axb")
    await house.agent(name="a?b")
    await house.agent(name="a[x]b")
    listed = await house.storage.zombies.list(house.workspace_id, limit=9, status=ZombieStatus.STOPPED)
    assert [a.id for a in listed] == [stopped.id]
    by_glob = {
        g: await house.storage.zombies.list(house.workspace_id, limit=9, name_glob=g)
        for g in ("a_*", "a?b", "a[x]b", "a[*]b", "a*b", "%", "a\\?b")
    }
    expected = {"a_*": 1, "a?b": 1, "a[x]b": 1, "a[*]b": 1, "a*b": 4, "%": 0, "a\\?b": 0}
    assert {g: len(found) for g, found in by_glob.items()} == expected


async def test_a_kill_ends_all_that_is_open_in_one_commit(house: House) -> None:
    agent = await house.agent()
    running = await house.append(agent)
    lease = (await house.claim(agent)).lease
    waiting = await house.append(agent)
    at_gate = house.event_of(agent)
    gate = house.gate_of(at_gate)
    await house.storage.journal.write(AppendEvent(at_gate, None, None, None, (), gate))
    in_run = house.gate_of(running, lease)
    await house.storage.journal.write(OpenGate(in_run, lease.fencing_token, ()))
    now = house.now
    killed = replace(agent, status=ZombieStatus.KILLED, version=2)
    ids = await house.storage.zombies.kill(killed, (house.frame(agent, "status_changed"),), now)
    assert list(ids) == [lease.id]
    assert await house.storage.leases.load(lease.id) == replace(
        lease, status=LeaseStatus.CANCELLING, version=2
    )
    for event_id in (waiting.id, at_gate.id):
        ended = await house.storage.events.load(event_id)
        assert ended is not None
        assert (ended.status, ended.completed_at) == (EventStatus.CANCELLED, now)
    still = await house.storage.events.load(running.id)
    assert still is not None
    assert still.status is EventStatus.RUNNING
    for gate_id in (gate.id, in_run.id):
        closed = await house.storage.gates.load(gate_id)
        assert closed is not None
        assert (closed.status, closed.resolved_by, closed.updated_at) == (
            GateStatus.AUTO_KILLED,
            "system:kill",
            now,
        )
    frames = await house.storage.frames.read(agent.id, after=1, limit=9)
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
        await house.storage.zombies.kill(killed, (), now)


async def test_a_kill_of_an_idle_agent_has_no_leases(house: House) -> None:
    agent = await house.agent()
    assert not await house.storage.zombies.kill(replace(agent, version=2), (), house.now)
    loaded = await house.storage.zombies.load(agent.id)
    assert loaded is not None
    assert loaded.status is ZombieStatus.KILLED


async def test_a_deleted_agent_leaves_only_its_accounts(house: House) -> None:
    agent = await house.agent()
    event = await house.append(agent)
    claimed = await house.claim(agent)
    await house.storage.journal.write(
        OpenGate(gate := house.gate_of(event, claimed.lease), claimed.lease.fencing_token, ())
    )
    await house.end(claimed.lease, EventEnd(EventStatus.PROCESSED), nanos=5)
    assert await house.storage.zombies.delete(agent.id)
    assert not await house.storage.zombies.delete(agent.id)
    assert await house.storage.zombies.load(agent.id) is None
    assert await house.storage.zombies.load_config(agent.config_version_id) is None
    assert await house.storage.events.load(event.id) is None
    assert await house.storage.leases.load(claimed.lease.id) is None
    assert await house.storage.gates.load(gate.id) is None
    assert await house.storage.frames.bounds(agent.id) == (1, 0)
    assert await house.storage.frames.read(agent.id, after=0, limit=9) == []
    (row,) = await house.storage.metering.list(house.tenant_id, event.id)
    assert row.charged_nanos == 5


async def test_metering_rows_are_their_own_tenants(house: House) -> None:
    lease = await house.lease()
    await house.renew(lease)
    other = await house.beside()
    assert len(await house.storage.metering.list(house.tenant_id, lease.event_id)) == 1
    assert not await house.storage.metering.list(other.tenant_id, lease.event_id)
    assert not await house.storage.metering.list(house.tenant_id, new_id())


# --- ready --------------------------------------------------------------------------------------------------


async def test_an_agent_with_work_is_ready(house: House) -> None:
    agent = await house.agent(allows_unsandboxed=True)
    assert await house.storage.events.ready_agent(agent.id) is None
    first = await house.append(agent)
    await house.append(agent)
    ready = ReadyAgent(agent.id, agent.workspace_id, agent.tenant_id, ("gpu",), True, first.created_at, None)  # noqa: FBT003
    assert await house.storage.events.ready_agent(agent.id) == ready
    lease = (await house.claim(agent)).lease
    assert await house.storage.events.ready_agent(agent.id) is None
    await house.end(lease, EventEnd(EventStatus.PROCESSED))
    again = await house.storage.events.ready_agent(agent.id)
    assert again is not None
    assert again.last_runner_id == lease.runner_id


async def test_the_ready_are_walked_by_pages_in_order_of_their_ids(house: House) -> None:
    agents = [await house.agent() for _ in range(9)]
    for agent in agents:
        for _ in range(2):
            await house.append(agent)
    await house.claim(agents[4])
    await house.storage.zombies.save(replace(agents[6], status=ZombieStatus.STOPPED, version=2), ())
    expected = sorted(a.id for i, a in enumerate(agents) if i not in {4, 6})
    found: list[UUID] = []
    after = None
    while part := await house.storage.events.ready(after=after, limit=3):
        found += [r.zombie_id for r in part]
        after = part[-1].zombie_id
    assert found == expected


async def test_nothing_is_ready_in_a_paused_workspace(house: House) -> None:
    agent = await house.agent()
    await house.append(agent)
    workspace = await house.storage.workspaces.load(house.workspace_id)
    assert workspace is not None
    await house.storage.workspaces.save(replace(workspace, paused=True))
    assert await house.storage.events.ready_agent(agent.id) is None
    assert list(await house.storage.events.ready(after=None, limit=9)) == []
