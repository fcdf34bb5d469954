"""Speaking to actors: ask, tell, deadlines, deferred replies."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import pytest
import trio
import trio.testing

from sexton_engine import (
    DEFERRED,
    Actor,
    ActorCrashed,
    AskTimeout,
    EngineError,
    FamilySpec,
    Lane,
    MailboxFull,
    MailboxSpec,
    Message,
    Reason,
    UnknownKind,
    WhenFull,
    open_system,
)
from tests.worlds.engine import (
    Clock,
    Crash,
    Defer,
    Do,
    EngineWorld,
    Note,
    OutageError,
    PlainActor,
    Raise,
    ScriptedActor,
    Wait,
    plain_family,
    scripted,
    scripted_family,
    tree,
)


async def test_an_ask_returns_what_the_handler_returned(autojump_clock: Clock) -> None:
    async with open_system(tree(scripted_family(EngineWorld()))) as system:
        assert await system.ask("scripted", "a", Note("x")) == 1
        assert await system.ask("scripted", "a", Note("y")) == 2
        assert await system.ask("scripted", "b", Note("z")) == 1


async def test_a_plain_handler_answers_as_an_async_one_does(autojump_clock: Clock) -> None:
    world = EngineWorld()
    async with open_system(tree(plain_family(world))) as system:
        for number in range(1, 200):  # more than are answered in the asker's task before it lets others run
            assert await system.ask("plain", "a", Note(str(number))) == number
        assert system.statistics().kind("plain").messages[0].count == 199

    assert world.notes == [str(number) for number in range(1, 200)]


async def test_a_plain_handler_may_hand_out_a_coroutine(autojump_clock: Clock) -> None:
    world = EngineWorld()
    async with open_system(tree(plain_family(world))) as system, trio.open_nursery() as nursery:
        await system.ask("plain", "a", Note("awake"))
        nursery.start_soon(system.ask, "plain", "a", Wait(5, "first"))
        await trio.sleep(1)

        assert await system.ask("plain", "a", Wait(1, "second")) == "second"

    assert world.notes == ["awake", "begin first", "first", "begin second", "second"]


async def test_a_plain_handler_that_crashes_gets_the_message_once_more(autojump_clock: Clock) -> None:
    world = EngineWorld()
    async with open_system(tree(plain_family(world))) as system:
        await system.ask("plain", "a", Note("awake"))
        await system.ask("plain", "a", Crash(times=1))
        assert world.notes == ["awake", "crash"]

        with pytest.raises(ActorCrashed):
            await system.ask("plain", "a", Crash(times=2, text="twice"))
        assert world.crashes["twice"] == 2


async def test_a_plain_handler_may_defer_and_raise_transparently(autojump_clock: Clock) -> None:
    world = EngineWorld()
    async with open_system(tree(plain_family(world))) as system, trio.open_nursery() as nursery:
        await system.ask("plain", "a", Note("awake"))
        with pytest.raises(OutageError):
            await system.ask("plain", "a", Raise(OutageError()))
        replies: list[str] = []

        async def ask() -> None:
            replies.append(await system.ask("plain", "a", Defer()))

        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        assert await system.ask("plain", "a", Note("not blocked")) == 2

        world.ports[0].set("late enough")
        await trio.testing.wait_all_tasks_blocked()
        assert replies == ["late enough"]


@pytest.mark.parametrize("end", ["stop", "kill"])
async def test_a_plain_handler_may_end_its_actor_and_still_reply(end: str, autojump_clock: Clock) -> None:
    world = EngineWorld()

    class Leaver(PlainActor):
        def on_receive(self, message: Any) -> Any:
            if message == Note("leave"):
                if end == "stop":
                    self.context.stop()
                else:
                    self.context.system.kill("plain", self.context.key)
            return super().on_receive(message)

        def on_stop(self) -> None:
            world.notes.append("stopped")

    async with open_system(tree(FamilySpec("plain", lambda context: Leaver(context, world)))) as system:
        assert await system.ask("plain", "a", Note("awake")) == 1
        assert await system.ask("plain", "a", Note("leave")) == 2

        await trio.testing.wait_all_tasks_blocked()
        assert system.statistics().kind("plain").live == 0
        assert await system.ask("plain", "a", Note("a new one")) == 1

    assert world.notes.count("stopped") == (2 if end == "stop" else 1)


async def test_a_plain_handler_may_tell_its_own_actor(autojump_clock: Clock) -> None:
    world = EngineWorld()

    class Busy(PlainActor):
        def on_receive(self, message: Any) -> Any:
            if message == Crash():
                self.context.tell("plain", self.context.key, Note("told"))
                world.notes.append("telling")
                return None
            return super().on_receive(message)

    async with open_system(tree(FamilySpec("plain", lambda context: Busy(context, world)))) as system:
        await system.ask("plain", "a", Note("awake"))
        await system.ask("plain", "a", Crash())

        assert await system.ask("plain", "a", Note("last")) == 3

    assert world.notes == ["awake", "telling", "told", "last"]


async def test_a_plain_handler_that_hands_out_a_coroutine_may_crash_or_defer_in_it(
    autojump_clock: Clock,
) -> None:
    world = EngineWorld()

    class Late(PlainActor):
        def on_receive(self, message: Any) -> Any:
            return self.later(message) if message != Note("awake") else None

        async def later(self, message: Any) -> Any:
            await trio.sleep(1)
            result = super().on_receive(message)
            if result is DEFERRED:
                world.ports[-1].set("deferred")
            return result

    async with open_system(tree(FamilySpec("plain", lambda context: Late(context, world)))) as system:
        await system.ask("plain", "a", Note("awake"))
        assert await system.ask("plain", "a", Defer()) == "deferred"

        with pytest.raises(OutageError):
            await system.ask("plain", "a", Raise(OutageError()))
        await system.ask("plain", "a", Crash(times=1))
        assert world.crashes == {"crash": 2}


async def test_messages_of_one_sender_arrive_in_order(autojump_clock: Clock) -> None:
    world = EngineWorld()
    async with open_system(tree(scripted_family(world))) as system:
        for number in range(300):
            system.tell("scripted", "a", Note(str(number)))
        await system.ask("scripted", "a", Note("last"))

    assert world.notes[1:302] == [*map(str, range(300)), "last"]


async def test_one_message_at_a_time_even_when_the_handler_waits(autojump_clock: Clock) -> None:
    world = EngineWorld()
    async with open_system(tree(scripted_family(world))) as system:
        system.tell("scripted", "a", Wait(10, "slow"))
        system.tell("scripted", "a", Note("behind"))
        system.tell("scripted", "b", Note("other actor"))
        await system.ask("scripted", "a", Note("last"))

    assert [note for note in world.notes if not note.startswith(("start", "stop"))] == [
        "other actor",
        "slow",
        "behind",
        "last",
    ]


async def test_control_is_delivered_before_supervision_before_user(autojump_clock: Clock) -> None:
    world = EngineWorld()
    async with open_system(tree(scripted(world))) as system:
        system.tell("scripted", "", Wait(1, "busy"))
        await trio.testing.wait_all_tasks_blocked()
        system.tell("scripted", "", Note("user"))
        system.tell("scripted", "", Note("supervision"), lane=Lane.SUPERVISION)
        system.tell("scripted", "", Note("control"), lane=Lane.CONTROL)
        await system.ask("scripted", "", Note("last"))

    assert world.notes[1:6] == ["busy", "control", "supervision", "user", "last"]


async def test_an_ask_past_its_deadline_raises_and_the_late_reply_is_counted(autojump_clock: Clock) -> None:
    async with open_system(tree(scripted(EngineWorld()))) as system:
        started = trio.current_time()
        with pytest.raises(AskTimeout):
            await system.ask("scripted", "", Wait(10), timeout=3)
        assert trio.current_time() - started == 3
        assert system.dead_letters.count(Reason.LATE_REPLY) == 0

        await trio.sleep(20)
        assert system.dead_letters.count(Reason.LATE_REPLY) == 1
        assert system.dead_letters.latest()[-1].message == "waited"


async def test_an_ask_waits_thirty_seconds_unless_told_otherwise(autojump_clock: Clock) -> None:
    async with open_system(tree(scripted(EngineWorld()))) as system:
        started = trio.current_time()
        with pytest.raises(AskTimeout):
            await system.ask("scripted", "", Wait(100))

        assert trio.current_time() - started == 30


async def test_a_message_whose_asker_ran_out_of_time_is_not_handled(autojump_clock: Clock) -> None:
    world = EngineWorld()
    async with open_system(tree(scripted(world))) as system:
        system.tell("scripted", "", Wait(10))
        with pytest.raises(AskTimeout):
            await system.ask("scripted", "", Note("too late"), timeout=1)
        await trio.sleep(20)

        assert "too late" not in world.notes
        assert system.dead_letters.count(Reason.EXPIRED, "scripted") == 1


async def test_a_message_whose_asker_was_cancelled_is_handled_all_the_same(autojump_clock: Clock) -> None:
    world = EngineWorld()
    async with open_system(tree(scripted(world))) as system:
        system.tell("scripted", "", Wait(10))
        with trio.move_on_after(1):
            await system.ask("scripted", "", Note("asker gone"))
        await trio.sleep(20)

        assert "asker gone" in world.notes
        assert system.dead_letters.count(Reason.LATE_REPLY) == 1


async def test_an_actor_that_asks_hands_its_own_deadline_down(autojump_clock: Clock) -> None:
    world = EngineWorld()

    async def ask_on(me: ScriptedActor) -> str:
        started = trio.current_time()
        with pytest.raises(AskTimeout):
            await me.context.ask("other", "", Wait(100), timeout=50)
        return str(trio.current_time() - started)

    async with open_system(tree(scripted(world, "other"), scripted(world))) as system:
        with pytest.raises(AskTimeout):
            await system.ask("scripted", "", Do(ask_on), timeout=7)
        await trio.sleep(1)

        # The asker's deadline came first, by one timer: the inner wait was cut to it.
        assert system.dead_letters.latest()[-1].message == "7.0"


async def test_an_actor_cannot_ask_itself(autojump_clock: Clock) -> None:
    async def ask_self(me: ScriptedActor) -> str:
        with pytest.raises(EngineError, match="asks itself"):
            await me.context.ask("scripted", "a", Note("never"))
        return "refused"

    async with open_system(tree(scripted_family(EngineWorld()))) as system:
        assert await system.ask("scripted", "a", Do(ask_self)) == "refused"


async def test_a_deferred_reply_comes_from_another_task(autojump_clock: Clock) -> None:
    async def answer_later(me: ScriptedActor) -> Any:
        port = me.context.defer()

        async def later() -> None:
            await trio.sleep(5)
            assert not port.is_expired
            assert port.set("from the task")
            assert port.is_expired

        me.context.start_task(later)
        return DEFERRED

    async with open_system(tree(scripted_family(EngineWorld()))) as system:
        assert await system.ask("scripted", "a", Do(answer_later)) == "from the task"


async def test_only_the_first_reply_counts(autojump_clock: Clock) -> None:
    world = EngineWorld()
    replies: list[str] = []
    async with open_system(tree(scripted_family(world))) as system, trio.open_nursery() as nursery:

        async def ask() -> None:
            replies.append(await system.ask("scripted", "a", Defer()))

        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        assert world.ports[0].set("first")
        assert not world.ports[0].set("second")
        assert not world.ports[0].set_exception(ValueError("third"))

        await trio.testing.wait_all_tasks_blocked()
        assert replies == ["first"]
        assert system.dead_letters.count(Reason.LATE_REPLY) == 2


async def test_a_deferred_reply_knows_when_its_asker_has_gone(autojump_clock: Clock) -> None:
    world = EngineWorld()
    async with open_system(tree(scripted_family(world))) as system:
        with pytest.raises(AskTimeout):
            await system.ask("scripted", "a", Defer(), timeout=2)
        with trio.move_on_after(1):
            await system.ask("scripted", "a", Defer())

        assert [port.is_expired for port in world.ports] == [True, True]


async def test_deferring_a_tell_is_answered_into_the_void(autojump_clock: Clock) -> None:
    world = EngineWorld()
    async with open_system(tree(scripted_family(world))) as system:
        system.tell("scripted", "a", Defer())
        await trio.sleep(1)

        assert world.ports[0].is_expired
        assert not world.ports[0].set("nobody")


async def test_a_crash_or_a_stop_answers_the_deferred_replies(autojump_clock: Clock) -> None:
    world = EngineWorld()
    async with open_system(tree(scripted_family(world))) as system, trio.open_nursery() as nursery:
        errors: list[str] = []

        async def ask() -> None:
            try:
                await system.ask("scripted", "a", Defer())
            except EngineError as exc:
                errors.append(type(exc).__name__)

        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        system.tell("scripted", "a", Crash(times=1))
        await trio.sleep(5)
        assert errors == ["ActorCrashed"]

        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        assert await system.stop("scripted", "a")

        await trio.testing.wait_all_tasks_blocked()
        assert errors == ["ActorCrashed", "ActorStopped"]


async def test_returning_deferred_without_deferring_is_a_crash(autojump_clock: Clock) -> None:
    class Careless(Actor):
        def on_receive(self, message: Any) -> Any:
            return DEFERRED

    async with open_system(tree(FamilySpec("careless", Careless))) as system:
        with pytest.raises(ActorCrashed, match="did not take the reply over"):
            await system.ask("careless", "a", Note("x"))


@pytest.mark.parametrize("kind", ["scripted", "plain"])
async def test_a_transparent_exception_reaches_the_asker_and_changes_nothing(
    kind: str, autojump_clock: Clock
) -> None:
    world = EngineWorld()
    async with open_system(tree(scripted_family(world), plain_family(world))) as system:
        await system.ask(kind, "a", Note("x"))
        error = OutageError("database away")
        with pytest.raises(OutageError) as caught:
            await system.ask(kind, "a", Raise(error))
        assert caught.value is error
        assert await system.ask(kind, "a", Note("y")) == 2
        assert system.statistics().kind(kind).crashes == 0

        system.tell(kind, "a", Raise(OutageError()))
        assert await system.ask(kind, "a", Note("z")) == 3
        assert system.dead_letters.count(Reason.UNAVAILABLE, kind) == 1


async def test_a_full_mailbox_refuses_asks_and_buries_tells(autojump_clock: Clock) -> None:
    class Small(ScriptedActor):
        mailbox = MailboxSpec(capacity=2)

    world = EngineWorld()
    spec = FamilySpec("small", lambda context: Small(context, world))
    async with open_system(tree(spec)) as system:
        system.tell("small", "a", Wait(10))
        await trio.testing.wait_all_tasks_blocked()
        for number in range(4):
            system.tell("small", "a", Note(str(number)))
        with pytest.raises(MailboxFull):
            await system.ask("small", "a", Note("refused"))
        assert system.dead_letters.count(Reason.REFUSED) == 3

        await trio.sleep(20)
        assert world.notes[1:] == ["waited", "0", "1"]


async def test_a_stream_drops_its_oldest_and_tells_who_asked(autojump_clock: Clock) -> None:
    class Stream(ScriptedActor):
        mailbox = MailboxSpec(capacity=2, when_full=WhenFull.DROP_OLDEST)

    world = EngineWorld()
    spec = FamilySpec("stream", lambda context: Stream(context, world))
    async with open_system(tree(spec)) as system, trio.open_nursery() as nursery:
        system.tell("stream", "a", Wait(10))
        await trio.testing.wait_all_tasks_blocked()

        async def ask() -> None:
            with pytest.raises(MailboxFull):
                await system.ask("stream", "a", Note("dropped"))

        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        for number in range(3):
            system.tell("stream", "a", Note(str(number)))
        assert system.dead_letters.count(Reason.DROPPED) == 2

        await trio.sleep(20)
        assert world.notes[1:] == ["waited", "1", "2"]


async def test_senders_wait_for_room_in_the_order_they_came(autojump_clock: Clock) -> None:
    class Patient(ScriptedActor):
        mailbox = MailboxSpec(capacity=1, when_full=WhenFull.WAIT)

    world = EngineWorld()
    spec = FamilySpec("patient", lambda context: Patient(context, world))
    async with open_system(tree(spec)) as system, trio.open_nursery() as nursery:
        system.tell("patient", "a", Wait(10))
        await trio.testing.wait_all_tasks_blocked()
        await system.send("patient", "a", Note("has room"))
        sent: list[str] = []

        async def send(text: str) -> None:
            await system.send("patient", "a", Note(text))
            sent.append(text)

        for text in ("first", "second"):
            nursery.start_soon(send, text)
            await trio.testing.wait_all_tasks_blocked()
        assert sent == []

        with trio.move_on_after(1):
            await system.send("patient", "a", Note("cancelled while waiting"))
        with pytest.raises(AskTimeout):
            await system.ask("patient", "a", Note("out of time while waiting"), timeout=1)
        system.tell("patient", "a", Note("told: cannot wait"))
        assert system.dead_letters.count(Reason.REFUSED) == 1

        await system.ask("patient", "a", Note("asked"))
        await trio.testing.wait_all_tasks_blocked()
        assert world.notes[1:] == ["waited", "has room", "first", "second", "asked"]
        assert sorted(sent) == ["first", "second"]


async def test_those_who_wait_for_room_learn_of_the_end(autojump_clock: Clock) -> None:
    class Patient(ScriptedActor):
        mailbox = MailboxSpec(capacity=1, when_full=WhenFull.WAIT)

    world = EngineWorld()
    spec = FamilySpec("patient", lambda context: Patient(context, world))
    async with open_system(tree(spec)) as system, trio.open_nursery() as nursery:
        system.tell("patient", "a", Wait(10))
        await trio.testing.wait_all_tasks_blocked()
        system.tell("patient", "a", Note("in the mailbox"))

        async def send() -> None:
            with pytest.raises(EngineError, match="ended: killed"):
                await system.send("patient", "a", Note("waiting"))

        nursery.start_soon(send)
        await trio.testing.wait_all_tasks_blocked()

        assert system.kill("patient", "a")


async def test_an_unknown_kind_is_an_error_of_the_sender(autojump_clock: Clock) -> None:
    async with open_system(tree(scripted(EngineWorld()))) as system:
        with pytest.raises(UnknownKind):
            await system.ask("nobody", "", Note("x"))
        with pytest.raises(UnknownKind):
            system.tell("nobody", "", Note("x"))


@dataclass(frozen=True, slots=True)
class Forward(Message[int]):
    """Passes through several actors."""

    hops: int


async def test_actors_that_ask_each_other_each_hold_a_worker_only_while_they_wait(
    autojump_clock: Clock,
) -> None:
    class Hop(Actor):
        kind = "hop"

        async def on_receive(self, message: Forward) -> int:
            if message.hops == 0:
                return 0
            key = f"{self.context.key}{message.hops}"
            return 1 + await self.context.ask("hop", key, Forward(message.hops - 1))

    async with open_system(tree(FamilySpec("hop", Hop))) as system:
        assert await system.ask("hop", "", Forward(50)) == 50

        statistics = system.statistics()
        assert statistics.workers == statistics.workers_idle


async def test_ten_thousand_ready_actors_need_no_ten_thousand_tasks(autojump_clock: Clock) -> None:
    world = EngineWorld()

    class Quick(PlainActor):
        def on_receive(self, message: Any) -> Any:
            world.notes.append("x")

    async with open_system(tree(FamilySpec("quick", lambda context: Quick(context, world)))) as system:
        for key in range(10_000):
            system.tell("quick", key, Note("x"))
        await trio.testing.wait_all_tasks_blocked()

        assert len(world.notes) == 10_000
        assert system.statistics().workers < 10


async def test_an_actor_that_never_runs_dry_lets_others_run(autojump_clock: Clock) -> None:
    async def go_on(me: ScriptedActor) -> None:
        me.count += 1
        if me.count < 1_000:
            me.context.tell("scripted", "busy", Do(go_on))

    world = EngineWorld()
    async with open_system(tree(scripted_family(world))) as system:
        await system.ask("scripted", "busy", Note("start"))
        system.tell("scripted", "busy", Do(go_on))
        await system.ask("scripted", "other", Note("other was here"))
        statistics = system.statistics().kind("scripted")

        assert sum(message.count for message in statistics.messages) < 500


ASKED_FOR: ContextVar[str | None] = ContextVar("asked_for", default=None)


async def _who_asked(scripted: ScriptedActor) -> str | None:
    return ASKED_FOR.get()


async def test_a_worker_does_not_take_on_the_context_of_whoever_first_needed_it(
    autojump_clock: Clock,
) -> None:
    """It goes on to serve others, and what it logs then would be told of the first one's request."""
    async with open_system(tree(scripted_family(EngineWorld()))) as system:
        ASKED_FOR.set("the first request")
        assert await system.ask("scripted", "a", Do(_who_asked)) is None
