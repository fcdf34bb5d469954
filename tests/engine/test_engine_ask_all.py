"""Asking many actors at once from one task."""

from __future__ import annotations

from functools import partial

import pytest
import trio
import trio.testing

from sexton_engine import (
    Actor,
    ActorCrashed,
    AskTimeout,
    Context,
    FamilySpec,
    MailboxFull,
    Reason,
    UnknownKind,
    open_system,
)
from tests.worlds.engine import (
    Clock,
    Defer,
    EngineWorld,
    Note,
    OutageError,
    Raise,
    Wait,
    plain_family,
    scripted_family,
    tree,
)


async def test_replies_come_in_the_order_of_the_questions_and_not_of_the_answers(
    autojump_clock: Clock,
) -> None:
    async with open_system(tree(scripted_family(EngineWorld()))) as system:
        asks = [(f"a{seconds}", Wait(seconds, str(seconds))) for seconds in (3, 1, 2)]
        began = trio.current_time()

        assert await system.ask_all("scripted", asks) == ["3", "1", "2"]
        assert trio.current_time() - began == pytest.approx(3)


async def test_one_actor_may_be_asked_many_times(autojump_clock: Clock) -> None:
    async with open_system(tree(scripted_family(EngineWorld()))) as system:
        assert await system.ask_all("scripted", [("a", Note(str(number))) for number in range(200)]) == list(
            range(1, 201)
        )
        assert await system.ask_all("scripted", []) == []


async def test_idle_actors_with_plain_handlers_are_asked_at_once(autojump_clock: Clock) -> None:
    world = EngineWorld()
    async with open_system(tree(plain_family(world))) as system:
        keys = [str(number) for number in range(100)]
        await system.ask_all("plain", [(key, Note("awake")) for key in keys])
        world.notes.clear()
        outage = OutageError("away")
        asks = [
            *((key, Note(key)) for key in keys),
            ("0", Wait(1, "x")),
            ("1", Raise(outage)),
            ("0", Note("y")),
        ]
        replies = await system.ask_all("plain", asks)

        assert replies == [2] * 100 + ["x", outage, 3]
        assert world.notes[:64] == keys[:64], "and then others had their turn"
        assert sorted(world.notes) == sorted([*keys, "begin x", "x", "y"])


class Gatherer(Actor):
    """Notes what is asked of it, and where a burst of questions begins and ends."""

    kind = "gatherer"

    def __init__(self, context: Context, notes: list[str]) -> None:
        super().__init__(context)
        self.notes = notes

    def on_burst_start(self) -> None:
        self.notes.append("start")

    def on_burst_end(self) -> None:
        self.notes.append("end")

    def on_receive(self, message: Note) -> int:
        self.notes.append(message.text)
        if message.text == "bad":
            raise ValueError(message.text)
        return 1


async def test_the_questions_to_idle_actors_are_one_burst_whatever_becomes_of_them(
    autojump_clock: Clock,
) -> None:
    notes: list[str] = []
    async with open_system(tree(FamilySpec("gatherer", partial(Gatherer, notes=notes)))) as system:
        await system.ask_all("gatherer", [("a", Note("x")), ("b", Note("y"))])
        assert notes == ["x", "y"], "they were asleep"

        notes.clear()
        asks = [("a", Note("x")), ("b", Note("bad")), ("a", Note("z")), ("c", Note("asleep"))]
        replies = await system.ask_all("gatherer", asks)

        assert replies[0] == replies[2] == replies[3] == 1
        assert isinstance(replies[1], ActorCrashed)
        assert notes[:5] == ["start", "x", "bad", "z", "end"]


async def test_what_ask_would_raise_stands_in_the_place_of_a_reply(autojump_clock: Clock) -> None:
    world = EngineWorld()
    async with open_system(tree(scripted_family(world))) as system:
        outage = OutageError("away")
        asks = [("a", Raise(outage)), ("b", Defer()), ("c", Raise(outage))]
        first, second, third = await system.ask_all("scripted", asks, timeout=5)
        assert first is third is outage
        assert isinstance(second, AskTimeout)

        with pytest.raises(UnknownKind):
            await system.ask_all("nobody", [("a", Note("x"))])


async def test_questions_that_are_cancelled_are_withdrawn(autojump_clock: Clock) -> None:
    world = EngineWorld()
    async with open_system(tree(scripted_family(world))) as system:
        with trio.move_on_after(1) as scope:
            await system.ask_all("scripted", [("a", Defer()), ("b", Defer())])
        assert scope.cancelled_caught
        assert [port.is_expired for port in world.ports] == [True, True]

        for port in world.ports:
            port.set("late")
        assert system.dead_letters.count(Reason.LATE_REPLY) == 2


async def test_many_questions_have_one_deadline(autojump_clock: Clock) -> None:
    world = EngineWorld()
    async with open_system(tree(scripted_family(world))) as system, trio.open_nursery() as nursery:
        await system.ask_all("scripted", [(str(number), Note("awake")) for number in range(50)])
        before = system.statistics().deadlines
        asks = [(str(number), Defer()) for number in range(50)]
        nursery.start_soon(partial(system.ask_all, "scripted", asks, timeout=9))
        await trio.testing.wait_all_tasks_blocked()

        assert system.statistics().deadlines == before + 1

        for port in world.ports:
            assert port.set("late, but in time")
        await trio.testing.wait_all_tasks_blocked()

        assert system.statistics().deadlines == before


async def test_what_was_answered_before_the_deadline_counts_and_what_comes_later_does_not(
    autojump_clock: Clock,
) -> None:
    world = EngineWorld()
    async with open_system(tree(scripted_family(world))) as system:
        asks = [("a", Note("x")), ("b", Defer()), ("c", Wait(9, "too late"))]
        first, second, third = await system.ask_all("scripted", asks, timeout=5)

        assert first == 1
        assert isinstance(second, AskTimeout)
        assert isinstance(third, AskTimeout)

        (port,) = world.ports
        assert port.is_expired
        assert not port.set("late")

        await trio.sleep(10)
        assert system.dead_letters.count(Reason.LATE_REPLY) == 2


async def test_a_mailbox_that_is_full_refuses_its_own_question_and_no_other(autojump_clock: Clock) -> None:
    async with open_system(tree(scripted_family(EngineWorld()))) as system:
        asks = [*(("a", Wait(1, "x")) for _ in range(2000)), ("b", Note("y"))]
        *many, other = await system.ask_all("scripted", asks, timeout=5000)

        refused = [reply for reply in many if isinstance(reply, MailboxFull)]

        assert len(refused) > 0
        assert [reply for reply in many if reply not in refused] == ["x"] * (2000 - len(refused))
        assert other == 1


async def test_a_question_whose_deadline_has_passed_in_the_mailbox_is_not_handled(
    autojump_clock: Clock,
) -> None:
    world = EngineWorld()
    async with open_system(tree(scripted_family(world))) as system:
        await system.ask_all("scripted", [("a", Wait(9, "x")), ("a", Note("y"))], timeout=5)
        await trio.sleep(10)

        assert "y" not in world.notes
        assert system.dead_letters.count(Reason.EXPIRED) == 1
