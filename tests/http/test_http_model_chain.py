"""An agent with several models, from its files to its bill, and an event that waits until one may answer."""

from sexton_actors.catalogue import Catalogue, Model
from sexton_storage.postgres import PostgresStorage
from tests.http.test_http_models_and_keys import DOLLAR, KEYS
from tests.worlds.http import open_http_world_on

MODELS = (
    Model("large", "anthropic", 200_000, 3 * DOLLAR, DOLLAR, 15 * DOLLAR, 4 * DOLLAR),
    Model("other", "openai", 128_000, 2 * DOLLAR, DOLLAR, 8 * DOLLAR),
)
CHAIN = "models: [large, {model: other, provider: openai}, {model: lost, provider: groq}]"


async def test_each_model_is_handed_out_and_billed_by_its_own_rates(
    postgres_storage: PostgresStorage,
) -> None:
    async with open_http_world_on(postgres_storage, catalogue=Catalogue("2026-11-20", MODELS)) as world:
        made = await world.post("/v1/workspaces", {"name": "keys"})
        source = made.json()["workspace_id"]
        for provider in ("anthropic", "openai"):
            key = {"name": f"{provider}_api_key", "data": {"api_key": f"sk-{provider}"}}
            assert (await world.post(f"/v1/workspaces/{source}/credentials", key)).status_code == 201
            body = {"provider": provider, "source_workspace_id": source}
            assert (await world.call("PUT", KEYS, json=body)).status_code == 200
        _zombie, token, lease = await world.working(CHAIN)
        policy = lease["policy"]
        assert (policy["provider"], policy["model"]) == ("anthropic", "large")

        other = {"provider": "openai", "model": "other", "api_key": "sk-openai"}
        assert policy["fallbacks"] == [other], "a model without a key is passed over"
        assert policy["context"]["context_cap_tokens"] == 128_000
        assert {"fallbacks", "retry_after_ms"} <= set(policy["understands"])

        path = f"/v1/runners/me/leases/{lease['lease_id']}"
        used = {"input_tokens": 10, "cached_input_tokens": 4, "cache_write_tokens": 6, "output_tokens": 8}
        part = {"input_tokens": 3, "cached_input_tokens": 1, "cache_write_tokens": 2, "output_tokens": 5}
        renewed = await world.post(f"{path}/renew", {**used, "fallbacks": [part]}, token)
        assert renewed.status_code == 200, renewed.text

        wrong = await world.post(
            f"{path}/renew", {**used, "fallbacks": [{**part, "input_tokens": 11}]}, token
        )
        assert (wrong.status_code, wrong.json()["error_code"]) == (400, "UZ-REQ-001")

        report = {
            "lease_id": lease["lease_id"],
            "event_id": lease["event"]["event_id"],
            "fencing_token": lease["fencing_token"],
            "outcome": "processed",
            "response_text": "done",
            **used,
            "output_tokens": 9,
            "fallbacks": [{**part, "output_tokens": 6}],
        }
        reported = await world.post("/v1/runners/me/reports", report, token)
        assert reported.status_code == 200, reported.text

        charges = (await world.get("/v1/tenants/me/billing/charges")).json()["items"]
        (charge,) = charges
        periods = await world.get(f"/v1/tenants/me/billing/charges/{charge['event_id']}/metering-periods")
        cost = sum(row["token_cost_nanos"] for row in periods.json()["items"])
        large, small = charge["models"]

    assert (large["model"], large["input_tokens"], large["output_tokens"]) == ("large", 7, 3)
    assert (small["model"], small["input_tokens"], small["output_tokens"]) == ("other", 3, 6)
    assert charge["token_count_input"] == 20
    # By hand: 7 x 3000 + 3 x 1000 + 4 x 4000 + 3 x 15000, and 3 x 2000 + 1 x 1000 + 2 x 2000 + 6 x 8000.
    assert (large["token_cost_nanos"], small["token_cost_nanos"]) == (85_000, 59_000)
    assert cost == 144_000, "the rows add up to what the models cost, to the nano"
    assert (large["posture"], small["posture"]) == ("platform", "platform")


async def test_an_event_is_given_back_until_a_time_and_goes_on_from_where_it_was(
    postgres_storage: PostgresStorage,
) -> None:
    async with open_http_world_on(postgres_storage) as world:
        _zombie, token, lease = await world.working()
        path = f"/v1/runners/me/leases/{lease['lease_id']}/release"
        used = {"input_tokens": 10, "cached_input_tokens": 0, "output_tokens": 8}
        for body in (
            {"retry_after_ms": 999},
            {"retry_after_ms": 43_200_001},
            {"checkpoint": {"n": 1}},
            {"usage": {**used, "input_tokens": -1}},
        ):
            refused = await world.post(path, {"reason": "busy", **body}, token)
            assert (refused.status_code, refused.json()["error_code"]) == (400, "UZ-REQ-001")
        back = {"reason": "busy", "retry_after_ms": 1_500, "checkpoint": {"n": 1}, "usage": used}
        assert (await world.post(path, back, token)).status_code == 204

        event_path = f"{world.ws}/events/{lease['event']['event_id']}"
        event = (await world.get(event_path)).json()
        assert (event["status"], event["attempts"], event["tokens"]) == ("received", 0, 18)

        polled = await world.post("/v1/runners/me/leases", {}, token)
        assert polled.json()["lease"] is None

        again = await world.lease(token, wait_ms=8_000)
        assert (again["event"]["event_id"], again["checkpoint"]) == (lease["event"]["event_id"], {"n": 1})
        assert (await world.get(event_path)).json()["retry_at"] is None
    assert event["retry_at"] - event["updated_at"] == 1_500
