"""What runners say that they have, and what it keeps from them and gives them."""

from typing import Any

import pytest
import trio

from tests.patience import PATIENCE_S
from tests.worlds.http import HttpWorld

NEEDS = {"cpu>=0.5", "memory>=2048MiB", "wall>=1800s", "image:web"}
CONFIG = "image: web\nresources: {cpu: 0.5, memory: 2GiB, wall: 30m}"


async def shown(world: HttpWorld, agent: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = (await world.get(f"{world.ws}/zombies/{agent['zombie_id']}")).json()
    return found


async def test_an_event_waits_for_a_runner_that_gives_a_run_as_much_and_says_what_lacks(
    world: HttpWorld,
) -> None:
    await world.keep_secret()
    agent = await world.install(config=CONFIG, tags="gpu")
    assert (await world.deliver(agent["webhook_urls"]["github"])).status_code == 202

    seen = await shown(world, agent)

    assert (seen["waiting_for"], set(seen["unmet_needs"])) == ("runner", {"gpu", *NEEDS})

    small = ["cpu<=8", "memory<=1024MiB", "wall<=3600s", "cpu-quota"]
    token = await world.enrol(labels=["gpu"], offers=small)
    beat = await world.post("/v1/runners/me/heartbeats", {"active_lease_ids": []}, token)
    assert beat.status_code == 200, beat.text

    told = (await world.get("/v1/runners/me", token)).json()
    assert told["offers"] == sorted(small)
    assert (await world.post("/v1/runners/me/leases", {}, token)).json()["leases"] == []
    assert (await shown(world, agent))["unmet_needs"] == ["image:web", "memory>=2048MiB"]

    queue = (await world.get("/v1/fleet/queue", world.admin_token())).json()
    assert [set(row["required_tags"]) for row in queue["unsatisfiable"]] == [{"gpu", *NEEDS}]

    larger = {"active_lease_ids": [], "offers": ["cpu<=0.5", "memory<=2048MiB", "wall<=1800s", "image:web"]}
    leases: list[dict[str, Any]] = []
    async with trio.open_nursery() as nursery:

        async def work() -> None:
            # The poll that is open when the runner speaks ends, as a runner's next one is by what it said.
            while not leases:
                answer = await world.post("/v1/runners/me/leases", {"wait_ms": 20_000}, token)
                leases.extend(answer.json()["leases"])

        nursery.start_soon(work)
        await trio.sleep(0.05)
        with trio.fail_after(PATIENCE_S):
            assert (await world.post("/v1/runners/me/heartbeats", larger, token)).status_code == 200
            while not leases:
                await trio.sleep(0.01)

    assert leases[0]["policy"]["image"] == "web"
    assert leases[0]["policy"]["resources"] == {"cpu_millis": 500, "memory_mib": 2048, "wall_s": 1800}

    seen = await shown(world, agent)

    assert (seen["waiting_for"], seen["unmet_needs"]) == (None, [])


async def test_a_run_that_names_an_mcp_server_waits_for_a_runner_that_has_it(world: HttpWorld) -> None:
    await world.keep_secret()
    agent = await world.install(config="tools: [mcp:files, tickets.open]")
    assert (await world.deliver(agent["webhook_urls"]["github"])).status_code == 202

    token = await world.enrol(offers=["mcp:files"])
    assert (await world.post("/v1/runners/me/leases", {}, token)).json()["leases"] == []

    seen = await shown(world, agent)

    assert (seen["waiting_for"], seen["unmet_needs"]) == ("runner", ["mcp:tickets"])

    both = await world.enrol("h2", offers=["mcp:files", "mcp:tickets"])
    assert (await world.lease(both))["event"]["zombie_id"] == agent["zombie_id"]


@pytest.mark.parametrize(
    "offer",
    ["reserved:pci", "gpu", "image:", "image:../../etc", "memory<=lots", "x" * 300, "cpu>=1", "wall<=-1s"],
)
async def test_a_runner_offers_only_what_is_known_to_be_an_offer(world: HttpWorld, offer: str) -> None:
    token = await world.enrol()
    refused = await world.post("/v1/runners/me/heartbeats", {"offers": [offer]}, token)

    assert (refused.status_code, refused.json()["error_code"]) == (400, "UZ-REQ-001")
    assert (await world.get("/v1/runners/me", token)).json()["offers"] == []
