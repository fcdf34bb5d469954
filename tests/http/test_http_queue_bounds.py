"""How many events may wait: what is over the bound is refused whole, what was taken in is not lost."""

import pytest

from sexton_actors.backlog import Backlog, QueueBounds
from sexton_actors.periodic.census import Count
from sexton_storage.postgres import PostgresStorage
from tests.http.test_http_own_codes import FORMS, code, install_svix, send
from tests.worlds.http import HttpWorld, open_http_world, open_http_world_on
from tests.worlds.http_agents import report

NONE = 0


def bound(world: HttpWorld, *, agent: int = NONE, workspace: int = NONE, age_s: float = NONE) -> Backlog:
    backlog = world.actors_world.backlog
    backlog.bounds = QueueBounds(agent, workspace, age_s)
    return backlog


async def count(world: HttpWorld) -> None:
    """Have the database counted now."""
    await world.system.ask("census", "", Count())


async def test_a_full_queue_takes_no_more_and_forgets_nothing(postgres_storage: PostgresStorage) -> None:
    async with open_http_world_on(postgres_storage) as world:
        zombie_id = await install_svix(world)
        bound(world, agent=3)
        paths = [form(zombie_id) for form in FORMS.values()]
        agent, token = f"{world.ws}/zombies/{zombie_id}", await world.enrol()
        for number, path in enumerate(paths):
            assert await send(world, path, b'{"type":"a","n":%d}' % number) == (202, "")
        for path in paths:
            assert await send(world, path, b'{"type":"a","n":9}') == (503, "UZ-EVENT-002")
        assert await send(world, paths[0], b'{"type":"a","n":1}') == (200, ""), "a repeat is no new event"

        refused = await world.post(f"{agent}/messages", {"message": "m"})
        assert (refused.status_code, refused.json()["error_code"]) == (429, "UZ-EVENT-002")
        assert (refused.json()["bound"], int(refused.headers["retry-after"]) >= 1) == ("agent", True)

        lease = await world.lease(token)
        await report(world, token, lease)
        done = lease["event"]["event_id"]
        assert await code(world, "POST", f"{agent}/messages", json={"message": "m"}) == (202, "")

        for where in (agent, world.ws):
            assert await code(world, "POST", f"{where}/events/{done}/replay") == (429, "UZ-EVENT-002")

        await count(world)
        assert await send(world, paths[0], b'{"type":"a","n":9}') == (503, "UZ-EVENT-002")

        waiting = [(row.waiting, row.workspace_id) for row in await postgres_storage.events.backlog()]
        assert waiting == [(3, world.installation.workspace_id)]

        refusals = world.registry.get_sample_value("sexton_queue_full_total", {"bound": "agent"})
        assert refusals == 7


async def test_a_workspace_and_the_oldest_event_have_bounds_of_their_own() -> None:
    async with open_http_world() as world:
        one, other = await world.install("one"), await world.install("other")
        first, second = (f"{world.ws}/zombies/{made['zombie_id']}/messages" for made in (one, other))
        bound(world, workspace=2)
        for path in (first, second):
            assert await code(world, "POST", path, json={"message": "m"}) == (202, "")
        full = await world.post(second, {"message": "m"})
        assert (full.status_code, full.json()["bound"]) == (429, "workspace")

        bound(world, age_s=60)
        assert await code(world, "POST", first, json={"message": "m"}) == (202, "")

        world.pass_ms(61_000)
        await count(world)
        late = await world.post(first, {"message": "m"})
        assert (late.status_code, late.json()["bound"]) == (429, "age")

        bound(world)
        assert await code(world, "POST", first, json={"message": "m"}) == (202, "")


@pytest.mark.parametrize("refused", [{"message": ""}, {"message": "m" * 10_000}])
async def test_what_is_not_kept_is_not_counted(world: HttpWorld, refused: dict[str, str]) -> None:
    zombie = await world.install()
    path = f"{world.ws}/zombies/{zombie['zombie_id']}/messages"
    bound(world, agent=1)

    assert (await world.post(path, refused)).status_code == 400

    assert await code(world, "POST", path, json={"message": "m"}) == (202, "")
    assert await code(world, "POST", path, json={"message": "m"}) == (429, "UZ-EVENT-002")
