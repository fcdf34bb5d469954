"""Whose model and key a run is handed, and what is said where one is missing."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from sexton_actors.catalogue import Catalogue, Model
from sexton_actors.providers import CHOICE_KEEP_MS, UNKNOWN_CAP_TOKENS
from sexton_storage.postgres import PostgresStorage
from sexton_storage.records.users import Role
from tests.http.test_http_own_codes import UNKNOWN, code
from tests.worlds.bearer_tokens import TENANT_B, WORKSPACE_B, settle_tenant_b
from tests.worlds.http import HttpWorld, open_http_world, open_http_world_on

DOLLAR = 10**9
MODELS = (
    Model("large", "anthropic", 200_000, 3 * DOLLAR, 3 * DOLLAR // 10, 15 * DOLLAR),
    Model("small", "anthropic", 100_000, DOLLAR, DOLLAR // 10, 5 * DOLLAR),
    Model("other", "openai", 128_000, 2 * DOLLAR, DOLLAR, 8 * DOLLAR),
)
CHOICE = "/v1/tenants/me/provider"
KEYS = "/v1/admin/platform-keys"
USAGE = {"input_tokens": 1_000_000, "cached_input_tokens": 0, "output_tokens": 0}


@pytest.fixture
async def shop() -> AsyncIterator[HttpWorld]:
    """A server whose operator offers three models."""
    async with open_http_world(catalogue=Catalogue("2026-11-20", MODELS)) as opened:
        yield opened


async def keep(world: HttpWorld, name: str, **data: Any) -> None:
    answer = await world.post(f"{world.ws}/credentials", {"name": name, "data": data})
    assert answer.status_code == 201, answer.text


async def own_key(world: HttpWorld, provider: str, key: str) -> None:
    body = {"provider": provider, "api_key": key}
    answer = await world.call("PUT", f"{world.ws}/credentials/llm", json=body)
    assert (answer.status_code, answer.content) == (204, b"")


async def lend(world: HttpWorld, provider: str, token: str = "") -> Any:
    body = {"provider": provider, "source_workspace_id": str(world.installation.workspace_id)}
    answer = await world.call("PUT", KEYS, token, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def choose(world: HttpWorld, **choice: Any) -> Any:
    answer = await world.call("PUT", CHOICE, json=choice)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def handed(world: HttpWorld, config: str = "") -> tuple[dict[str, Any], dict[str, Any], str]:
    """The policy of a lease, the lease, and the token of the runner that holds it."""
    _zombie, token, lease = await world.working(config)
    policy: dict[str, Any] = lease["policy"]
    return policy, lease, token


def model_of(policy: dict[str, Any]) -> tuple[Any, ...]:
    cap = policy["context"].get("context_cap_tokens")
    return policy["provider"], policy["model"], policy["api_key"], cap


async def charged(world: HttpWorld, lease: dict[str, Any], token: str) -> int:
    path = f"/v1/runners/me/leases/{lease['lease_id']}/renew"
    await world.post(path, USAGE, token)
    event_id = lease["event"]["event_id"]
    rows = await world.get(f"/v1/tenants/me/billing/charges/{event_id}/metering-periods")
    return sum(row["token_cost_nanos"] for row in rows.json()["items"])


# --- what a run is handed -----------------------------------------------------------------------------------


async def test_a_workspaces_own_key_is_handed_over_and_its_tokens_cost_nothing(shop: HttpWorld) -> None:
    await own_key(shop, "anthropic", "sk-own")
    policy, lease, token = await handed(shop)

    assert model_of(policy) == ("anthropic", "large", "sk-own", 200_000)
    assert await charged(shop, lease, token) == 0


async def test_the_platforms_key_is_handed_over_and_its_tokens_are_billed(shop: HttpWorld) -> None:
    await keep(shop, "openai_api_key", api_key="sk-platform")
    shown = await lend(shop, "openai")
    assert shown["shared"] is False

    await settle_tenant_b(shop)
    # The keys of a workspace are its own: what is lent is seen from another one of the tenant.
    second = (await shop.post("/v1/workspaces", {"name": "second"})).json()["workspace_id"]
    found = await shop.actors_world.providers.resolve_provider(
        tenant_id=shop.installation.tenant_id, workspace_id=second
    )
    assert (found.provider, found.api_key, found.own_key) == ("openai", "sk-platform", False)  # type: ignore[union-attr]  # no refusal


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("model: small", ("anthropic", "small", "sk-a", 100_000)),
        ("provider: openai", ("openai", "other", "sk-o", 128_000)),
        ("provider: openai\nmodel: brand-new", ("openai", "brand-new", "sk-o", UNKNOWN_CAP_TOKENS)),
        ("context: {context_cap_tokens: 9000}", ("anthropic", "large", "sk-a", 9_000)),
        ("context: {context_cap_tokens: 900000}", ("anthropic", "large", "sk-a", 200_000)),
    ],
)
async def test_an_agents_wishes_are_heard(shop: HttpWorld, config: str, expected: tuple[Any, ...]) -> None:
    await own_key(shop, "anthropic", "sk-a")
    await keep(shop, "openai_api_key", api_key="sk-o")
    policy, _lease, _token = await handed(shop, config)

    assert model_of(policy) == expected


async def test_a_tenants_choice_is_what_runs_use_that_say_nothing(shop: HttpWorld) -> None:
    await keep(shop, "mine", provider="openai", api_key="sk-mine", model="llama-at-home")
    chosen = await choose(shop, mode="self_managed", credential_ref="mine", context_cap_tokens=16_000)
    assert {key: chosen[key] for key in ("provider", "model", "context_cap_tokens", "credential_ref")} == {
        "provider": "openai",
        "model": "llama-at-home",
        "context_cap_tokens": 16_000,
        "credential_ref": "mine",
    }

    policy, lease, token = await handed(shop)
    assert model_of(policy) == ("openai", "llama-at-home", "sk-mine", 16_000)
    assert await charged(shop, lease, token) == 0


async def test_where_nothing_is_set_up_a_run_is_given_out_without_a_key(shop: HttpWorld) -> None:
    policy, _lease, _token = await handed(shop, "provider: ollama\nmodel: mine")
    assert model_of(policy) == ("ollama", "mine", None, None)


@pytest.mark.parametrize("missing", ["the agent's", "the tenant's", "the platform's"])
async def test_a_key_that_is_missing_ends_the_event(shop: HttpWorld, missing: str) -> None:
    await shop.keep_secret()
    config = ""
    if missing == "the agent's":
        config = "provider: anthropic"
    elif missing == "the tenant's":
        await keep(shop, "mine", provider="openai", api_key="sk-mine", model="other")
        await choose(shop, mode="self_managed", credential_ref="mine")
        await shop.call("DELETE", f"{shop.ws}/credentials/mine")
    else:
        await lend(shop, "openai")
    zombie = await shop.install(config=config)
    await shop.deliver(zombie["webhook_urls"]["github"])
    token = await shop.enrol()
    answer = await shop.post("/v1/runners/me/leases", {"wait_ms": 300}, token)
    assert answer.json()["lease"] is None

    (event,) = (await shop.get(f"{shop.ws}/zombies/{zombie['zombie_id']}/events")).json()["items"]
    assert (event["status"], event["failure_label"]) == ("agent_error", "secret_missing")
    assert event["error_code"] == "UZ-ZMB-003"


async def test_a_command_needs_no_key(shop: HttpWorld) -> None:
    await lend(shop, "openai")
    body = {
        "source_markdown": "---\nname: c\ndescription: d\nversion: 0.1.0\n---\n```sh\ntrue\n```\n",
        "trigger_markdown": "---\nname: c\ntriggers:\n  - {type: cron, schedule: '0 0 1 1 *'}\n"
        "runtime: command\n---\n",
    }
    made = await shop.post(f"{shop.ws}/zombies", body)
    assert made.status_code == 201, made.text

    await shop.post(f"{shop.ws}/zombies/{made.json()['zombie_id']}/messages", {"message": "go"})
    lease = await shop.lease(await shop.enrol())
    assert lease["policy"]["api_key"] is None


# --- refusals of a preview ----------------------------------------------------------------------------------


async def test_what_is_missing_has_a_code_of_its_own(shop: HttpWorld) -> None:
    async def resolve(provider: str | None = None, model: str | None = None) -> str:
        shop.pass_ms(CHOICE_KEEP_MS)
        found = await shop.actors_world.providers.resolve_provider(
            tenant_id=shop.installation.tenant_id,
            workspace_id=shop.installation.workspace_id,
            provider=provider,
            model=model,
        )
        return getattr(found, "code", "")

    assert await resolve() == "UZ-RELAY-001"
    assert await resolve(model="small") == "UZ-RELAY-001"
    assert await resolve(provider="anthropic") == "UZ-CRED-001"

    await choose(shop, mode="platform", model="other")
    assert await resolve() == "UZ-CRED-003"

    await lend(shop, "openai")
    assert await resolve() == "UZ-CRED-003"

    await keep(shop, "openai_api_key", api_key="sk")
    assert await resolve() == ""


# --- the routes ---------------------------------------------------------------------------------------------


async def test_a_workspaces_key_is_kept_replaced_and_forgotten_and_never_shown(shop: HttpWorld) -> None:
    path = f"{shop.ws}/credentials/llm"
    assert (await shop.get(path)).json()["has_key"] is False

    await own_key(shop, "anthropic", "sk-one")
    await own_key(shop, "openai", "sk-two")
    shown = await shop.get(path)
    assert {**shown.json(), "request_id": ""} == {"provider": "openai", "has_key": True, "request_id": ""}

    listed = (await shop.get(f"{shop.ws}/credentials")).json()
    assert listed["credentials"] == []
    assert (await shop.call("DELETE", path)).status_code == 204
    assert (await shop.call("DELETE", path)).status_code == 204
    assert (await shop.get(path)).json()["provider"] is None


@pytest.mark.parametrize(
    "body",
    [
        {"provider": "", "api_key": "k"},
        {"provider": "a" * 33, "api_key": "k"},
        {"provider": "no spaces", "api_key": "k"},
        {"provider": "llm/key", "api_key": "k"},
        {"provider": "p", "api_key": ""},
        {"provider": "p", "api_key": "k" * 513},
        {"provider": "p"},
    ],
)
async def test_what_is_no_key_is_refused(shop: HttpWorld, body: dict[str, str]) -> None:
    answer = await code(shop, "PUT", f"{shop.ws}/credentials/llm", json=body)
    assert answer == (400, "UZ-REQ-001")


async def test_a_choice_that_cannot_work_is_refused_by_what_it_lacks(shop: HttpWorld) -> None:
    await keep(shop, "half", provider="openai", api_key="sk")
    await keep(shop, "mine", provider="openai", api_key="sk", model="llama-at-home")

    async def refused(**choice: Any) -> tuple[int, str]:
        return await code(shop, "PUT", CHOICE, json=choice)

    assert await refused(mode="self_managed") == (400, "UZ-PROVIDER-001")
    assert await refused(mode="self_managed", credential_ref="none") == (400, "UZ-PROVIDER-002")
    assert await refused(mode="self_managed", credential_ref="half") == (400, "UZ-PROVIDER-003")
    assert await refused(mode="self_managed", credential_ref="mine") == (400, "UZ-PROVIDER-004")
    assert await refused(mode="platform", model="unheard-of") == (400, "UZ-PROVIDER-004")
    assert await refused(mode="platform", provider="openai", model="large") == (400, "UZ-PROVIDER-004")
    assert await refused(mode="platform", context_cap_tokens=4096) == (400, "UZ-PROVIDER-004")

    named = await refused(mode="platform", provider="anthropic", credential_ref="mine")
    assert named == (400, "UZ-REQ-001")

    shown = (await shop.get(CHOICE)).json()
    assert (shown["mode"], shown["model"]) == ("platform", None)


async def test_a_choice_is_made_shown_and_taken_back(shop: HttpWorld) -> None:
    chosen = await choose(shop, mode="platform", provider="anthropic")
    assert (chosen["model"], chosen["context_cap_tokens"]) == ("large", 200_000)

    shown = (await shop.get(CHOICE)).json()
    assert (shown["provider"], shown["credential_ref"]) == ("anthropic", None)

    for _ in range(2):
        deleted = await shop.call("DELETE", CHOICE)
        assert deleted.status_code == 200
        for answer in (deleted, await shop.get(CHOICE)):
            shown = answer.json()
            del shown["request_id"]
            nothing = dict.fromkeys(("provider", "model", "context_cap_tokens", "credential_ref"))
            assert shown == {"mode": "platform", **nothing}
    await choose(shop, mode="platform", provider="anthropic", model="large")
    nothing = await choose(shop, mode="platform")
    assert (nothing["mode"], nothing["provider"], nothing["model"]) == ("platform", None, None)
    assert (await shop.get(CHOICE)).json()["provider"] is None


async def test_an_admins_entry_is_his_tenants_and_a_platform_admins_serves_all(shop: HttpWorld) -> None:
    assert (await lend(shop, "openai"))["shared"] is False
    assert (await lend(shop, "anthropic", shop.admin_token()))["shared"] is True

    await keep(shop, "anthropic_api_key", api_key="sk-all")
    await settle_tenant_b(shop)
    there = shop.user_token(Role.ADMIN, tenant_id=TENANT_B)
    assert (await shop.get(KEYS, there)).json()["items"] == []

    found = await shop.actors_world.providers.resolve_provider(tenant_id=TENANT_B, workspace_id=WORKSPACE_B)
    assert (found.provider, found.api_key, found.own_key) == ("anthropic", "sk-all", False)  # type: ignore[union-attr]  # no refusal

    shown = (await shop.get(KEYS)).json()["items"]
    assert [(row["provider"], row["shared"]) for row in shown] == [("anthropic", True), ("openai", False)]

    one = await shop.get(f"{KEYS}/openai")
    assert one.json()["source_workspace_id"] == str(shop.installation.workspace_id)


async def test_an_entry_that_serves_others_is_a_platform_admins_to_change(shop: HttpWorld) -> None:
    await lend(shop, "openai", shop.admin_token())
    body = {"source_workspace_id": str(shop.installation.workspace_id)}
    for method, path, sent in (
        ("PUT", KEYS, {"provider": "openai", **body}),
        ("PUT", f"{KEYS}/openai", body),
        ("DELETE", f"{KEYS}/openai", None),
    ):
        assert await code(shop, method, path, json=sent) == (403, "UZ-AUTH-021")

    assert await code(shop, "DELETE", f"{KEYS}/openai", shop.admin_token()) == (204, "")
    assert await code(shop, "GET", f"{KEYS}/openai") == (404, "UZ-PROVIDER-005")
    assert await code(shop, "DELETE", f"{KEYS}/openai") == (204, "")


async def test_a_key_is_lent_from_ones_own_workspace_only(shop: HttpWorld) -> None:
    await settle_tenant_b(shop)
    for workspace_id in (UNKNOWN, str(WORKSPACE_B)):
        body = {"source_workspace_id": workspace_id}
        named = {"provider": "openai", **body}
        assert await code(shop, "PUT", KEYS, json=named) == (404, "UZ-WORKSPACE-001")
        assert await code(shop, "PUT", f"{KEYS}/openai", json=body) == (404, "UZ-WORKSPACE-001")
    other = {"provider": "anthropic", "source_workspace_id": str(shop.installation.workspace_id)}

    assert await code(shop, "PUT", f"{KEYS}/openai", json=other) == (400, "UZ-REQ-001")


async def test_it_is_all_the_same_in_the_database(postgres_storage: PostgresStorage) -> None:
    async with open_http_world_on(postgres_storage, catalogue=Catalogue("2026-11-20", MODELS)) as world:
        await keep(world, "mine", provider="openai", api_key="sk-mine", model="other")
        await choose(world, mode="self_managed", credential_ref="mine")
        await choose(world, mode="self_managed", credential_ref="mine", model="other")
        for token in ("", world.admin_token()):
            await lend(world, "anthropic", token)
        assert (await world.get(f"{KEYS}/anthropic")).json()["shared"] is True

        policy, lease, token = await handed(world)
        assert model_of(policy) == ("openai", "other", "sk-mine", 128_000)

        report = {
            "lease_id": lease["lease_id"],
            "event_id": lease["event"]["event_id"],
            "fencing_token": lease["fencing_token"],
            "outcome": "processed",
            "response_text": "done",
            "input_tokens": 10,
            "cached_input_tokens": 2,
            "output_tokens": 5,
        }
        assert (await world.post("/v1/runners/me/reports", report, token)).status_code == 200

        (charge,) = (await world.get("/v1/tenants/me/billing/charges")).json()["items"]
        assert (charge["posture"], charge["model"], charge["charge_type"]) == (
            "self_managed",
            "other",
            "stage",
        )
        assert (charge["token_count_input"], charge["token_count_output"]) == (12, 5)
        assert charge["id"] == lease["lease_id"]
        assert (await world.call("DELETE", f"{KEYS}/anthropic", world.admin_token())).status_code == 204
        assert (await world.call("DELETE", CHOICE)).status_code == 200


async def test_an_empty_model_and_a_cap_of_nothing_count_as_left_out(shop: HttpWorld) -> None:
    await keep(shop, "mine", provider="anthropic", api_key="sk", model="small")
    empties = {"model": "", "context_cap_tokens": 0}
    chosen = await choose(shop, mode="self_managed", credential_ref="mine", **empties)
    assert (chosen["model"], chosen["context_cap_tokens"]) == ("small", 100_000)

    nothing = await choose(shop, mode="platform", **empties)
    assert (nothing["mode"], nothing["model"]) == ("platform", None)

    for cap in (1, 1023, -1):
        body = {"mode": "self_managed", "credential_ref": "mine", "context_cap_tokens": cap}
        assert await code(shop, "PUT", CHOICE, json=body) == (400, "UZ-REQ-001")
