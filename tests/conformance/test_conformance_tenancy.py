"""Tenants, keys, credentials, runners and the installation."""

import pytest
import trio
from msgspec.structs import replace

from sexton_storage.errors import Conflict, NameTaken
from sexton_storage.records.api_keys import ApiKey
from sexton_storage.records.credentials import Credential
from sexton_storage.records.runners import AdminState, EnrolmentToken
from sexton_storage.records.tenants import PlanTier, Tenant
from sexton_storage.records.users import Role, User
from sexton_storage.records.workspaces import Workspace
from sexton_storage.stores import Storage
from sexton_storage.terms import DEDUP_WINDOW_MS
from sexton_storage.writes import Appended, AppendEvent
from tests.worlds.storage import HOUR_MS, RICH, StorageWorld, new_id


async def test_the_installation_is_made_once(storage: Storage) -> None:
    tenant = Tenant(new_id(), "first", PlanTier.ENTERPRISE, 5, None, 1, 1)
    workspace = Workspace(new_id(), tenant.id, "main", paused=False, created_at=1)
    user = User(new_id(), tenant.id, "local:admin", Role.ADMIN, platform_admin=True, created_at=1)
    made = [await storage.instance.first_start(tenant, workspace, user, {"key": b"k"}) for _ in range(2)]
    assert made == [True, False]
    assert await storage.tenants.load(tenant.id) == tenant
    assert await storage.workspaces.load(workspace.id) == workspace
    assert await storage.users.load(user.id) == user
    assert await storage.users.find_by_subject("local:admin") == user
    assert await storage.users.find_by_subject("nobody") is None
    assert await storage.instance.setting("key") == b"k"

    await storage.instance.put_setting("key", b"k2")
    assert await storage.instance.setting("key") == b"k2"
    assert await storage.instance.setting("other") is None


async def test_only_one_of_many_starters_makes_the_installation(storage: Storage) -> None:
    made: list[bool] = []

    async def start() -> None:
        tenant = Tenant(new_id(), "first", PlanTier.FREE, 5, None, 1, 1)
        workspace = Workspace(new_id(), tenant.id, "main", paused=False, created_at=1)
        user = User(new_id(), tenant.id, "local:admin", Role.ADMIN, platform_admin=True, created_at=1)
        made.append(await storage.instance.first_start(tenant, workspace, user, {}))

    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(start)

    assert sorted(made) == [False, False, False, True]


async def test_credit_is_added_never_taken(world: StorageWorld) -> None:
    credited = await world.storage.tenants.credit(world.tenant_id, 25, "gift", "user:1")
    assert credited is not None
    assert credited.balance_nanos == RICH + 25
    assert await world.storage.tenants.load(world.tenant_id) == credited

    with pytest.raises(ValueError, match="negative"):
        await world.storage.tenants.credit(world.tenant_id, -1, "theft", "user:1")
    assert await world.storage.tenants.credit(new_id(), 1, "gift", "user:1") is None


async def test_a_subject_has_one_tenancy(world: StorageWorld) -> None:
    tenant = Tenant(new_id(), "t", PlanTier.FREE, 0, None, 1, 1)
    workspace = Workspace(new_id(), tenant.id, "w", paused=False, created_at=1)
    user = User(new_id(), tenant.id, "oidc:1", Role.ADMIN, platform_admin=False, created_at=1)
    await world.storage.tenants.create(tenant, workspace, user)
    again = replace(tenant, id=new_id())
    with pytest.raises(NameTaken):
        await world.storage.tenants.create(
            again,
            replace(workspace, id=new_id(), tenant_id=again.id),
            replace(user, id=new_id(), tenant_id=again.id),
        )

    assert await world.storage.tenants.load(again.id) is None


async def test_workspace_names_are_a_tenants_own(world: StorageWorld) -> None:
    second = Workspace(new_id(), world.tenant_id, "second", paused=False, created_at=world.now + 5)
    await world.storage.workspaces.create(second)
    assert [w.name for w in await world.storage.workspaces.list(world.tenant_id)] == ["workspace", "second"]

    with pytest.raises(NameTaken):
        await world.storage.workspaces.create(replace(second, id=new_id()))
    with pytest.raises(NameTaken):
        await world.storage.workspaces.save(replace(second, name="workspace"))
    assert await world.storage.workspaces.save(replace(second, name="third", paused=True))
    assert await world.storage.workspaces.load(second.id) == replace(second, name="third", paused=True)
    assert not await world.storage.workspaces.save(replace(second, id=new_id(), name="none"))

    other = await world.beside()
    assert [w.id for w in await world.storage.workspaces.list(other.tenant_id)] == [other.workspace_id]


def _key(world: StorageWorld, name: str, at: int = 1) -> ApiKey:
    return ApiKey(new_id(), world.tenant_id, name, "what for", Role.OPERATOR, new_id().bytes, at)


async def test_a_key_keeps_whether_it_is_a_platform_admins(world: StorageWorld) -> None:
    keys = world.storage.api_keys
    plain, platform = _key(world, "plain"), replace(_key(world, "platform"), platform_admin=True)
    for key in (plain, platform):
        await keys.create(key)
        assert await keys.find_by_hash(key.token_hash) == key
    revoked = await keys.revoke(world.tenant_id, platform.id, 50)

    assert revoked == replace(platform, revoked_at=50)


async def test_a_key_lives_until_it_is_revoked_and_then_deleted(world: StorageWorld) -> None:
    keys, key = world.storage.api_keys, _key(world, "ci")
    await keys.create(key)
    with pytest.raises(NameTaken):
        await keys.create(_key(world, "ci"))
    assert await keys.find_by_hash(key.token_hash) == key
    assert await keys.find_by_hash(b"?") is None
    assert await keys.load(new_id(), key.id) is None
    assert not await keys.delete(world.tenant_id, key.id)

    revoked = await keys.revoke(world.tenant_id, key.id, 50)
    assert revoked == replace(key, revoked_at=50)
    assert await keys.revoke(world.tenant_id, key.id, 60) == revoked
    assert await keys.find_by_hash(key.token_hash) == revoked
    assert await keys.revoke(new_id(), key.id, 60) is None
    assert not await keys.delete(new_id(), key.id)
    assert await keys.delete(world.tenant_id, key.id)
    assert await keys.load(world.tenant_id, key.id) is None


async def test_the_use_of_keys_only_moves_forward(world: StorageWorld) -> None:
    keys, key = world.storage.api_keys, _key(world, "ci")
    await keys.create(key)
    for used, expected in (
        ([(key.id, 10), (key.id, 30)], 30),
        ([(key.id, 20), (new_id(), 99)], 30),
        ([(key.id, 40)], 40),
    ):
        await keys.touch(used)
        touched = await keys.load(world.tenant_id, key.id)
        assert touched is not None
        assert touched.last_used_at == expected


@pytest.mark.parametrize(
    ("sort", "names"),
    [("created_at", "bca"), ("-created_at", "acb"), ("key_name", "abc"), ("-key_name", "cba")],
)
async def test_keys_are_listed_in_the_order_asked_for(world: StorageWorld, sort: str, names: str) -> None:
    for name, at in (("a", 3), ("b", 1), ("c", 2)):
        await world.storage.api_keys.create(_key(world, name, at))
    found = []
    for page in (1, 2, 3):
        part, total = await world.storage.api_keys.list(world.tenant_id, page=page, page_size=2, sort=sort)
        assert total == 3
        found += [k.key_name for k in part]
    assert "".join(found) == names

    with pytest.raises(ValueError, match="sort"):
        await world.storage.api_keys.list(world.tenant_id, page=1, page_size=2, sort="token_hash")


async def test_a_credential_is_replaced_under_its_name(world: StorageWorld) -> None:
    store = world.storage.credentials
    first = Credential(world.workspace_id, "github", b"one", 10, 10)
    await store.put(first)
    await store.put(Credential(world.workspace_id, "github", b"two", 20, 20, ("api.github.com",)))
    await store.put(Credential(world.workspace_id, "Alpha", b"x", 30, 30))
    hosts = ("api.github.com",)
    second = replace(first, sealed=b"two", updated_at=20, hosts=hosts)

    assert await store.load(world.workspace_id, "github") == second
    assert [(c.name, c.sealed, c.hosts) for c in await store.list(world.workspace_id, limit=9)] == [
        ("Alpha", b"", ()),
        ("github", b"", hosts),
    ]
    assert await store.delete(world.workspace_id, "github")
    assert not await store.delete(world.workspace_id, "github")
    assert await store.load(world.workspace_id, "github") is None


async def test_credentials_are_listed_by_name_without_the_platforms_own(world: StorageWorld) -> None:
    store = world.storage.credentials
    for name in ("_c", "b", "B", "llm/key", "a"):
        await store.put(Credential(world.workspace_id, name, b"x", 10, 10))
    first = await store.list(world.workspace_id, limit=2)
    rest = await store.list(world.workspace_id, limit=9, after="_c")

    assert [credential.name for credential in first] == ["B", "_c"]
    assert [credential.name for credential in rest] == ["a", "b"]


async def test_an_enrolment_token_admits_one_runner(world: StorageWorld) -> None:
    runners, now = world.storage.runners, world.now
    good = EnrolmentToken(
        b"good", "user:1", now, now + HOUR_MS, None, world.tenant_id, world.workspace_id, ("reserved:eu",)
    )
    await runners.mint_enrolment(good)
    await runners.mint_enrolment(EnrolmentToken(b"late", "user:1", now - HOUR_MS, now))
    admitted: list[bool] = []
    known = {name: await runners.open_enrolment(name) for name in (b"good", b"late", b"none")}
    assert known == {b"good": good, b"late": None, b"none": None}

    async def enrol() -> None:
        admitted.append(await runners.enrol(world.runner_record(), enrolment_hash=b"good"))

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(enrol)
    assert sorted(admitted) == [False, False, True]
    assert await runners.open_enrolment(b"good") is None
    assert not await runners.enrol(world.runner_record(), enrolment_hash=b"late")
    assert not await runners.enrol(world.runner_record(), enrolment_hash=b"none")

    by_admin = world.runner_record(tenant_id=world.tenant_id, workspace_id=world.workspace_id)
    assert await runners.enrol(by_admin, enrolment_hash=None)
    assert await runners.load(by_admin.id) == by_admin
    assert await runners.find_by_hash(by_admin.token_hash) == by_admin
    assert await runners.find_by_hash(b"?") is None
    assert (await runners.list(page=1, page_size=9, sort="created_at"))[1] == 2


async def test_a_runners_state_is_saved_by_version(world: StorageWorld) -> None:
    runners, runner = world.storage.runners, world.runner_record()
    await runners.enrol(runner, enrolment_hash=None)
    cordoned = replace(
        runner, admin_state=AdminState.CORDONED, version=2, offers=("image:web", "pids<=8"), release="r/2"
    )
    await runners.save(cordoned)
    assert await runners.load(runner.id) == cordoned

    with pytest.raises(Conflict):
        await runners.save(cordoned)
    await runners.touch([(runner.id, 10), (runner.id, 5)])
    assert await runners.load(runner.id) == replace(cordoned, last_seen_at=10)


@pytest.mark.parametrize(
    ("sort", "hosts"),
    [("created_at", "bca"), ("-created_at", "acb"), ("host_id", "abc"), ("-host_id", "cba")],
)
async def test_runners_are_listed_in_the_order_asked_for(world: StorageWorld, sort: str, hosts: str) -> None:
    for host, at in (("a", 3), ("b", 1), ("c", 2)):
        await world.storage.runners.enrol(
            world.runner_record(host_id=host, created_at=at), enrolment_hash=None
        )
    first, total = await world.storage.runners.list(page=1, page_size=2, sort=sort)
    second, _ = await world.storage.runners.list(page=2, page_size=2, sort=sort)

    assert ("".join(r.host_id for r in (*first, *second)), total) == (hosts, 3)


async def test_a_sweep_takes_what_is_past_keeping(world: StorageWorld) -> None:
    storage, agent = world.storage, await world.agent()
    old, new = world.event_of(agent), world.event_of(agent, created_at=world.now + 10)
    await storage.journal.write(AppendEvent(old, b"old", None, None, ()))
    await storage.journal.write(AppendEvent(new, b"new", None, None, ()))
    await storage.runners.mint_enrolment(EnrolmentToken(b"t", "user:1", world.now, world.now + HOUR_MS))
    assert await storage.instance.sweep(old.created_at) == 0
    assert await storage.instance.sweep(old.created_at + DEDUP_WINDOW_MS) == 2

    again = world.event_of(agent)
    assert await storage.journal.write(AppendEvent(again, b"old", None, None, ())) == Appended(again.id)
    assert not await storage.runners.enrol(world.runner_record(), enrolment_hash=b"t")


async def test_a_storage_that_works_is_healthy(storage: Storage) -> None:
    assert await storage.healthy()


async def test_the_journal_counts_what_it_does(world: StorageWorld) -> None:
    before = world.storage.journal.statistics()
    await world.lease()
    after = world.storage.journal.statistics()

    assert after.hot.writes == before.hot.writes + 2
    assert after.hot.depth == 0
