"""What folders have applied: one row a workspace, and no revision in place of another than its forerunner."""

from msgspec.structs import replace

from sexton_storage.records.applied import Applied
from tests.worlds.storage import StorageWorld


async def test_a_revision_takes_the_place_of_the_one_before_it_and_of_no_other(world: StorageWorld) -> None:
    applied = world.storage.applied
    items = {"agent/herald": {"folder": "crew", "fields": {"status": '"active"'}}}
    first = Applied(
        world.workspace_id, 1, applying=True, holder="a", items=items, updated_at=1_000, updated_by="user:1"
    )
    second = replace(first, revision=2, applying=False, holder="b", items={}, updated_by="user:2")

    assert await applied.load(world.workspace_id) is None
    assert not await applied.save(second)
    assert await applied.save(first)
    assert await applied.load(world.workspace_id) == first

    assert not await applied.save(replace(first, holder="b"))
    assert await applied.save(second)
    assert not await applied.save(replace(second, holder="c"))
    assert await applied.load(world.workspace_id) == second
