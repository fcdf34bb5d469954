"""An operator looks at one actor, at what it handles and why it crashed, and has it start again."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from sexton_engine import ActorStatistics, ActorStopped, Strategy, UnknownKind, open_system
from sexton_engine.recordings import RECORDED, RECORDINGS_MAX
from tests.worlds.engine import (
    Clock,
    Crash,
    Defer,
    Do,
    EngineWorld,
    Note,
    ScriptedActor,
    Wait,
    plain_family,
    scripted,
    scripted_family,
    tree,
)

ABC = ("a", "b", "c")


async def test_one_actor_is_seen_with_its_mail_timers_tasks_and_open_replies(autojump_clock: Clock) -> None:
    world = EngineWorld()

    async def busy(actor: ScriptedActor) -> None:
        actor.context.set_timer("late", 50, Note("late"))
        actor.context.set_timer("soon", 5, Note("soon"))
        actor.context.start_task(trio.sleep_forever)

    async with open_system(tree(scripted_family(world), scripted(world, "single"))) as system:
        await system.ask("scripted", "a", Do(busy))
        system.tell("scripted", "a", Defer())
        system.tell("scripted", "b", Note("one"))
        await trio.testing.wait_all_tasks_blocked()
        system.tell("scripted", "a", Wait(2))
        for _ in range(3):
            system.tell("scripted", "a", Note("waits"))
        await trio.sleep(1)
        found: ActorStatistics | None = system.inspection.actor("scripted", "a")
        seen, second = system.inspection.actors("scripted", limit=9)
        [single] = system.inspection.actors("single", limit=9)

        assert found == seen
        assert (seen.state, seen.handling, seen.handling_s) == ("awake", "Wait", 1)
        assert (seen.mailbox_depth, seen.mailbox_age_s, seen.mailbox_peak) == (3, 1, 4)
        assert list(seen.timers) == [("soon", 4), ("late", 49)]
        assert (seen.tasks, seen.replies_owed, seen.restarts) == (1, 0, 0)
        assert (second.key, second.mailbox_depth, second.is_single) == ("b", 0, False)
        assert single.is_single
        assert system.inspection.actor("scripted", "nobody") is None

        with pytest.raises(UnknownKind):
            system.inspection.actors("nobody", limit=1)
        assert [len(system.inspection.actors("scripted", limit=limit)) for limit in (0, 1, 2)] == [0, 1, 2]


async def test_a_crash_is_kept_with_its_message_and_traceback_as_text(autojump_clock: Clock) -> None:
    world = EngineWorld()
    async with open_system(tree(scripted_family(world), scripted(world, "single"))) as system:
        system.tell("scripted", "a", Crash(text="boom"))
        await trio.sleep(3)
        system.tell("single", "", Crash(text="bang"))
        await trio.sleep(3)
        newest, oldest = system.inspection.crashes()

        assert (newest.kind, newest.key, oldest.kind, oldest.key) == ("single", "", "scripted", "a")
        assert (oldest.message, oldest.error) == ("Crash", "ValueError('boom')")
        assert "in on_receive" in oldest.traceback
        assert newest.at - oldest.at == 3
        assert system.inspection.crashes("scripted", "a") == (oldest,)
        assert system.inspection.crashes("scripted", "b") == ()


async def test_a_restart_is_a_new_instance_with_the_mail_and_is_counted(autojump_clock: Clock) -> None:
    world = EngineWorld()
    spec = tree(scripted_family(world, shutdown_s=60), scripted(world, "single", shutdown_s=60))
    async with open_system(spec) as system:
        for kind, key in (("scripted", "a"), ("single", "")):
            await system.ask(kind, key, Note("before"))
            world.notes.clear()
            system.tell(kind, key, Wait(10, "finished"))
            await trio.testing.wait_all_tasks_blocked()
            system.tell(kind, key, Note("behind"))

            assert await system.inspection.restart(kind, key)
            await trio.sleep(1)
            name = f"{kind}/{key}"
            assert world.notes == ["finished", f"stop {name}", f"start {name}", "behind"]
            assert system.statistics().kind(kind).restarts == 1
            assert [node.restarts for node in system.tree().children if node.name == kind] == [1]
            assert system.statistics().kind(kind).crashes == 0

        assert not await system.inspection.restart("scripted", "nobody")
        assert system.dead_letters.total() == 0


async def test_a_restart_takes_down_with_it_whom_the_strategy_says(autojump_clock: Clock) -> None:
    world = EngineWorld()
    spec = tree(*(scripted(world, name) for name in ABC), strategy=Strategy.REST_FOR_ONE)
    async with open_system(spec) as system:
        world.notes.clear()
        assert await system.inspection.restart("b", "")

        await system.ask("c", "", Note("up"))

        assert world.notes == ["stop c/", "stop b/", "start b/", "start c/", "up"]
        assert [node.restarts for node in system.tree().children] == [0, 1, 0]


async def test_restarts_of_an_operator_never_end_the_system(autojump_clock: Clock) -> None:
    world = EngineWorld()
    async with open_system(tree(scripted(world, "single"))) as system:
        for _ in range(20):
            assert await system.inspection.restart("single", "")
            await system.ask("single", "", Note("lives"))

        assert system.statistics().kind("single").restarts == 20
        assert world.starts == 21


async def test_one_that_does_not_come_to_an_end_is_killed_and_gets_its_message_again(
    autojump_clock: Clock,
) -> None:
    world = EngineWorld()
    async with open_system(tree(scripted_family(world, shutdown_s=3))) as system:
        waits: list[str] = []

        async def once(actor: ScriptedActor) -> str:
            waits.append("began")
            await trio.sleep(1000 if len(waits) == 1 else 0)
            return "done"

        async with trio.open_nursery() as nursery:
            answers: list[str] = []

            async def ask() -> None:
                answers.append(await system.ask("scripted", "a", Do(once)))

            nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked()
            before = trio.current_time()

            assert await system.inspection.restart("scripted", "a")
            assert trio.current_time() - before == 3

        assert (waits, answers) == (["began", "began"], ["done"])


async def test_who_waits_for_a_deferred_reply_is_told_of_the_restart(autojump_clock: Clock) -> None:
    world = EngineWorld()
    async with open_system(tree(plain_family(world))) as system, trio.open_nursery() as nursery:

        async def ask() -> None:
            with pytest.raises(ActorStopped, match="is restarted"):
                await system.ask("plain", "a", Defer())

        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()

        assert await system.inspection.restart("plain", "a")


@pytest.mark.parametrize("kind", ["scripted", "plain"])
async def test_the_last_messages_are_recorded_from_the_first_look_until_nobody_looks(
    autojump_clock: Clock, kind: str
) -> None:
    world = EngineWorld()
    async with open_system(tree(scripted_family(world), plain_family(world))) as system:
        look = system.inspection.record
        await system.ask(kind, "a", Note("unseen"))
        assert look(kind, "a", 60) == []

        began = trio.current_time()
        await system.ask(kind, "a", Note("first"))
        await system.ask(kind, "b", Note("another's"))
        system.tell(kind, "a", Wait(2))
        await trio.sleep(1)
        system.tell(kind, "a", Crash(text="boom"))
        during = look(kind, "a", 60)
        await trio.sleep(5)
        crash_again, crash, wait, first = look(kind, "a", 60)

        assert [type(one.message).__name__ for one in during] == ["Wait", "Note"]
        assert during[0].took_s is None
        assert (first.message, first.waited_s, first.took_s, first.has_failed) == (Note("first"), 0, 0, False)
        assert (wait.began_at - began, wait.took_s) == (0, 2)
        assert (crash.has_failed, crash.waited_s, crash_again.has_failed) == (True, 1, False)

        for number in range(RECORDED + 5):
            await system.ask(kind, "a", Note(str(number)))
        kept = look(kind, "a", 60)
        assert [one.message.text for one in kept] == [str(n) for n in range(RECORDED + 4, 4, -1)]

        actor = world_actor(system, kind)
        assert "on_receive" in vars(actor)

        await trio.sleep(61)
        assert "on_receive" not in vars(actor)
        assert look(kind, "a", 1) == []


def world_actor(system: object, kind: str) -> object:
    return system._directory.find(kind, "a").actor  # type: ignore[attr-defined]  # the instance itself is looked at


async def test_no_more_than_so_many_are_recorded_at_a_time(autojump_clock: Clock) -> None:
    async with open_system(tree(scripted_family(EngineWorld()))) as system:
        for key in range(RECORDINGS_MAX + 1):
            await system.ask("scripted", key, Note("awake"))
        look = system.inspection.record
        for key in range(RECORDINGS_MAX):
            look("scripted", key, 10 + key)
        look("scripted", 0, 100)
        look("scripted", RECORDINGS_MAX, 50)
        for key in (0, 1, RECORDINGS_MAX):
            await system.ask("scripted", key, Note("seen"))

        assert [len(look("scripted", key, 10)) for key in (0, RECORDINGS_MAX)] == [1, 1]
        assert look("scripted", 1, 10) == []
