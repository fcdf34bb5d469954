"""Auth sessions, sign-in links, browser sessions and sign-ins under way."""

from typing import Any

import pytest
import trio
from msgspec.structs import replace

from sexton_storage.errors import Conflict, NameTaken
from sexton_storage.records.auth_sessions import (
    ORIGIN_PARTS,
    AuthSession,
    AuthSessionStatus,
    SessionBounds,
    SessionsFull,
)
from sexton_storage.records.sign_ins import BrowserSession, SignInAttempt, SignInKind, SignInLink
from sexton_storage.records.users import Role, User
from sexton_storage.terms import AUTH_SESSION_KEEP_MS
from tests.worlds.storage import HOUR_MS, StorageWorld, new_id


def session_of(world: StorageWorld, **changes: Any) -> AuthSession:
    at = world.now
    session = AuthSession(new_id(), AuthSessionStatus.PENDING, 1, at, at + HOUR_MS, "key", "a name")
    return replace(session, **changes)


def origin(*parts: str) -> bytes:
    """Where a session is begun: a wide network, a narrow one in it, and an address in that."""
    return b"".join(part.encode().ljust(size) for part, size in zip(parts, ORIGIN_PARTS, strict=True))


async def user_of(world: StorageWorld) -> User:
    """The user that the tenant was founded with is not told apart; another tenant's first user is."""
    beside = await world.beside()
    subject = f"oidc:{new_id()}"
    user = User(new_id(), beside.tenant_id, subject, Role.ADMIN, platform_admin=False, created_at=1)
    tenant, workspace = await world.storage.tenants.load(beside.tenant_id), beside.workspace_id
    assert tenant is not None
    old = await world.storage.workspaces.load(workspace)
    assert old is not None
    other = replace(tenant, id=new_id())
    user = replace(user, tenant_id=other.id)
    await world.storage.tenants.create(other, replace(old, id=new_id(), tenant_id=other.id), user)
    return user


async def test_an_auth_session_is_saved_by_version_with_all_that_it_holds(world: StorageWorld) -> None:
    store, session = world.storage.auth_sessions, session_of(world)
    assert await store.create(session, SessionBounds(all=1)) is None
    assert await store.load(session.id) == session

    approved = replace(
        session,
        status=AuthSessionStatus.VERIFICATION_PENDING,
        version=2,
        expires_at=session.expires_at + 5,
        wrong_codes=3,
        approved_by="user:1",
        dashboard_public_key="d",
        ciphertext="c",
        nonce="n",
        code_mac=b"mac",
        sealed_token=b"sealed",
        consumed_at=7,
        consumer_mac=b"who",
        origin=b"where",
    )
    await store.save(approved)
    assert await store.load(session.id) == approved

    with pytest.raises(Conflict):
        await store.save(approved)
    with pytest.raises(Conflict):
        await store.save(session_of(world, version=2))
    assert await store.load(new_id()) is None


async def test_no_more_sessions_are_open_than_the_limit_says(world: StorageWorld) -> None:
    store, made = world.storage.auth_sessions, []

    async def create() -> None:
        made.append(await store.create(session_of(world), SessionBounds(all=3)))

    async with trio.open_nursery() as nursery:
        for _ in range(6):
            nursery.start_soon(create)

    assert made.count(None) == 3
    assert made.count(SessionsFull.ALL) == 3


async def test_an_address_has_its_share_of_sessions_and_the_last_quarter_is_for_others(
    world: StorageWorld,
) -> None:
    store, bounds = world.storage.auth_sessions, SessionBounds(all=8, address=3)
    origins = (*([b"a"] * 4), *([b"b"] * 4), b"c", b"c", b"d")
    made = [await store.create(session_of(world, origin=origin), bounds) for origin in origins]
    share = SessionsFull.ADDRESS

    assert made == [None, None, None, share, None, None, None, share, None, share, None]


async def test_in_a_full_house_the_oldest_of_the_fullest_range_that_nobody_approved_gives_way(
    world: StorageWorld,
) -> None:
    store, bounds = world.storage.auth_sessions, SessionBounds(all=8, address=8)
    approved = AuthSessionStatus.VERIFICATION_PENDING
    flood = [origin("flood", "one", str(n)) for n in range(3)] + [origin("flood", "two", "3")]
    house = [
        session_of(world, origin=flood[0], created_at=1, status=approved),
        *(session_of(world, origin=one, created_at=9 - n) for n, one in enumerate(flood)),
        session_of(world, origin=origin("flood", "two", "4"), created_at=1),
        *(session_of(world, origin=origin("quiet", "site", str(n)), created_at=1) for n in range(2)),
    ]
    for session in house:
        assert await store.create(session, bounds) is None

    async def begin(*parts: str) -> tuple[SessionsFull | None, list[int]]:
        """What is answered, and which of the house were aborted for it."""
        answer = await store.create(session_of(world, origin=origin(*parts)), bounds)
        rows = [await store.load(session.id) for session in house]
        return answer, [n for n, row in enumerate(rows) if row and row.status is AuthSessionStatus.ABORTED]

    assert await begin("flood", "one", "new") == (SessionsFull.ALL, []), "it displaces nobody"
    assert await begin("office", "here", "new") == (None, [3]), "the oldest of the fullest narrow network"
    assert await begin("office", "there", "new") == (None, [3, 5]), "of two as full, always the same"
    assert await begin("office", "here", "more") == (SessionsFull.ALL, [3, 5]), "it has as many as others"
    assert len(await store.list_open(approved_by=None, limit=99)) == bounds.all


@pytest.mark.parametrize(
    "over",
    [
        {"status": AuthSessionStatus.CONSUMED},
        {"status": AuthSessionStatus.ABORTED},
        {"expires_at": 1},
    ],
)
async def test_a_session_that_is_over_makes_room(world: StorageWorld, over: dict[str, Any]) -> None:
    store, one = world.storage.auth_sessions, SessionBounds(all=1)

    assert await store.create(session_of(world, **over), one) is None
    assert await store.create(session_of(world), one) is None
    assert await store.create(session_of(world), one) is SessionsFull.ALL


async def test_open_sessions_are_listed_by_who_approved_them(world: StorageWorld) -> None:
    store = world.storage.auth_sessions
    first, second = session_of(world, created_at=1), session_of(world, created_at=2, approved_by="user:1")
    third = session_of(world, created_at=3, approved_by="user:2", status=AuthSessionStatus.COMPLETE)
    for session in (third, second, first, session_of(world, status=AuthSessionStatus.CONSUMED)):
        assert await store.create(session, SessionBounds()) is None

    assert await store.list_open(approved_by=None, limit=9) == [first.id, second.id, third.id]
    assert await store.list_open(approved_by=None, limit=2) == [first.id, second.id]
    assert await store.list_open(approved_by="user:1", limit=9) == [second.id]
    assert await store.list_open(approved_by="user:3", limit=9) == []


def browser_of(user: User, now: int, **changes: Any) -> BrowserSession:
    session = BrowserSession(new_id(), new_id().bytes, user.id, now, now, now + HOUR_MS, now + 2 * HOUR_MS)
    return replace(session, **changes)


async def test_a_link_signs_its_user_in_once(world: StorageWorld) -> None:
    store, user, now = world.storage.sign_ins, await user_of(world), world.now
    link = SignInLink(b"good", user.id, now, now + HOUR_MS)
    await store.offer(link)
    await store.offer(SignInLink(b"late", user.id, now - HOUR_MS, now))
    assert await store.find_link(b"good") == link

    other = await user_of(world)
    assert not await store.sign_in(browser_of(other, now), link_hash=b"good")

    done: list[bool] = []

    async def sign_in() -> None:
        done.append(await store.sign_in(browser_of(user, now), link_hash=b"good"))

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(sign_in)
    assert sorted(done) == [False, False, True]

    used = await store.find_link(b"good")
    assert used is not None
    assert used.used_at is not None
    assert not await store.sign_in(browser_of(user, now), link_hash=b"late")
    assert not await store.sign_in(browser_of(user, now), link_hash=b"none")
    assert await store.find_link(b"none") is None


async def test_a_browser_session_lives_until_it_is_ended(world: StorageWorld) -> None:
    store, user, now = world.storage.sign_ins, await user_of(world), world.now
    session = browser_of(user, now)
    assert await store.sign_in(session, link_hash=None)
    assert await store.find_session(session.token_hash) == session
    assert await store.load_session(session.id) == session

    await store.touch(session.id, seen_at=now + 5, idle_ends_at=now + HOUR_MS + 5)
    await store.touch(session.id, seen_at=now + 3, idle_ends_at=now)
    touched = replace(session, seen_at=now + 5, idle_ends_at=now + HOUR_MS + 5)
    assert await store.load_session(session.id) == touched
    assert await store.sign_out(session.id)
    assert not await store.sign_out(session.id)
    assert await store.find_session(session.token_hash) is None
    assert await store.load_session(session.id) is None


async def test_a_terminal_signs_in_once_under_its_id_and_is_listed_beside_browsers(
    world: StorageWorld,
) -> None:
    store, user, now = world.storage.sign_ins, await user_of(world), world.now
    terminal = browser_of(user, now + 1, kind=SignInKind.TERMINAL, name="laptop")
    browser, over = browser_of(user, now), browser_of(user, now, idle_ends_at=1)
    done: list[bool] = []

    async def sign_in() -> None:
        try:
            done.append(await store.sign_in(replace(terminal, token_hash=new_id().bytes), link_hash=None))
        except NameTaken:
            done.append(False)

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(sign_in)
    assert sorted(done) == [False, False, True]

    for session in (browser, over, browser_of(await user_of(world), now)):
        assert await store.sign_in(session, link_hash=None)
    listed = await store.list_sessions(user.id, limit=9)
    assert [(row.id, row.kind, row.name) for row in listed] == [
        (terminal.id, SignInKind.TERMINAL, "laptop"),
        (browser.id, SignInKind.BROWSER, ""),
    ]
    assert [row.id for row in await store.list_sessions(user.id, limit=1)] == [terminal.id]


async def test_a_sign_in_under_way_is_given_to_the_first_who_comes_back(world: StorageWorld) -> None:
    store, now = world.storage.sign_ins, world.now
    attempt = SignInAttempt(b"state", "codehost", b"browser", b"sealed", now, now + HOUR_MS)
    await store.begin(attempt)
    taken: list[SignInAttempt | None] = []

    async def take() -> None:
        taken.append(await store.take(b"state"))

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(take)

    assert [found for found in taken if found is not None] == [attempt]
    assert await store.take(b"state") is None


async def test_a_sweep_takes_what_signs_nobody_in_any_more(world: StorageWorld) -> None:
    storage, user, now = world.storage, await user_of(world), world.now
    session = session_of(world, expires_at=now)
    await storage.auth_sessions.create(session, SessionBounds())
    await storage.sign_ins.offer(SignInLink(b"link", user.id, now, now + 10))
    idle = browser_of(user, now, idle_ends_at=now + 10)
    old = browser_of(user, now, ends_at=now + 10)
    live = browser_of(user, now)
    for browser in (idle, old, live):
        await storage.sign_ins.sign_in(browser, link_hash=None)
    await storage.sign_ins.begin(SignInAttempt(b"state", "codehost", b"b", b"s", now, now + 10))

    assert await storage.instance.sweep(now + 9) == 0
    assert await storage.instance.sweep(now + 10) == 4
    assert await storage.sign_ins.load_session(live.id) == live
    assert await storage.auth_sessions.load(session.id) == session
    assert await storage.instance.sweep(now + AUTH_SESSION_KEEP_MS) == 2
    assert await storage.auth_sessions.load(session.id) is None


async def test_a_setting_is_settled_once(world: StorageWorld) -> None:
    instance = world.storage.instance
    kept: list[bytes] = []

    async def settle(value: bytes) -> None:
        kept.append(await instance.settle_setting("key", value))

    async with trio.open_nursery() as nursery:
        for value in (b"one", b"two", b"three"):
            nursery.start_soon(settle, value)

    assert len(set(kept)) == 1
    assert await instance.setting("key") == kept[0]


async def test_links_that_are_withdrawn_sign_nobody_in(world: StorageWorld) -> None:
    store, user, other = world.storage.sign_ins, await user_of(world), await user_of(world)
    links = [SignInLink(new_id().bytes, one.id, world.now, world.now + HOUR_MS) for one in (user, other)]
    for link in links:
        await store.offer(link)

    await store.withdraw(user.id)

    assert await store.find_link(links[0].token_hash) is None
    assert await store.find_link(links[1].token_hash) == links[1]
