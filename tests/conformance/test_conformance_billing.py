"""Plans, charges, counted events, providers and sealed rows are kept alike in memory and in PostgreSQL."""

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

import pytest
import trio
from msgspec.structs import replace

from sexton_storage.errors import Conflict
from sexton_storage.paging import Page
from sexton_storage.periods import DAY_MS, day_of
from sexton_storage.records.charges import ChargeTotal, TotalsBy
from sexton_storage.records.credentials import Credential
from sexton_storage.records.events import EventStatus
from sexton_storage.records.leases import LeaseStatus
from sexton_storage.records.plans import PlanStatus, first_plan
from sexton_storage.records.providers import PlatformKey, ProviderMode, TenantProvider
from sexton_storage.records.tenants import PlanTier
from sexton_storage.vault import Vault, version_of
from sexton_storage.writes import Appended, AppendEvent, Duplicate, EventEnd, OverBudget
from tests.worlds.storage import RICH, StorageWorld, new_id

PROCESSED = EventEnd(EventStatus.PROCESSED)


# --- plans --------------------------------------------------------------------------------------------------


async def test_a_tenant_is_made_with_its_plan(world: StorageWorld) -> None:
    found = await world.storage.plans.load(world.tenant_id)
    assert found is not None

    tenant, plan = found
    assert plan == first_plan(tenant)
    assert await world.storage.plans.load(new_id()) is None


async def test_a_plan_is_saved_with_the_tenants_tier_by_one_of_two(world: StorageWorld) -> None:
    plans = world.storage.plans
    found = await plans.load(world.tenant_id)
    assert found is not None
    assert found[1] is not None

    changed = replace(found[1], version=2, tier=PlanTier.PRO, sku="pro_v1", subscription_id="sub_abc")
    await plans.save(changed)
    with pytest.raises(Conflict):
        await plans.save(changed)
    again = await plans.load(world.tenant_id)
    assert again is not None
    assert (again[0].plan_tier, again[1]) == (PlanTier.PRO, changed)


async def test_a_grace_that_is_over_is_found(world: StorageWorld) -> None:
    plans, other = world.storage.plans, await world.beside()
    for tenant_id, expires in ((world.tenant_id, 5), (other.tenant_id, world.now + 3_600_000)):
        found = await plans.load(tenant_id)
        assert found is not None
        assert found[1] is not None
        await plans.save(
            replace(found[1], version=2, status=PlanStatus.GRACE, tier=PlanTier.PRO, grace_expires_at=expires)
        )

    assert await plans.overdue(limit=9) == [world.tenant_id]
    assert await plans.overdue(limit=0) == []


# --- events of a day ----------------------------------------------------------------------------------------


async def test_a_plans_events_are_counted_exactly_however_they_come(world: StorageWorld) -> None:
    agents = [await world.agent() for _ in range(4)]
    answers: list[object] = []
    events = [world.event_of(agents[number % 4]) for number in range(30)]
    day = day_of(events[0].created_at)
    events = [replace(event, created_at=events[0].created_at) for event in events]
    for event in events:
        write = AppendEvent(event, None, None, None, (), events_limit=11)
        world.storage.journal.submit(write, answers.append)
    while len(answers) < len(events):
        await trio.sleep(0.001)
    kept = [answer for answer in answers if isinstance(answer, Appended)]
    assert len(kept) == 11
    assert answers.count(OverBudget("plan")) == 19
    assert [isinstance(answer, Appended) for answer in answers] == [True] * 11 + [False] * 19
    assert await world.storage.charges.events_of_day(world.tenant_id, day) == 11

    tomorrow = replace(world.event_of(agents[0]), created_at=events[0].created_at + DAY_MS)
    write = AppendEvent(tomorrow, None, None, None, (), events_limit=11)
    assert await world.storage.journal.write(write) == Appended(tomorrow.id)


async def test_only_what_is_kept_under_a_limit_counts(world: StorageWorld) -> None:
    agent, other = await world.agent(), await world.beside()
    day = day_of(world.now)

    async def append(key: bytes | None, limit: int | None, daily: int | None = None) -> object:
        event = world.event_of(agent)
        return await world.storage.journal.write(AppendEvent(event, key, daily, None, (), events_limit=limit))

    first = await append(b"k", 2)

    assert isinstance(first, Appended)
    assert await append(b"k", 2) == Duplicate(first.event_id)
    assert await append(None, 2, 0) == OverBudget("day")
    assert isinstance(await append(None, None), Appended)
    assert await world.storage.charges.events_of_day(world.tenant_id, day) == 1
    assert isinstance(await append(None, 2), Appended)
    assert await append(None, 2) == OverBudget("plan")
    assert await append(b"k", 2) == Duplicate(first.event_id), "a repeat is one, over the limit too"
    assert await world.storage.charges.events_of_day(other.tenant_id, day) == 0


# --- charges ------------------------------------------------------------------------------------------------


async def totals(world: StorageWorld, by: TotalsBy, **span: int) -> Sequence[ChargeTotal]:
    options = {"since": 0, "until": 2**53, "limit": 9, **span}
    return await world.storage.charges.totals(world.tenant_id, by, **options)


async def test_each_lease_that_was_billed_is_one_charge_and_stays_when_its_agent_goes(
    world: StorageWorld,
) -> None:
    agent = await world.agent()
    await world.append(agent)
    first = (await world.claim(agent, model="m", own_key=True)).lease
    first, _ = await world.renew(first, 300)
    back = EventEnd(EventStatus.RECEIVED)
    await world.end(first, back, status=LeaseStatus.RECLAIMED)
    second = (await world.claim(agent)).lease
    await world.end(second, back, status=LeaseStatus.RELEASED)
    third = (await world.claim(agent)).lease
    await world.end(third, PROCESSED, nanos=500)
    [whose] = await totals(world, TotalsBy.AGENT)
    await world.storage.zombies.delete(agent.id)
    charges = await world.storage.charges.list(world.tenant_id, limit=9)
    assert {charge.id: charge.credit_deducted_nanos for charge in charges} == {first.id: 300, third.id: 500}
    assert {charge.charge_type for charge in charges} == {"stage"}
    assert sum(charge.credit_deducted_nanos for charge in charges) == RICH - await world.balance()

    by_id = {charge.id: charge for charge in charges}
    assert (by_id[first.id].posture, by_id[first.id].model) == ("self_managed", "m")
    assert (by_id[third.id].posture, by_id[third.id].model) == ("platform", None)
    assert (by_id[third.id].token_count_input, by_id[third.id].token_count_output) == (12, 5)

    newest = charges[0]
    page = Page(newest.recorded_at, newest.id)
    assert await world.storage.charges.list(world.tenant_id, limit=9, before=page) == [charges[1]]
    assert await world.storage.charges.list(new_id(), limit=9) == []

    day = f"{datetime.fromtimestamp(newest.recorded_at / 1000, UTC):%Y-%m-%d}"
    sums = {"charged_nanos": 800, "wall_ms": sum(charge.wall_ms for charge in charges)}
    tokens = {"input_tokens": sum(charge.token_count_input for charge in charges), "output_tokens": 10}
    assert whose == ChargeTotal(key=str(agent.id), name=agent.name, runs=2, **sums, **tokens)
    assert await totals(world, TotalsBy.AGENT) == [replace(whose, name=None)]
    assert await totals(world, TotalsBy.DAY) == [replace(whose, key=day, name=None)]

    models = await totals(world, TotalsBy.MODEL)
    assert [(one.key, one.charged_nanos) for one in models] == [("", 500), ("m", 300)]
    assert await totals(world, TotalsBy.MODEL, limit=1) == models[:1]

    last = max(charge.recorded_at for charge in charges)
    assert await totals(world, TotalsBy.DAY, since=last + 1) == []
    assert sum(one.runs for one in await totals(world, TotalsBy.MODEL, since=last)) >= 1


async def test_a_credit_under_an_id_is_given_once(world: StorageWorld) -> None:
    credit_id, before = new_id(), await world.balance()
    for _ in range(3):
        tenant = await world.storage.tenants.credit(world.tenant_id, 5, "r", "a", credit_id=credit_id)
        assert tenant is not None
        assert tenant.balance_nanos == before + 5
    await world.storage.tenants.credit(world.tenant_id, 5, "r", "a", credit_id=new_id())
    await world.storage.tenants.credit(world.tenant_id, 5, "r", "a")

    assert await world.balance() == before + 15
    assert await world.storage.tenants.credit(new_id(), 5, "r", "a", credit_id=new_id()) is None


# --- providers ----------------------------------------------------------------------------------------------


async def test_a_tenants_provider_is_kept_replaced_and_forgotten(world: StorageWorld) -> None:
    providers = world.storage.providers
    own = TenantProvider(
        world.tenant_id, ProviderMode.SELF_MANAGED, "p", "m", 1000, "c", world.workspace_id, world.now
    )
    lent = replace(own, mode=ProviderMode.PLATFORM, credential_ref=None, credential_workspace_id=None)
    for kept in (own, lent):
        await providers.put(kept)
        assert await providers.load(world.tenant_id) == kept

    assert await providers.delete(world.tenant_id) is True
    assert await providers.delete(world.tenant_id) is False
    assert await providers.load(world.tenant_id) is None


async def test_a_tenants_own_entry_comes_before_the_shared_one_of_which_there_is_one(
    world: StorageWorld,
) -> None:
    providers, other = world.storage.providers, await world.beside()

    def key(of: StorageWorld, provider: str, *, shared: bool) -> PlatformKey:
        return PlatformKey(of.tenant_id, provider, of.workspace_id, shared, of.now)

    shared, mine = key(other, "a", shared=True), key(world, "b", shared=False)
    for each in (shared, key(other, "b", shared=True), mine):
        await providers.put_platform_key(each)
    assert await providers.lent_keys(world.tenant_id) == [shared, mine]
    assert await providers.platform_keys(world.tenant_id) == [mine]

    newer = key(world, "a", shared=True)
    await providers.put_platform_key(newer)
    (of_a, _of_b) = await providers.platform_keys(other.tenant_id)
    assert (of_a.provider, of_a.shared) == ("a", False)
    assert await providers.lent_keys(new_id()) == [newer, key_of(await providers.lent_keys(new_id()), "b")]
    assert await providers.delete_platform_key(world.tenant_id, "a") is True
    assert await providers.delete_platform_key(world.tenant_id, "a") is False


def key_of(keys: Sequence[PlatformKey], provider: str) -> PlatformKey:
    return next(key for key in keys if key.provider == provider)


# --- the vault's rows ---------------------------------------------------------------------------------------


async def test_rows_under_an_older_master_key_are_found_page_by_page(world: StorageWorld) -> None:
    credentials, keys = world.storage.credentials, {1: b"1" * 32, 300: b"2" * 32}
    old, new = Vault({1: keys[1]}), Vault(keys)

    def sealed(vault: Vault, name: str) -> Credential:
        return Credential(world.workspace_id, name, vault.seal(b"s", name.encode()), 1, 1)

    for name in "abcd":
        await credentials.put(sealed(new if name == "c" else old, name))
    seen: list[str] = []
    after: tuple[UUID, str] | None = None
    while page := await credentials.sealed_before(300, after=after, limit=2):
        seen += [row.name for row in page]
        after = (page[-1].workspace_id, page[-1].name)
    assert seen == ["a", "b", "d"]
    assert await credentials.sealed_before(1, after=None, limit=9) == []
    assert await credentials.count_by_key() == {1: 3, 300: 1}

    row = await credentials.load(world.workspace_id, "a")
    assert row is not None
    assert await credentials.reseal(row, new.reseal(row.sealed, b"a")) is True
    assert await credentials.reseal(row, b"x") is False, "it is another by now"

    after_all = await credentials.load(world.workspace_id, "a")
    assert after_all is not None
    assert (version_of(after_all.sealed), after_all.updated_at) == (300, 1)


async def test_a_setting_is_swapped_for_what_was_seen_only(world: StorageWorld) -> None:
    instance = world.storage.instance
    await instance.put_setting("s", b"1")

    assert await instance.swap_setting("s", b"1", b"2") is True
    assert await instance.swap_setting("s", b"1", b"3") is False
    assert await instance.swap_setting("none", b"", b"3") is False
    assert await instance.setting("s") == b"2"
