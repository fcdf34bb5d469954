"""A pause of a workspace holds for the next delivery."""

from tests.worlds.http import HttpWorld


async def test_a_pause_holds_from_the_next_delivery_on_and_so_does_its_end(world: HttpWorld) -> None:
    await world.keep_secret()
    zombie = await world.install("doctor")
    url = zombie["webhook_urls"]["github"]
    assert (await world.deliver(url)).status_code == 202

    for paused, status in ((True, 402), (False, 202)):
        await world.call("PATCH", world.ws, json={"paused": paused})
        # No time has passed: what was remembered before would still be believed.
        assert (await world.deliver(url)).status_code == status
