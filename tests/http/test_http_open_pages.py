"""Pages of the console that stay open: told when to look again, and made once for all of a role."""

from collections.abc import AsyncIterator, Sequence
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
import trio
import trio.testing
from msgspec.structs import replace

from sexton_actors.periodic.delivery_rounds import WriteDeliveries
from sexton_http.ceilings import ANYBODY
from sexton_http.gateway.page_parts import MOST, PageParts
from sexton_http.identity.browsers import Browsers
from sexton_http.routes.console.changes import look
from sexton_storage.records.frame_kinds import QUIET_KINDS, FrameKind
from sexton_storage.records.frames import Frame, FramePlace, WorkspaceFrames
from sexton_storage.records.sign_ins import BrowserSession
from sexton_storage.records.tenants import PlanTier, Tenant
from sexton_storage.records.workspaces import Workspace
from tests.worlds.browser import Visitor, visiting
from tests.worlds.event_stream import Listener, listening
from tests.worlds.http import HttpWorld

CRON = '  - type: cron\n    schedule: "0 * * * *"\n    message: look around'
PLACE = "1-00000000000000000000000000000000-0"


@pytest.fixture
async def visitor(world: HttpWorld) -> AsyncIterator[Visitor]:
    async with visiting(world) as opened:
        yield await opened.sign_in()


async def frame_within(stream: Listener, seconds: float) -> dict[str, Any]:
    with trio.fail_after(seconds):
        return await stream.frame()


async def test_an_open_page_is_told_and_asks_for_its_parts(
    world: HttpWorld, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sexton_http.gateway.page_parts.LEAST_PAUSE_S", 0.1)
    zombie = await world.install()
    here = f"/console/{world.installation.workspace_id}"
    cookie = visitor.cookies["sexton"]
    async with listening(world.base_url, f"{here}/changes", None, cookie=f"sexton={cookie}") as stream:
        first = await stream.frame()
        await world.post(f"{world.ws}/zombies/{zombie['zombie_id']}/messages", {"message": "Hello."})
        told = await stream.frame()
        # A busy server may tell of the message and of its event one after the other.
        while (still := await frame_within(stream, told["quiet_ms"] / 1000))["kind"] == "changed":
            told = still

    assert [one["kind"] for one in (first, told, still)] == ["changed", "changed", "still"]
    assert (first["within_ms"], told["within_ms"], still["quiet_ms"]) == (0, 0, 2400)
    assert told["id"] > first["id"]

    whole = (await visitor.get(f"{here}/events")).text
    part = (await visitor.get(f"{here}/events", headers={"sexton-as-of": told["id"]})).text
    assert ("<html" in whole, "<html" in part) == (True, False)
    assert all('id="events" data-part' in page and "steer:admin" in page for page in (whole, part))
    assert "<html" in (await visitor.get(f"{here}/events", headers={"sexton-as-of": "x" * 999})).text


async def test_an_open_page_is_shared_in_its_tenant_alone_and_with_who_is_signed_in(
    world: HttpWorld, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.install()
    looks: list[bytes] = []
    find = world.storage.sign_ins.find_session

    async def counted(hashed: bytes) -> BrowserSession | None:
        looks.append(hashed)
        return await find(hashed)

    monkeypatch.setattr(world.storage.sign_ins, "find_session", counted)
    page = f"/console/{world.installation.workspace_id}/agents"
    parts = {"sexton-as-of": PLACE, "sexton-shown": "0", "cookie": f"sexton={visitor.cookies['sexton']}"}
    for _ in range(3):
        assert "doctor" in (await visitor.get(page, headers=parts)).text
    assert len(looks) == 1, "who was signed in a moment ago still is"

    now, new_id = world.actors_world.now_ms(), world.actors_world.new_id
    tenant = Tenant(new_id(), "other", PlanTier.FREE, 0, None, now, now)
    workspace = Workspace(new_id(), tenant.id, "theirs", paused=False, created_at=now)
    ours = world.memory.tables.users[world.installation.user_id]
    user = replace(ours, id=new_id(), tenant_id=tenant.id, subject="other")
    await world.storage.tenants.create(tenant, workspace, user)
    async with visiting(world) as other:
        link = await Browsers(world.ctx).offer(user.id)
        await other.post(link.removeprefix(world.base_url))
        del parts["cookie"]
        theirs = await other.client.get(page, headers=parts)
    assert (theirs.status_code, "doctor" in theirs.text) == (404, False)

    parts["cookie"] = f"sexton={visitor.cookies['sexton']}"
    await visitor.post("/auth/sign-out")
    gone = await visitor.get(page, headers=parts)
    assert ("doctor" in gone.text, "Sign in" in gone.text) == (False, True)


async def test_an_open_page_hears_of_what_leaves_no_frame(world: HttpWorld, visitor: Visitor) -> None:
    """Of what people do, and of what a round does to rows; not of the workspace of another tenant."""
    zombie = await world.install(config=CRON)
    [schedule] = (await world.get(f"{world.ws}/schedules")).json()["items"]
    rest = f"{world.ws}/zombies/{zombie['zombie_id']}/schedules/{schedule['schedule_id']}:pause"
    here = f"/console/{world.installation.workspace_id}"
    cookie = visitor.cookies["sexton"]

    async def refused_delivery() -> None:
        await world.http.post(zombie["webhook_urls"]["github"], content=b"{}")
        await world.system.ask("delivery_rounds", "", WriteDeliveries())

    async with listening(world.base_url, f"{here}/changes", None, cookie=f"sexton={cookie}") as stream:
        kinds = [(await stream.frame())["kind"]]
        for change in (
            lambda: world.post(rest),
            lambda: world.post("/v1/api-keys", {"key_name": "ci"}),
            refused_delivery,
        ):
            await change()
            kinds.append((await stream.frame())["kind"])

    assert kinds == ["changed"] * 4


@pytest.mark.parametrize(
    ("kinds", "tells"),
    [(QUIET_KINDS, False), ((*QUIET_KINDS, FrameKind.GATE_PENDING), True), ((), False)],
)
async def test_what_a_run_says_in_between_is_no_change(kinds: Sequence[FrameKind], *, tells: bool) -> None:
    agent, place = UUID(int=1), FramePlace(2, UUID(int=1), 1)
    frames = tuple(Frame(agent, seq, None, kind, 0, {}, 2) for seq, kind in enumerate(kinds))
    found = WorkspaceFrames(frames, (place,) * len(frames), place, is_all=True)

    class Replays:
        async def take_of_workspace(self, *_: object) -> object:
            return SimpleNamespace(found=found)

        def release(self, _: object) -> None:
            """Nothing is held."""

    services: Any = SimpleNamespace(replays=Replays())

    assert await look(services, ANYBODY, agent, FramePlace(1, agent, 1)) == (place, tells)


async def test_who_asks_at_once_shares_a_page_and_a_failure_is_nobodys_page() -> None:
    made: list[int] = []
    now = 0.0
    parts: PageParts[int] = PageParts(lambda: now)

    async def make() -> int:
        made.append(len(made))
        await trio.testing.wait_all_tasks_blocked()
        return made[-1]

    async def fail() -> int:
        await go.wait()
        raise ValueError

    got: list[Any] = []
    go = trio.Event()

    async def ask(key: str, how: Any = make) -> None:
        try:
            got.append(await parts.share(key, how, now_ms=7))
        except ValueError:
            got.append("failed")

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(ask, "a")
    assert (got, await parts.share("b", make, now_ms=7)) == ([0, 0, 0], 1)

    now = 0.9
    assert await parts.share("a", make, now_ms=8) == 0

    assert await parts.share("a", make, now_ms=8, newer_than_ms=6) == 0
    assert await parts.share("a", make, now_ms=8, newer_than_ms=7) == 2, "who asks has seen what came since"

    now = 2.0
    assert await parts.share("a", make, now_ms=9) == 3

    got.clear()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, "c", fail)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(ask, "c")
        await trio.testing.wait_all_tasks_blocked()
        go.set()
    assert sorted(map(str, got)) == ["4", "failed"]

    for key in range(2 * MOST):
        await parts.share(key, make, now_ms=9)
    assert str(MOST) in repr(parts)
