"""How the server was set up, told to those who look after it."""

from sexton_storage.records.users import Role
from tests.worlds.http import MAX_STREAMS_OPTION, HttpWorld
from tests.worlds.http_agents import code


async def test_platform_admins_see_the_options_of_the_server_and_nobody_else_does(world: HttpWorld) -> None:
    shown = (await world.get("/v1/admin/settings", world.admin_token())).json()

    assert [one["name"] for one in shown["items"]] == [MAX_STREAMS_OPTION.name]
    assert shown["items"][0]["source"] == "default"
    assert shown["version"]

    admin = world.user_token(Role.ADMIN)
    assert await code(world, "GET", "/v1/admin/settings", token=admin) == (403, "UZ-AUTH-021")
