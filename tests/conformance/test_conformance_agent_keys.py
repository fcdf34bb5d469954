"""Keys of agents: of one agent each, and gone with it."""

from typing import Any

import pytest
from msgspec.structs import replace

from sexton_storage.errors import NameTaken
from sexton_storage.records.agent_keys import AgentKey
from sexton_storage.records.zombies import Zombie
from tests.worlds.storage import StorageWorld, new_id


def key_of(agent: Zombie, name: str = "ci", **changes: Any) -> AgentKey:
    key = AgentKey(
        id=new_id(),
        tenant_id=agent.tenant_id,
        workspace_id=agent.workspace_id,
        zombie_id=agent.id,
        name=name,
        description="for the build",
        token_hash=new_id().bytes * 2,
        created_at=agent.created_at,
    )
    return replace(key, **changes)


async def test_a_key_is_found_by_its_hash_and_in_its_workspace_only(world: StorageWorld) -> None:
    key = key_of(await world.agent())
    keys = world.storage.agent_keys

    assert await keys.create(key)
    assert await keys.find_by_hash(key.token_hash) == key
    assert await keys.find_by_hash(b"?" * 32) is None
    assert await keys.load(key.workspace_id, key.id) == key
    assert await keys.load(new_id(), key.id) is None


async def test_a_name_is_taken_within_its_agent_only(world: StorageWorld) -> None:
    agent, other = await world.agent(), await world.agent()
    keys = world.storage.agent_keys
    assert await keys.create(key_of(agent))

    with pytest.raises(NameTaken):
        await keys.create(key_of(agent))
    assert await keys.create(key_of(other))


async def test_no_key_is_made_for_an_agent_that_does_not_exist(world: StorageWorld) -> None:
    key = key_of(world.agent_record())

    assert not await world.storage.agent_keys.create(key)
    assert await world.storage.agent_keys.find_by_hash(key.token_hash) is None


async def test_keys_are_listed_newest_first_by_page_and_by_agent(world: StorageWorld) -> None:
    agent, other = await world.agent(), await world.agent()
    keys = world.storage.agent_keys
    made = [key_of(agent, f"k{n}", created_at=1000 + n) for n in range(5)]
    for key in (*made, key_of(other, created_at=1)):
        assert await keys.create(key)
    of_agent, total = await keys.list(world.workspace_id, zombie_id=agent.id, page=2, page_size=2)
    assert ([key.name for key in of_agent], total) == (["k2", "k1"], 5)

    of_all, total = await keys.list(world.workspace_id, zombie_id=None, page=1, page_size=100)
    assert ([key.name for key in of_all], total) == (["k4", "k3", "k2", "k1", "k0", "ci"], 6)
    assert await keys.list(new_id(), zombie_id=None, page=1, page_size=9) in (([], 0), ((), 0))


async def test_a_deleted_key_is_gone_and_only_its_workspace_deletes_it(world: StorageWorld) -> None:
    key = key_of(await world.agent())
    keys = world.storage.agent_keys
    await keys.create(key)

    assert not await keys.delete(new_id(), key.id)
    assert await keys.delete(key.workspace_id, key.id)
    assert not await keys.delete(key.workspace_id, key.id)
    assert await keys.find_by_hash(key.token_hash) is None


async def test_the_time_of_the_last_use_only_moves_forward(world: StorageWorld) -> None:
    key = key_of(await world.agent())
    keys = world.storage.agent_keys
    await keys.create(key)
    for at in (50, 40, 60):
        await keys.touch([(key.id, at), (new_id(), at)])
    kept = await keys.load(key.workspace_id, key.id)

    assert kept is not None
    assert kept.last_used_at == 60


async def test_keys_go_with_their_agent(world: StorageWorld) -> None:
    agent, other = await world.agent(), await world.agent()
    keys = world.storage.agent_keys
    gone, stays = key_of(agent), key_of(other)
    await keys.create(gone)
    await keys.create(stays)

    assert await world.storage.zombies.delete(agent.id)
    assert await keys.find_by_hash(gone.token_hash) is None
    assert await keys.find_by_hash(stays.token_hash) == stays
