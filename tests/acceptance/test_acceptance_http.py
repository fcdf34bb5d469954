"""The whole path over real HTTP, on a real database."""

from sexton_storage.postgres import PostgresStorage
from tests.worlds.event_stream import listening
from tests.worlds.http import open_http_world_on
from tests.worlds.main_path import tell


async def test_an_event_goes_from_webhook_to_evidence_on_postgresql(
    postgres_storage: PostgresStorage,
) -> None:
    async with open_http_world_on(postgres_storage) as world:
        await tell(world)


async def test_the_stream_is_resumed_by_number_after_a_restart(postgres_storage: PostgresStorage) -> None:
    async with open_http_world_on(postgres_storage) as before:
        zombie, token, lease = await before.working()
        activity = f"/v1/runners/me/leases/{lease['lease_id']}/activity"
        shown = await before.post(activity, {"frames": [{"kind": "chunk", "text": "before"}]}, token)
        assert shown.status_code == 202

        key, path = before.api_key, f"{before.ws}/zombies/{zombie['zombie_id']}/events/stream"
        async with listening(before.base_url, path, key, last_event_id="2") as stream:
            assert (await stream.frame())["id"] == 3
    async with open_http_world_on(postgres_storage) as after:
        shown = await after.post(activity, {"frames": [{"kind": "chunk", "text": "after"}]}, token)
        assert shown.status_code == 202

        async with listening(after.base_url, path, key, last_event_id="3") as stream:
            frame = await stream.frame()
            assert (frame["id"], frame["text"]) == (4, "after")
