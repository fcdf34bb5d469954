"""What a page of the console costs is counted: questions to the storage, and calls of Python.

No busy machine changes these figures. Pages are asked for among few agents, then among many.
"""

import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any
from uuid import UUID

import pytest
import trio
from msgspec.structs import replace

from sexton_http.answers import Problem
from sexton_http.pages.side_by_side import AT_ONCE, side_by_side
from sexton_http.routes.console.now import LOOKED_AT
from sexton_storage.memory.base import MemoryStore
from sexton_storage.records.failures import END_CHARS, FailureGroup
from sexton_storage.records.zombies import ZombieStatus
from tests.worlds.browser import Visitor, text_of, visiting
from tests.worlds.http import HttpWorld
from tests.worlds.http_agents import steer
from tests.worlds.storage import new_id

ROOM = f"{os.sep}sexton_http{os.sep}"
MOST_BYTES = 100_000
MANY = 120
"""More than any list of agents holds."""
LOOKS = 3
"""Rounds of actors make calls, too: the least of some looks is the page's own."""
ROUNDS = f"{os.sep}sexton_actors{os.sep}periodic{os.sep}"


@pytest.fixture
async def visitor(world: HttpWorld) -> AsyncIterator[Visitor]:
    async with visiting(world) as browser:
        yield await browser.sign_in()


class Cost:
    """What one look at a page took."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.calls = 0

    def note(self, frame: FrameType, event: str, _what: Any) -> None:
        self.calls += event == "call" and ROOM in frame.f_code.co_filename


def by_rounds(frame: FrameType | None) -> bool:
    """Whether a round of actors asks; on a busy machine one may fall into each look at a page."""
    while frame is not None:
        if ROUNDS in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


@contextmanager
def counted() -> Iterator[Cost]:
    cost, before = Cost(), MemoryStore._round_trip

    async def noted(store: MemoryStore) -> None:
        if not by_rounds(sys._getframe(1)):
            cost.asked[f"{type(store).__name__}.{sys._getframe(1).f_code.co_name}"] += 1
        await before(store)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryStore, "_round_trip", noted)
        sys.setprofile(cost.note)
        try:
            yield cost
        finally:
            sys.setprofile(None)


async def cost_of(visitor: Visitor, path: str) -> Cost:
    """The least of some looks, each counted from the request to the answer; the first fills what is kept."""
    await visitor.get(path)
    least = None
    for _ in range(LOOKS):
        with counted() as cost:
            answer = await visitor.client.get(path)
        assert answer.status_code == 200, answer.text

        if least is not None:
            cost.asked &= least.asked
            cost.calls = min(cost.calls, least.calls)
        least = cost
    assert least is not None
    return least


async def copies(world: HttpWorld, zombie_id: str, count: int, **changes: Any) -> None:
    """Agents like one that is installed, and newer."""
    zombies = world.storage.zombies
    agent = await zombies.load(UUID(zombie_id))
    assert agent is not None
    config = await zombies.load_config(agent.config_version_id)
    assert config is not None

    for number in range(1, count + 1):
        other, version = new_id(), new_id()
        like = replace(
            agent,
            id=other,
            name=f"{agent.name}-{number}",
            config_version_id=version,
            created_at=agent.created_at + number,
            **changes,
        )
        await zombies.create(like, replace(config, id=version, zombie_id=other))


async def test_a_page_costs_the_same_among_few_agents_and_among_many(
    world: HttpWorld, visitor: Visitor
) -> None:
    home = f"/console/{world.installation.workspace_id}"
    await world.keep_secret()
    elder, halted = await world.install("elder"), await world.install("halted")
    await steer(world, elder)
    stopped = await world.storage.zombies.load(UUID(halted["zombie_id"]))
    assert stopped is not None

    await world.storage.zombies.save(
        replace(stopped, status=ZombieStatus.PAUSED, version=stopped.version + 1), ()
    )
    few = await cost_of(visitor, f"{home}/now")

    await copies(world, elder["zombie_id"], MANY)
    many = await cost_of(visitor, f"{home}/now")

    assert many.calls <= 1.02 * few.calls
    assert many.asked.total() <= 17, many.asked
    assert {question: times for question, times in many.asked.items() if times > 1} == {
        "MemoryEvents.list": 2,  # What runs, and what waits.
        "MemoryTenants.load": 2,  # Whose browser it is, and the balance.
    }

    page = text_of((await visitor.get(f"{home}/now")).text)
    assert "elder: No runner" in page, "an agent is named that no list of agents shows"
    assert "halted is paused by the platform" in page

    events = await visitor.get(f"{home}/events?agent={elder['zombie_id']}")
    assert "agent elder ✕" in text_of(events.text)
    assert f'<option value="{elder["zombie_id"]}" selected>elder</option>' in events.text


async def test_what_is_stuck_is_named_however_much_has_come_since(world: HttpWorld, visitor: Visitor) -> None:
    picky, busy = await world.install("picky", tags="gpu"), await world.install("busy")
    await steer(world, picky)
    for _ in range(LOOKED_AT):
        await steer(world, busy)

    page = text_of((await visitor.get(f"/console/{world.installation.workspace_id}/now")).text)

    assert "picky: No runner" in page


async def test_the_page_of_failures_stays_small_however_much_fails(
    world: HttpWorld, visitor: Visitor
) -> None:
    zombie = UUID((await world.install())["zombie_id"])
    home, now = world.installation.workspace_id, world.actors_world.now_ms()
    for number in range(MANY):
        one = FailureGroup(
            id=new_id(),
            tenant_id=world.installation.tenant_id,
            workspace_id=home,
            zombie_id=zombie,
            digest=bytes([number]),
            failure_label="agent_run",
            error_code="UZ-EXEC-013",
            message="m" * 2 * END_CHARS,
            sample_event_id=new_id(),
            first_seen_at=now,
            last_seen_at=now,
            count=1,
        )
        world.memory.tables.failure_groups[one.id] = one

    page = await visitor.get(f"/console/{home}/failures")

    assert len(page.content) <= MOST_BYTES
    assert "cursor=" in page.text
    assert page.text.count("doctor: agent_run") == 20


async def test_questions_are_asked_side_by_side_but_not_all_at_once(autojump_clock: object) -> None:
    running = most = 0

    async def question(number: int, *, times: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await trio.sleep(1)
        running -= 1
        return number * times

    began = trio.current_time()
    async with side_by_side() as ask:
        asked = [ask(question, number, times=2) for number in range(2 * AT_ONCE)]

    assert [one.answer for one in asked] == [2 * number for number in range(2 * AT_ONCE)]
    assert (most, trio.current_time() - began) == (AT_ONCE, 2)


async def test_what_one_question_is_refused_with_is_raised_as_if_it_were_asked_alone(
    autojump_clock: object,
) -> None:
    cut: list[str] = []

    async def refused() -> None:
        raise Problem("UZ-EVENT-001", "there is none")

    async def slow() -> None:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            cut.append("slow")
            raise

    async def page() -> None:
        async with side_by_side() as ask:
            ask(slow)
            await trio.sleep(1)
            ask(refused)

    with pytest.raises(Problem) as told:
        await page()
    assert (told.value.code, cut) == ("UZ-EVENT-001", ["slow"])

    with trio.move_on_after(1) as scope:
        async with side_by_side() as ask:
            ask(slow)
    assert scope.cancelled_caught
