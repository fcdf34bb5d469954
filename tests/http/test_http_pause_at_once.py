"""A pause of a workspace holds for the next delivery."""

from tests.http.house import House


async def test_a_pause_holds_from_the_next_delivery_on_and_so_does_its_end(house: House) -> None:
    await house.keep_secret()
    zombie = await house.install("doctor")
    url = zombie["webhook_urls"]["github"]
    assert (await house.deliver(url)).status_code == 202

    for paused, status in ((True, 402), (False, 202)):
        await house.call("PATCH", house.ws, json={"paused": paused})
        # No time has passed: what was remembered before would still be believed.
        assert (await house.deliver(url)).status_code == status
