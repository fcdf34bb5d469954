"""Members of a tenant, with their sign-ins and keys, on both implementations of storage."""

from typing import Any

import pytest
import trio
from msgspec.structs import replace

from sexton_storage.errors import NameTaken
from sexton_storage.records.agent_keys import AgentKey
from sexton_storage.records.api_keys import ApiKey
from sexton_storage.records.auth_sessions import AuthSession, AuthSessionStatus, SessionBounds
from sexton_storage.records.members import MemberChange, MemberChanged, MemberRefusal
from sexton_storage.records.sign_ins import BrowserSession, SignInLink
from sexton_storage.records.users import MemberStatus, Rank, Role, User
from tests.worlds.storage import HOUR_MS, StorageWorld, new_id

TOP = Rank(Role.ADMIN, platform_admin=True)
GONE = MemberStatus.REMOVED


def person(world: StorageWorld, name: str, role: Role = Role.USER, **more: Any) -> User:
    user = User(new_id(), world.tenant_id, name, role, platform_admin=False, created_at=world.now)
    return replace(user, **more)


async def added(world: StorageWorld, name: str, role: Role = Role.USER, **more: Any) -> User:
    user = person(world, name, role, **more)
    await world.storage.members.add(user)
    return user


def asked(**what: Any) -> MemberChange:
    return MemberChange("user:bo", TOP, **what)


async def change(world: StorageWorld, user: User, **what: Any) -> MemberChanged | MemberRefusal:
    return await world.storage.members.change(world.tenant_id, user.id, asked(**what))


async def furnish(world: StorageWorld, user: User) -> tuple[ApiKey, AgentKey, BrowserSession, AuthSession]:
    """All that a person can have."""
    storage, now = world.storage, world.now
    agent = await world.agent()
    key = ApiKey(
        new_id(),
        world.tenant_id,
        f"k-{user.subject}",
        "",
        Role.ADMIN,
        new_id().bytes,
        now,
        expires_at=now + HOUR_MS,
        owner_id=user.id,
    )
    agent_key = AgentKey(
        new_id(),
        world.tenant_id,
        world.workspace_id,
        agent.id,
        "a",
        "",
        new_id().bytes,
        now,
        owner_id=user.id,
    )
    session = BrowserSession(new_id(), new_id().bytes, user.id, now, now, now + HOUR_MS, now + HOUR_MS)
    terminal = AuthSession(
        new_id(),
        AuthSessionStatus.COMPLETE,
        1,
        now,
        now + HOUR_MS,
        approved_by=f"user:{user.id}",
        sealed_token=b"t",
    )
    await storage.api_keys.create(key)
    assert await storage.agent_keys.create(agent_key)
    await storage.sign_ins.offer(SignInLink(new_id().bytes, user.id, now, now + HOUR_MS))
    assert await storage.sign_ins.sign_in(session, link_hash=None)
    assert await storage.auth_sessions.create(terminal, SessionBounds()) is None
    return key, agent_key, session, terminal


async def test_a_removed_member_leaves_nothing_behind(world: StorageWorld) -> None:
    storage, ann, bo = world.storage, await added(world, "ann"), await added(world, "bo")
    key, agent_key, session, terminal = await furnish(world, ann)
    others = await furnish(world, bo)
    link = SignInLink(b"link", ann.id, world.now, world.now + HOUR_MS)
    await storage.sign_ins.offer(link)

    done = await change(world, ann, status=GONE)
    assert isinstance(done, MemberChanged)
    assert (done.sign_ins_ended, done.keys_ended, done.keys_handed_over) == (1, 2, 0)
    assert (done.member.status, done.member.changed_by) == (GONE, "user:bo")

    kept = await storage.api_keys.load(world.tenant_id, key.id)
    assert kept is not None
    assert kept.revoked_at is not None
    assert await storage.agent_keys.load(world.workspace_id, agent_key.id) is None
    assert await storage.sign_ins.load_session(session.id) is None
    assert await storage.sign_ins.find_link(b"link") is None

    ended = await storage.auth_sessions.load(terminal.id)
    assert ended is not None
    assert (ended.status, ended.version, ended.sealed_token) == (AuthSessionStatus.ABORTED, 2, None)

    assert await storage.api_keys.load(world.tenant_id, others[0].id) == others[0]
    assert await storage.agent_keys.load(world.workspace_id, others[1].id) == others[1]
    assert await storage.sign_ins.load_session(others[2].id) == others[2]


async def test_keys_are_handed_over_to_somebody_who_is_admitted(world: StorageWorld) -> None:
    storage, ann, heir = world.storage, await added(world, "ann"), await added(world, "heir")
    key, agent_key, *_ = await furnish(world, ann)
    beside = await world.beside()
    stranger = await added(beside, "stranger")
    for nobody in (stranger.id, ann.id, new_id()):
        assert await change(world, ann, status=GONE, heir_id=nobody) is MemberRefusal.NO_HEIR

    done = await change(world, ann, status=GONE, heir_id=heir.id)
    assert isinstance(done, MemberChanged)
    assert (done.keys_ended, done.keys_handed_over) == (0, 2)
    assert await storage.api_keys.load(world.tenant_id, key.id) == replace(key, owner_id=heir.id)
    assert await storage.agent_keys.load(world.workspace_id, agent_key.id) == replace(
        agent_key, owner_id=heir.id
    )

    mine, total = await storage.api_keys.list(
        world.tenant_id, page=1, page_size=9, sort="created_at", owner_id=heir.id
    )
    assert ([one.id for one in mine], total) == ([key.id], 1)


async def test_who_is_suspended_is_signed_out_and_keeps_the_keys(world: StorageWorld) -> None:
    storage, ann = world.storage, await added(world, "ann")
    key, agent_key, session, _ = await furnish(world, ann)
    done = await change(world, ann, status=MemberStatus.SUSPENDED)

    assert isinstance(done, MemberChanged)
    assert (done.sign_ins_ended, done.keys_ended) == (1, 0)
    assert await storage.sign_ins.load_session(session.id) is None
    assert await storage.api_keys.load(world.tenant_id, key.id) == key
    assert await storage.agent_keys.load(world.workspace_id, agent_key.id) == agent_key


async def test_of_two_admins_who_remove_each_other_one_stays(world: StorageWorld) -> None:
    """The tenant's first admin is the third, and goes before."""
    storage, done = world.storage, list[MemberChanged | MemberRefusal]()
    ann, bo = await added(world, "ann", Role.ADMIN), await added(world, "bo", Role.ADMIN)
    [first, *_], _ = await storage.members.list(world.tenant_id, status=None, page=1, page_size=9)
    assert isinstance(await change(world, first, status=GONE), MemberChanged)

    async def remove(user: User) -> None:
        done.append(await change(world, user, status=GONE))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(remove, ann)
        nursery.start_soon(remove, bo)
    assert sorted(isinstance(one, MemberChanged) for one in done) == [False, True]
    assert MemberRefusal.LAST_ADMIN in done


async def test_the_last_platform_admin_stays_whatever_tenant_it_is(world: StorageWorld) -> None:
    storage, beside = world.storage, await world.beside()
    ann = await added(world, "ann", platform_admin=True)
    assert await storage.members.platform_admin() == ann.id
    assert await change(world, ann, status=GONE) is MemberRefusal.LAST_ADMIN

    await added(beside, "bo", platform_admin=True)
    assert isinstance(await change(world, ann, status=GONE), MemberChanged)


async def test_members_are_of_their_tenant(world: StorageWorld) -> None:
    storage, beside = world.storage, await world.beside()
    ann, bo = await added(world, "ann"), await added(beside, "bo")
    members = storage.members
    assert await members.find(world.tenant_id, ann.id) == ann
    assert await members.find(world.tenant_id, bo.id) is None
    assert await change(world, bo, status=GONE) is MemberRefusal.UNKNOWN

    listed, total = await members.list(world.tenant_id, status=None, page=1, page_size=1)
    assert (len(listed), total) == (1, 2)

    gone = await change(world, ann, status=GONE)
    assert isinstance(gone, MemberChanged)

    listed, total = await members.list(world.tenant_id, status=GONE, page=1, page_size=9)
    assert (list(listed), total) == ([gone.member], 1)

    with pytest.raises(NameTaken):
        await added(beside, "ann")


async def test_who_comes_from_elsewhere_is_met_once_in_each_tenant(world: StorageWorld) -> None:
    members, beside = world.storage.members, await world.beside()
    ann = person(world, "https://ci#ann", issuer="https://ci")
    assert await members.meet(ann) == ann

    again = await members.meet(replace(ann, id=new_id(), role=Role.OPERATOR, platform_admin=True))
    assert again == replace(ann, role=Role.OPERATOR, platform_admin=True)

    there = person(beside, "https://ci#ann", issuer="https://ci")
    assert await members.meet(there) == there
    assert isinstance(await change(world, ann, status=GONE), MemberChanged)
    assert (await members.meet(replace(ann, id=new_id()))).status is GONE

    here = await added(world, "https://ci#bo")
    assert await members.meet(person(world, "https://ci#bo", issuer="https://ci")) == here
    assert await world.storage.users.find_by_subject("https://ci#ann") is None


async def test_sessions_of_a_tenant_are_listed_and_ended_by_person(world: StorageWorld) -> None:
    sign_ins, beside = world.storage.sign_ins, await world.beside()
    ann, bo, other = await added(world, "ann"), await added(world, "bo"), await added(beside, "other")
    mine, hers = (await furnish(world, ann))[2], (await furnish(world, bo))[2]
    await furnish(beside, other)
    listed = await sign_ins.list_tenant(world.tenant_id, user_id=None, limit=9)

    assert {one.id for one in listed} == {mine.id, hers.id}
    assert [one.id for one in await sign_ins.list_tenant(world.tenant_id, user_id=ann.id, limit=9)] == [
        mine.id
    ]
    assert await sign_ins.list_tenant(world.tenant_id, user_id=other.id, limit=9) == []

    assert list(await sign_ins.sign_out_all(ann.id)) == [mine.id]
    assert list(await sign_ins.sign_out_all(ann.id)) == []
    assert await sign_ins.load_session(hers.id) == hers
