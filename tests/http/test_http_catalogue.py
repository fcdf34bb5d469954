"""The public catalogue, and the list of charges."""

from collections.abc import AsyncIterator
from itertools import pairwise

import msgspec
import pytest

from sexton_actors.catalogue import Catalogue
from sexton_actors.plans import DEFAULT_PLANS, BillingTerms
from sexton_storage.errors import StorageUnavailable
from sexton_storage.records.key_uses import KeyUse
from sexton_storage.terms import KEY_STALE_MS
from tests.http.test_http_models_and_keys import MODELS
from tests.http.test_http_own_codes import code, report_of
from tests.worlds.http import HttpWorld, open_http_world


@pytest.fixture
async def shop() -> AsyncIterator[HttpWorld]:
    """A server whose operator offers three models."""
    async with open_http_world(catalogue=Catalogue("2026-11-20", MODELS)) as opened:
        yield opened


def address(world: HttpWorld) -> str:
    return f"/_um/{world.ctx.catalogue_key}/cap.json"


async def test_the_catalogue_has_models_rates_and_what_is_free(shop: HttpWorld) -> None:
    answer = await shop.get(address(shop), None)
    shown = answer.json()

    assert answer.status_code == 200
    assert shown["version"] == "2026-11-20"
    assert [row["id"] for row in shown["models"]] == ["large", "small", "other"]
    assert shown["models"][0] == {
        "id": "large",
        "provider": "anthropic",
        "context_cap_tokens": 200_000,
        "input_nanos_per_mtok": 3_000_000_000,
        "cached_input_nanos_per_mtok": 300_000_000,
        "output_nanos_per_mtok": 15_000_000_000,
        "cache_write_nanos_per_mtok": 3_000_000_000,
    }
    assert shown["rates"] == {"run_nanos_per_sec": 100_000, "event_nanos": 0}
    assert shown["billing"] == {
        "starter_credit_nanos": 5_000_000_000,
        "free_trial_end_ms": 0,
        "free_trial_stage_nanos": 0,
    }
    assert answer.headers["cache-control"] == "public, max-age=300"


async def test_a_query_narrows_the_models_and_nothing_else(shop: HttpWorld) -> None:
    whole, one, none = [
        (await shop.get(address(shop) + query, None)).json() for query in ("", "?model=other", "?model=x")
    ]
    assert [row["id"] for row in one["models"]] == ["other"]
    assert none["models"] == []

    for part in (one, none):
        assert (part["rates"], part["billing"]) == (whole["rates"], whole["billing"])


async def test_who_has_it_already_is_told_so(shop: HttpWorld) -> None:
    first = await shop.get(address(shop), None)
    tag = first.headers["etag"]
    for known in (tag, f'"x", {tag}', "*", tag.removeprefix("W/")):
        again = await shop.get(address(shop), None, headers={"if-none-match": known})
        assert (again.status_code, again.content) == (304, b""), known
        assert again.headers["etag"] == tag
    for known in ('"x"', tag.replace('"', ""), ""):
        again = await shop.get(address(shop), None, headers={"if-none-match": known})
        assert again.status_code == 200, known
    other = await shop.get(address(shop) + "?model=other", None)

    assert other.headers["etag"] != tag


async def test_under_a_wrong_key_or_without_models_there_is_none(shop: HttpWorld) -> None:
    for wrong in ("", "x", shop.ctx.catalogue_key[:-1], "%00", "é"):
        answer = await shop.get(f"/_um/{wrong}/cap.json", None)
        assert answer.status_code == 404, wrong
    assert await code(shop, "GET", "/_um/x/cap.json", None) == (404, "UZ-REQ-003")

    ends = 2_000_000_000_000
    terms = BillingTerms(DEFAULT_PLANS, free_trial_ends_ms=ends, free_trial_nanos_per_sec=7)
    async with open_http_world(terms=terms) as empty:
        answer = await empty.get(address(empty), None)

        assert (answer.status_code, answer.json()["error_code"]) == (503, "UZ-CATALOGUE-001")
        assert int(answer.headers["retry-after"]) > 0
    async with open_http_world(terms=terms, catalogue=Catalogue("2026-11-20", MODELS)) as trial:
        billing = (await trial.get(address(trial), None)).json()["billing"]
        offered = (await trial.get("/v1/models")).json()

        assert offered["items"] == (await trial.get(address(trial), None)).json()["models"]
        assert offered["rates"] == {"run_nanos_per_sec": 100_000, "event_nanos": 0}
        assert (billing["free_trial_end_ms"], billing["free_trial_stage_nanos"]) == (ends, 7)


async def test_charges_are_listed_newest_first_page_by_page(world: HttpWorld) -> None:
    await world.keep_secret()
    zombie = await world.install()
    token = await world.enrol()
    for number in range(5):
        await world.deliver(zombie["webhook_urls"]["github"])
        lease = await world.lease(token)
        world.pass_ms(1_000 * (number + 1))
        await world.post("/v1/runners/me/reports", report_of(lease, input_tokens=number), token)
    path, seen, cursor = "/v1/tenants/me/billing/charges", [], ""
    while True:
        page = (await world.get(f"{path}?limit=2{cursor}")).json()
        seen += page["items"]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert [charge["token_count_input"] for charge in seen] == [4, 3, 2, 1, 0]
    assert all(one["recorded_at"] >= other["recorded_at"] for one, other in pairwise(seen))

    gone = sum(charge["credit_deducted_nanos"] for charge in seen)
    balance = (await world.get("/v1/tenants/me/billing")).json()["balance_nanos"]
    assert gone == 5_000_000_000 - balance
    assert all(charge["credit_deducted_nanos"] == charge["wall_ms"] * 100 for charge in seen)

    for wrong in ("?cursor=x", "?limit=0", "?limit=201"):
        assert await code(world, "GET", path + wrong) == (400, "UZ-REQ-001")

    lines = (await world.get(f"{path}/export")).content.splitlines()
    assert [msgspec.json.decode(line) for line in lines] == seen

    sums = "/v1/tenants/me/billing/totals"
    by_agent = (await world.get(sums)).json()
    [total] = by_agent["items"]
    assert (total["key"], total["name"], total["runs"]) == (zombie["zombie_id"], "doctor", 5)
    assert (total["charged_nanos"], total["input_tokens"]) == (gone, 10)
    assert by_agent["until"] - by_agent["since"] == 31 * 86_400_000

    for by in ("model", "day"):
        [row] = (await world.get(f"{sums}?by={by}")).json()["items"]
        assert (row["charged_nanos"], row["name"]) == (gone, None)
    assert (await world.get(f"{sums}?until={seen[-1]['recorded_at']}")).json()["items"] == []

    for wrong in ("?by=week", "?limit=401", "?since=5&until=4", f"?since=0&until={2**53}"):
        assert await code(world, "GET", sums + wrong) == (400, "UZ-REQ-001")


async def test_a_credit_asked_for_twice_with_one_key_is_one_credit(
    world: HttpWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"/v1/admin/tenants/{world.installation.tenant_id}/credit"
    body, token = {"amount_nanos": 10**9, "reason": "gift"}, world.admin_token()

    async def lost(_use: KeyUse) -> bool:
        raise StorageUnavailable("the server dies here, after the commit")

    for number, key in enumerate(("k1", "k2"), 1):
        headers = {"idempotency-key": key}
        with monkeypatch.context() as patch:
            if key == "k2":
                patch.setattr(world.storage.key_uses, "settle", lost)
            first = await world.post(path, body, token, headers=headers)
        world.pass_ms(KEY_STALE_MS + 1)
        again = await world.post(path, body, token, headers=headers)
        for answer in (first, again):
            assert (answer.status_code, answer.json()["balance_nanos"]) == (200, (5 + number) * 10**9)
        assert ("idempotent-replayed" in again.headers) == (key == "k1")
        assert len(world.memory.tables.credits) == number

    assert (await world.post(path, body, token)).json()["balance_nanos"] == 8 * 10**9, "and one without a key"
