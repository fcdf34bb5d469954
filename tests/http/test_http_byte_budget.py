"""Room for answers: in all, for one caller, in turn, and given back whatever happens."""

from uuid import UUID, uuid4

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from sexton_http.ceilings import Claim, Standing
from sexton_http.gateway.byte_budget import ByteBudget, Room
from sexton_http.gateway.replays import NoRoom, Replays
from sexton_storage.errors import StorageUnavailable
from sexton_storage.records.frames import PAGE_BYTES, Frame, FramePlace, WorkspaceFrames


def named(name: str, tenant: str | None = None, standing: Standing = Standing.ADMIN) -> Claim:
    """A caller of this name; with this standing nothing is kept from him for others."""
    return Claim(tenant=tenant, principal=name, standing=standing)


ANN, BOB, EVE = map(named, ("ann", "bob", "eve"))


async def test_a_caller_has_his_share_and_one_answer_that_is_larger(autojump_clock: MockClock) -> None:
    budget = ByteBudget(1000)
    assert await budget.take(ANN, 250, 1)
    assert not await budget.take(ANN, 1, 1)
    assert await budget.take(BOB, 700, 1), "he has nothing under way: what he asked for must be sent once"
    assert not await budget.take(EVE, 100, 1)
    assert budget.now == 950

    budget.give_back(BOB, 700)
    assert await budget.take(EVE, 100, 1)

    budget.count(ANN, 5000)
    assert not await budget.keeps_up(ANN, 1), "what had to be told her is more than her share"

    budget.give_back(ANN, 5250)
    assert await budget.keeps_up(ANN, 1)

    budget.give_back(EVE, 100)
    assert budget.now == 0


async def test_a_tenant_leaves_room_for_others_and_users_leave_some_for_operators_and_admins(
    autojump_clock: MockClock,
) -> None:
    budget = ByteBudget(1000)
    mine = [named(f"key {number}", "mine", Standing.USER) for number in range(4)]
    taken = [await budget.take(key, 150, 0) for key in mine] + [await budget.take(mine[0], 50, 0)]
    other = [await budget.take(named(name, name, Standing.USER), 150, 0) for name in ("bob", "eve")]
    above = [
        await budget.take(named("op", "mine", Standing.OPERATOR), 50, 0),
        await budget.take(Claim(tenant="mine", standing=Standing.ADMIN), 50, 0),
    ]

    assert taken == [True] * 4 + [False], "four keys of one tenant do not have it all"
    assert other == [True, False], "a fifth of the whole is kept from users"
    assert above == [True, True]
    assert not await budget.keeps_up(named("joe", "joe", Standing.USER), 0)
    assert await budget.keeps_up(mine[0], 0) is False


async def test_users_who_wait_for_room_hold_up_no_admin_for_whom_some_is_kept(
    autojump_clock: MockClock,
) -> None:
    budget = ByteBudget(1000)
    for number in range(4):
        assert await budget.take(named(f"key {number}", f"tenant {number}", Standing.USER), 200, 0)
    came: list[str] = []

    async def come(name: str) -> None:
        if await budget.take(named(name, name, Standing.USER), 100, 1):
            came.append(name)

    async with trio.open_nursery() as nursery:
        for name in ("user", "other"):
            nursery.start_soon(come, name)
            await wait_all_tasks_blocked()
        at_once = await budget.take(named("admin", "admin", Standing.ADMIN), 100, 0)

    assert at_once
    assert came == []


async def test_room_is_given_in_turn_but_nobody_waits_for_another_who_has_his_share(
    autojump_clock: MockClock,
) -> None:
    budget = ByteBudget(1000)
    came: list[str] = []

    async def come(owner: str, size: int) -> None:
        assert await budget.take(named(owner), size, 60)
        came.append(owner)

    for owner in ("ann", "bob", "eve", "joe"):
        await come(owner, 250)
    async with trio.open_nursery() as nursery:
        for owner, size in (("ann", 250), ("new", 200), ("late", 50)):
            nursery.start_soon(come, owner, size)
            await wait_all_tasks_blocked()
        budget.give_back(BOB, 100)
        await wait_all_tasks_blocked()
        assert came[4:] == [], "the first in turn needs more"

        budget.give_back(BOB, 150)
        await wait_all_tasks_blocked()
        assert sorted(came[4:]) == ["late", "new"]

        budget.give_back(ANN, 250)
        budget.give_back(EVE, 250)

    assert came[6:] == ["ann"]


async def test_who_goes_away_while_he_waits_holds_up_nobody(autojump_clock: MockClock) -> None:
    budget = ByteBudget(1000)
    for owner in ("ann", "bob", "eve", "joe"):
        assert await budget.take(named(owner), 225, 0)
    with Room(budget, named("new")) as room:
        with trio.move_on_after(1):
            await room.grow(300, 60)
        assert room.size == 0
        assert await room.grow(100, 60)

        room.shrink(40)
        room.count(60)
        assert budget.now == 960

    assert budget.now == 900


class Frames:
    """A store of frames that counts who reads it, and may be away."""

    def __init__(self) -> None:
        self.reads = 0
        self.away = False

    async def read(
        self, zombie_id: UUID, *, after: int, limit: int, max_bytes: int = PAGE_BYTES
    ) -> list[Frame]:
        self.reads += 1
        await trio.sleep(1)
        if self.away:
            raise StorageUnavailable("away")
        found = range(after + 1, min(after + limit, 5) + 1)
        return [Frame(zombie_id, seq, None, "chunk", 0, {"text": "x"}, 12) for seq in found]

    async def of_event(
        self, zombie_id: UUID, event_id: UUID, *, after: int, limit: int, max_bytes: int = PAGE_BYTES
    ) -> list[Frame]:
        raise NotImplementedError

    async def bounds(self, zombie_id: UUID) -> tuple[int, int]:
        raise NotImplementedError

    async def workspace_head(self) -> FramePlace:
        raise NotImplementedError

    async def read_workspace(
        self, workspace_id: UUID, *, after: FramePlace, limit: int, max_bytes: int = PAGE_BYTES
    ) -> WorkspaceFrames:
        raise NotImplementedError

    async def has_gap(self, workspace_id: UUID, after: FramePlace, *, keep_ms: int, keep_frames: int) -> bool:
        raise NotImplementedError

    async def has_changed(self, scope_ids: object, *, after: object, upto: object) -> bool:
        raise NotImplementedError

    async def heads(self, zombie_ids: object) -> dict[UUID, int]:
        raise NotImplementedError

    async def last_of_kind(self, zombie_id: UUID, kind: str, *, since: int, among: int) -> int | None:
        raise NotImplementedError

    async def prune(self, *, keep_ms: int, keep_frames: int, limit: int) -> int:
        raise NotImplementedError


async def test_readers_at_one_place_share_a_page_and_its_room(autojump_clock: MockClock) -> None:
    frames, budget, agent = Frames(), ByteBudget(8 * PAGE_BYTES), uuid4()
    replays = Replays(frames, budget)
    bodies: list[bytes] = []
    sent = trio.Event()

    async def follow(owner: str) -> None:
        page = await replays.take(named(owner), agent, 0)
        bodies.append(page.body)
        assert page.last == 5
        await sent.wait()
        replays.release(page)

    async with trio.open_nursery() as nursery:
        for number in range(100):
            nursery.start_soon(follow, f"reader {number}")
        await trio.sleep(2)
        assert frames.reads == 1
        assert len(bodies) == 100
        assert all(body is bodies[0] for body in bodies)
        assert budget.now == len(bodies[0])

        sent.set()

    assert budget.now == 0
    assert repr(replays) == "<Replays 0 pages>"


async def test_a_reader_that_is_cut_short_leaves_its_page_to_the_next(autojump_clock: MockClock) -> None:
    frames, budget, agent = Frames(), ByteBudget(8 * PAGE_BYTES), uuid4()
    replays = Replays(frames, budget)

    async with trio.open_nursery() as nursery:
        first = trio.CancelScope()

        async def give_up() -> None:
            with first:
                await replays.take(ANN, agent, 0)

        async def follow() -> None:
            replays.release(await replays.take(BOB, agent, 0))

        nursery.start_soon(give_up)
        await wait_all_tasks_blocked()
        nursery.start_soon(follow)
        await wait_all_tasks_blocked()
        first.cancel()
    assert (frames.reads, budget.now) == (2, 0)

    frames.away = True
    with pytest.raises(StorageUnavailable):
        await replays.take(ANN, agent, 0)
    assert budget.now == 0


async def test_without_room_a_replay_is_refused_to_all_who_wait_for_it(autojump_clock: MockClock) -> None:
    frames, budget, agent = Frames(), ByteBudget(PAGE_BYTES), uuid4()
    replays = Replays(frames, budget)
    budget.count(named("others"), PAGE_BYTES)
    refused: list[str] = []

    async def follow(owner: str) -> None:
        with pytest.raises(NoRoom):
            await replays.take(named(owner), agent, 0)
        refused.append(owner)

    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(follow, "ann")
        nursery.start_soon(follow, "bob")

    assert sorted(refused) == ["ann", "bob"]
    assert trio.current_time() - began < 6, "they do not wait one after the other"
    assert (frames.reads, budget.now) == (0, PAGE_BYTES)
    assert not await replays.has_room(ANN)


async def test_two_answers_of_one_request_that_are_made_at_once_give_back_all_they_had(
    autojump_clock: MockClock,
) -> None:
    budget = ByteBudget(4000)
    with Room(budget, ANN) as room:
        budget.count(ANN, 950)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(room.grow, 100, 60)
            nursery.start_soon(room.grow, 100, 60)
            await wait_all_tasks_blocked()
            budget.give_back(ANN, 950)

        assert (budget.now, room.size) == (200, 200)

    assert budget.now == 0
