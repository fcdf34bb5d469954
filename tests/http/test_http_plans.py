"""Plans, what they allow, and what is told who wants more."""

from typing import Any
from uuid import UUID

import pytest
import trio
from msgspec.structs import replace

from sexton_actors.entitlements import FRESH_MS
from sexton_actors.ledger.transitions import GRACE_MS
from sexton_actors.periodic.retention_rounds import DropOld
from sexton_actors.plans import DEFAULT_PLANS, BillingTerms, PlanLimits
from sexton_actors.terms import PRUNE_INTERVAL_S, RECORD_FRESH_MS
from sexton_http.retry_after import SPREAD_MAX_S
from sexton_storage.errors import StorageUnavailable
from sexton_storage.postgres import PostgresStorage
from sexton_storage.records.plans import PlanStatus
from sexton_storage.records.tenants import PlanTier, Tenant
from sexton_storage.records.users import Role
from tests.http.test_http_continuation import report_of
from tests.http.test_http_own_codes import FORMS, code, install_svix, send
from tests.worlds.http import HttpWorld, open_http_world, open_http_world_on
from tests.worlds.samples import START_MS, agent_files

SUBSCRIPTION = {"subscription_id": "sub_1a2B_3"}


def free(**limits: Any) -> BillingTerms:
    return BillingTerms({**DEFAULT_PLANS, PlanTier.FREE: PlanLimits(**limits)})


def event(kind: str) -> dict[str, str]:
    return {"event_type": kind, "reason": "the card was refused"}


async def fallen(world: HttpWorld, kind: str) -> dict[str, Any]:
    answer = await world.post(f"{world.ws}/billing/events", event(kind))
    assert answer.status_code == 200, answer.text
    plan: dict[str, Any] = answer.json()
    return plan


def cut_off(world: HttpWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan cannot be read any more; all else can."""

    class Away:
        async def load(self, tenant_id: UUID) -> Tenant | None:
            raise StorageUnavailable(f"no tenant can be read, {tenant_id} neither")

    world.pass_ms(FRESH_MS)
    monkeypatch.setattr(world.actors_world.entitlements, "_tenants", Away())


# --- the plan's life ----------------------------------------------------------------------------------------


async def test_a_plan_is_bought_fails_recovers_and_is_given_up(world: HttpWorld) -> None:
    world.set_plan(PlanTier.FREE)
    bought = await world.post(f"{world.ws}/billing/scale", SUBSCRIPTION)
    assert bought.status_code == 200

    ids = {"workspace_id", "request_id", "grace_expires_at"}
    assert {name: value for name, value in bought.json().items() if name not in ids} == {
        "plan_tier": "pro",
        "billing_status": "ACTIVE",
        "plan_sku": "pro_v1",
        **SUBSCRIPTION,
    }

    failed = await fallen(world, "PAYMENT_FAILED")
    assert (failed["billing_status"], failed["plan_tier"]) == ("GRACE", "pro")
    assert 0 <= world.actors_world.now_ms() + GRACE_MS - failed["grace_expires_at"] < 60_000
    assert (await fallen(world, "PAYMENT_FAILED"))["grace_expires_at"] == failed["grace_expires_at"]

    recovered = await fallen(world, "PAYMENT_RECOVERED")
    assert (recovered["billing_status"], recovered["grace_expires_at"]) == ("ACTIVE", None)

    given_up = await fallen(world, "DOWNGRADE_TO_FREE")
    assert (given_up["billing_status"], given_up["plan_tier"]) == ("DOWNGRADED", "free")
    assert (given_up["plan_sku"], given_up["subscription_id"]) == ("free_v1", "")

    shown = (await world.get(f"{world.ws}/billing")).json()
    assert (shown["plan_tier"], shown["reason"]) == ("free", "the card was refused")
    assert shown["limits"] == {
        "requests_per_second": 20,
        "workspaces": 3,
        "agents_per_workspace": 20,
        "events_per_day": 1000,
        "tools": None,
        "runtimes": None,
        "credentials": 100,
        "api_keys": 100,
        "agent_keys": 200,
        "proposals": 5_000,
        "drafts": 500,
        "queued_messages": 1_000,
        "crons": 100,
        "event_days": None,
        "transcript_days": None,
        "file_days": None,
        "delivery_days": None,
    }


async def test_a_plan_says_how_long_events_are_kept_and_what_was_charged_stays() -> None:
    async with open_http_world(terms=free(event_days=1)) as world:
        world.set_plan(PlanTier.FREE)
        _, token, lease = await world.working()
        event_id = lease["event"]["event_id"]
        world.pass_ms(1_000)
        assert (await world.post("/v1/runners/me/reports", report_of(lease), token)).status_code == 200

        metering = f"/v1/tenants/me/billing/charges/{event_id}/metering-periods"
        billed = (await world.get(metering)).json()["items"]

        await world.system.ask("retention_rounds", "", DropOld())
        kept = await world.get(f"{world.ws}/events/{event_id}")
        world.pass_ms(25 * 3600 * 1000)
        await world.system.ask("retention_rounds", "", DropOld())
        gone = await world.get(f"{world.ws}/events/{event_id}")

        assert (kept.status_code, gone.status_code, gone.json()["error_code"]) == (200, 404, "UZ-EVENT-001")
        assert (await world.get(metering)).json()["items"] == billed != []
        assert (await world.get(f"{world.ws}/billing")).json()["limits"]["event_days"] == 1


async def test_what_is_no_subscription_or_no_event_is_refused(world: HttpWorld) -> None:
    world.set_plan(PlanTier.FREE)
    scale, events = f"{world.ws}/billing/scale", f"{world.ws}/billing/events"
    assert await code(world, "POST", scale, json={"subscription_id": "sub_"}) == (400, "UZ-BILLING-001")

    for kind in ("", "payment_failed", "REFUND"):
        assert await code(world, "POST", events, json=event(kind)) == (400, "UZ-BILLING-004")
    assert (await fallen(world, "PAYMENT_FAILED"))["billing_status"] == "ACTIVE", "nothing is paid for free"

    too_low = world.user_token(Role.OPERATOR)
    assert await code(world, "POST", events, too_low, json=event("PAYMENT_FAILED")) == (403, "UZ-AUTH-009")


async def test_a_plan_that_is_missing_or_contradicts_itself_is_no_plan(world: HttpWorld) -> None:
    tables, tenant_id = world.memory.tables, world.installation.tenant_id
    routes: list[tuple[str, str, Any]] = [
        ("GET", f"{world.ws}/billing", None),
        ("POST", f"{world.ws}/billing/scale", SUBSCRIPTION),
        ("POST", f"{world.ws}/billing/events", event("PAYMENT_FAILED")),
    ]
    kept = tables.plans[tenant_id]
    tables.plans[tenant_id] = replace(kept, tier=PlanTier.PRO)
    for method, path, body in routes:
        assert await code(world, method, path, json=body) == (500, "UZ-BILLING-003")
    tables.plans[tenant_id] = replace(kept, status=PlanStatus.GRACE)
    assert await code(world, "GET", f"{world.ws}/billing") == (500, "UZ-BILLING-003")

    del tables.plans[tenant_id]
    for method, path, body in routes:
        assert await code(world, method, path, json=body) == (500, "UZ-BILLING-002")


async def test_a_downgrade_deletes_nothing_and_lets_nothing_new_in() -> None:
    async with open_http_world(terms=free(workspaces=1, agents_per_workspace=1)) as world:
        for name in ("a", "b"):
            await world.install(name)
        assert (await world.post("/v1/workspaces", {"name": "second"})).status_code == 201

        await fallen(world, "DOWNGRADE_TO_FREE")
        world.pass_ms(RECORD_FRESH_MS)
        assert (await world.get(f"{world.ws}/zombies")).json()["total"] == 2
        assert (await world.get("/v1/tenants/me/workspaces")).json()["total"] == 2
        assert await code(world, "POST", f"{world.ws}/zombies", json=agent_files("c")) == (
            402,
            "UZ-WORKSPACE-003",
        )
        assert await code(world, "POST", "/v1/workspaces", json={}) == (402, "UZ-WORKSPACE-003")


async def test_a_grace_that_is_over_ends_by_itself_in_the_database(
    postgres_storage: PostgresStorage,
) -> None:
    async with open_http_world_on(postgres_storage) as world:
        await world.post(f"{world.ws}/billing/scale", SUBSCRIPTION)
        failed = await fallen(world, "PAYMENT_FAILED")
        tenant_id = world.installation.tenant_id
        found = await postgres_storage.plans.load(tenant_id)
        assert found is not None
        assert found[1] is not None

        plan = replace(found[1], version=found[1].version + 1, grace_expires_at=START_MS)
        assert failed["billing_status"] == "GRACE"
        assert await postgres_storage.plans.overdue(limit=5) == []

        await postgres_storage.plans.save(plan)
        with trio.fail_after(PRUNE_INTERVAL_S / 2):
            while await postgres_storage.plans.overdue(limit=5):
                await trio.sleep(0.05)
        shown = (await world.get(f"{world.ws}/billing")).json()
        assert (shown["billing_status"], shown["plan_tier"]) == ("DOWNGRADED", "free")

        back = await fallen(world, "PAYMENT_RECOVERED")
        assert (back["billing_status"], back["plan_tier"]) == ("ACTIVE", "pro")


# --- what a plan allows -------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
async def test_over_the_events_of_its_day_a_webhook_is_sent_away_until_midnight(form: str) -> None:
    async with open_http_world(terms=free(events_per_day=2)) as world:
        world.set_plan(PlanTier.FREE)
        path = FORMS[form](await install_svix(world))
        for number in (1, 2):
            assert await send(world, path, b'{"type":"a","n":%d}' % number) == (202, "")
        assert await send(world, path, b'{"type":"a","n":3}') == (503, "UZ-ENTL-003")
        assert await send(world, path, b'{"type":"a","n":1}') == (200, ""), "a repeat is no new event"
        assert (await world.get(f"{world.ws}/billing")).json()["events_today"] == 2

        world.pass_ms(86_400_000)
        assert await send(world, path, b'{"type":"a","n":3}') == (202, "")


async def test_over_the_events_of_its_day_a_message_is_refused_until_midnight() -> None:
    async with open_http_world(terms=free(events_per_day=1)) as world:
        world.set_plan(PlanTier.FREE)
        zombies = [await world.install(name) for name in ("a", "b")]
        paths = [f"{world.ws}/zombies/{zombie['zombie_id']}/messages" for zombie in zombies]
        assert await code(world, "POST", paths[0], json={"message": "m"}) == (202, "")

        refused = await world.post(paths[1], {"message": "m"})
        midnight_s = 86_400 - world.actors_world.now_ms() // 1000 % 86_400
        assert (refused.status_code, refused.json()["error_code"]) == (402, "UZ-ENTL-003")
        assert midnight_s <= int(refused.headers["retry-after"]) <= midnight_s + SPREAD_MAX_S


async def test_a_tool_or_a_runtime_that_the_plan_does_not_include_is_not_installed() -> None:
    terms = free(tools=("http_*",), runtimes=("agent",))
    async with open_http_world(terms=terms) as world:
        world.set_plan(PlanTier.FREE)
        zombies = f"{world.ws}/zombies"
        refused = await world.post(zombies, agent_files("a", "tools: [http_request, shell]"))
        assert (refused.status_code, refused.json()["error_code"]) == (403, "UZ-ENTL-004")
        assert refused.json()["tools"] == ["shell"]

        body = agent_files("a", "runtime: command")
        body["source_markdown"] += "\n```sh\ntrue\n```\n"
        assert await code(world, "POST", zombies, json=body) == (403, "UZ-ENTL-004")
        assert await code(world, "POST", zombies, json=agent_files("a", "tools: [http_request]")) == (201, "")


async def test_who_asks_for_a_run_without_credit_is_told_so_and_what_comes_by_itself_waits(
    world: HttpWorld,
) -> None:
    zombie_id = await install_svix(world)
    tenants, tenant_id = world.memory.tables.tenants, world.installation.tenant_id
    world.pass_ms(FRESH_MS)
    tenants[tenant_id] = replace(tenants[tenant_id], balance_nanos=0)
    messages = f"{world.ws}/zombies/{zombie_id}/messages"
    assert await code(world, "POST", messages, json={"message": "m"}) == (402, "UZ-BILLING-005")
    assert await send(world, FORMS["by source"](zombie_id)) == (202, "")

    credit = {"amount_nanos": 10**9, "reason": "gift"}
    path = f"/v1/admin/tenants/{tenant_id}/credit"
    assert (await world.post(path, credit, world.admin_token())).status_code == 200
    assert await code(world, "POST", messages, json={"message": "m"}) == (202, "")


async def test_a_plan_that_cannot_be_read_allows_nothing(
    world: HttpWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    zombie_id = await install_svix(world)
    cut_off(world, monkeypatch)
    away = (503, "UZ-ENTL-001")
    for form, body in zip(FORMS.values(), (b"1", b"2", b"3"), strict=True):
        assert await send(world, form(zombie_id), b'{"type":"a","n":%s}' % body) == away
    for path, sent in (
        (f"{world.ws}/zombies/{zombie_id}/messages", {"message": "m"}),
        (f"{world.ws}/zombies", agent_files("other")),
        ("/v1/workspaces", {}),
    ):
        assert await code(world, "POST", path, json=sent) == away

    assert await code(world, "GET", f"{world.ws}/billing") == away
    assert await code(world, "GET", f"{world.ws}/retention") == away
    assert await code(world, "PUT", f"{world.ws}/retention", json={}) == away
    assert await code(world, "GET", f"{world.ws}/retention/preview") == away


async def test_a_free_trial_bills_no_time_and_says_when_it_ends() -> None:
    ends = START_MS + 3_600_000
    async with open_http_world(terms=BillingTerms(DEFAULT_PLANS, free_trial_ends_ms=ends)) as world:
        shown = (await world.get("/v1/tenants/me/billing")).json()
        assert shown["free_trial"] == {"active": True, "ends_at_ms": ends}

        _zombie, token, lease = await world.working()
        world.pass_ms(10_000)
        path = f"/v1/runners/me/leases/{lease['lease_id']}/renew"
        usage = {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0}
        renewed = (await world.post(path, usage, token)).json()
        assert renewed["charged_nanos"] == 0

        world.pass_ms(3_600_000)
        shown = (await world.get("/v1/tenants/me/billing")).json()
        assert shown["free_trial"]["active"] is False


async def test_from_a_downgrade_on_the_plan_that_is_left_names_itself_and_sets_the_rate(
    world: HttpWorld,
) -> None:
    world.set_plan(PlanTier.FREE)
    await world.post(f"{world.ws}/billing/scale", SUBSCRIPTION)
    bought = await world.post("/v1/workspaces", {})
    assert bought.headers["ratelimit-policy"] == '"default";q=400;w=2'

    for _ in range(2):
        assert (await world.post("/v1/workspaces", {})).status_code == 201
    await fallen(world, "DOWNGRADE_TO_FREE")
    refused = await world.post("/v1/workspaces", {})
    assert refused.json()["error_code"] == "UZ-WORKSPACE-003"
    assert refused.json()["detail"] == "the free plan allows 3 workspaces"
    assert refused.headers["ratelimit-policy"] == '"default";q=40;w=2'
