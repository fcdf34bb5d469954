"""A flood of badly signed webhooks at one agent: its stream stays readable, and others do not notice."""

from collections import Counter
from uuid import UUID

import httpx2
import pytest
import trio

from sexton_actors.zombie.rejections import BURST
from sexton_http.answers import Problem
from sexton_http.gateway.per_agent_limit import Crowds
from sexton_storage.records.tenants import PlanTier
from tests.worlds.http import HttpWorld, open_http_world

FLOOD = 600
AT_ONCE = 24
SHARE = 4
"""A neighbour's delivery waits no longer than that many of the flood's take while it is under way."""


def rejections(world: HttpWorld, zombie_id: str) -> Counter[str]:
    frames = world.memory.tables.frames.get(UUID(zombie_id), [])
    return Counter(str(frame.data["reason"]) for frame in frames if frame.kind == "webhook_rejected")


async def test_a_flood_of_forgeries_fills_no_stream_and_starves_no_neighbour() -> None:
    async with open_http_world() as world:
        await world.keep_secret()
        victim, neighbour = await world.install("victim"), await world.install("neighbour")
        url, left = victim["webhook_urls"]["github"], FLOOD
        answers: Counter[int] = Counter()
        passed_meanwhile: list[int] = []

        async def forge() -> None:
            nonlocal left
            while left > 0:
                left -= 1
                answer = await world.deliver(url, **{"x-hub-signature-256": f"sha256={'0' * 64}"})
                answers[answer.status_code] += 1

        async def deliver() -> None:
            while left > 0:
                before = answers.total()
                answer = await world.deliver(neighbour["webhook_urls"]["github"])
                assert answer.status_code == 202, answer.text
                passed_meanwhile.append(answers.total() - before)

        async with trio.open_nursery() as nursery:
            for _ in range(AT_ONCE):
                nursery.start_soon(forge)
            nursery.start_soon(deliver)
        assert answers == {401: FLOOD}

        shown = rejections(world, victim["zombie_id"])
        assert set(shown) == {"webhook_rejected: signature_mismatch"}
        assert 1 <= shown.total() <= BURST + 1
        assert not rejections(world, neighbour["zombie_id"])

        # Fair: whoever asks once is served among the others, not behind them. With that many at once, a turn
        # is that many answers of theirs to one of his.
        typical = sorted(passed_meanwhile)[len(passed_meanwhile) // 2]
        assert typical <= SHARE * AT_ONCE, passed_meanwhile

        genuine = await world.deliver(url)
        assert genuine.status_code == 202


async def test_every_kind_of_refusal_has_its_own_place_in_the_stream() -> None:
    async with open_http_world() as world:
        await world.keep_secret()
        zombie = await world.install()
        url = zombie["webhook_urls"]["github"]
        for _ in range(3 * BURST):
            await world.deliver(url, **{"x-hub-signature-256": "x"})
        await world.deliver(url, **{"x-hub-signature-256": ""})
        shown = rejections(world, zombie["zombie_id"])

        assert shown["webhook_rejected: signature_malformed"] <= BURST + 1
        assert shown["webhook_rejected: signature_missing"] == 1


async def test_what_a_rate_turns_away_is_shown_a_few_times_and_told_when_to_come_again() -> None:
    async with open_http_world(address_rate=None) as world:
        await world.keep_secret()
        zombie = await world.install()
        world.set_plan(PlanTier.FREE)
        url, answers = zombie["webhook_urls"]["github"], list[httpx2.Response]()

        async def deliver() -> None:
            for _ in range(10):
                answers.append(await world.deliver(url))

        async with trio.open_nursery() as nursery:
            for _ in range(12):
                nursery.start_soon(deliver)
        refused = [answer for answer in answers if answer.status_code == 429]
        assert refused
        assert {answer.json()["error_code"] for answer in refused} == {"UZ-REQ-006"}
        assert all(int(answer.headers["retry-after"]) >= 1 for answer in refused)

        shown = rejections(world, zombie["zombie_id"])
        assert 1 <= shown["webhook_rejected: rate_limited"] <= BURST + 1


def test_a_crowd_at_one_agent_s_door_leaves_room_for_all_others() -> None:
    crowds, one, other = Crowds(2), UUID(int=1), UUID(int=2)
    with crowds.room_for(one), crowds.room_for(one), crowds.room_for(other):
        with pytest.raises(Problem) as refused, crowds.room_for(one):
            pass

        assert (refused.value.code, refused.value.status, refused.value.wait_s) == ("UZ-API-003", 503, 1)
        assert repr(crowds) == "<Crowds, 2 agents, 2 each>"
    with crowds.room_for(one):
        assert repr(crowds) == "<Crowds, 1 agents, 2 each>"
