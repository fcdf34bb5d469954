"""Bad input over the wire: each gets its code, on both mounts, and leaves nothing behind."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from tests.worlds.http import HttpWorld, open_http_world

UNKNOWN = "019363b0-0000-7000-8000-00000000ffff"
USAGE = {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0}


@pytest.fixture(params=[True, False], ids=["fast path", "through Quart"])
async def either(request: pytest.FixtureRequest) -> AsyncIterator[HttpWorld]:
    """The same server, with the hot routes on ASGI, or with everything behind Quart."""
    async with open_http_world(fast=request.param) as opened:
        yield opened


async def code(
    world: HttpWorld, method: str, path: str, token: str | None = "", **rest: Any
) -> tuple[int, str]:
    answer = await world.call(method, path, token, **rest)
    if answer.is_success:
        return answer.status_code, ""
    problem = answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    assert problem["status"] == answer.status_code
    assert problem["request_id"] == answer.headers["x-request-id"]
    assert problem["error"]["code"] == problem["error_code"]
    assert problem["docs_uri"] == f"{world.base_url}/docs/errors#{problem['error_code']}"
    return answer.status_code, problem["error_code"]


async def test_what_is_not_there_is_told_apart_from_what_is_called_wrongly(either: HttpWorld) -> None:
    assert await code(either, "GET", "/v1/nothing") == (404, "UZ-REQ-003")
    assert await code(either, "GET", "//v1/api-keys") == (404, "UZ-REQ-003")
    assert await code(either, "GET", "/v1/api-keys/") == (404, "UZ-REQ-003")

    refused = await either.call("DELETE", "/v1/api-keys")
    assert (refused.status_code, refused.json()["error_code"]) == (405, "UZ-REQ-004")
    assert {"GET", "POST"} <= set(refused.headers["allow"].split(", "))
    assert await code(either, "GET", "/v1/runners/me/leases") == (405, "UZ-REQ-004")

    gate = f"{either.ws}/approvals/{UNKNOWN}:approve"
    assert await code(either, "GET", gate) == (405, "UZ-REQ-004")
    assert await code(either, "OPTIONS", "/v1/api-keys") == (405, "UZ-REQ-004")

    spelled_out = await either.call("PATCH", "/v1/auth/sessions/all", json={})
    assert (spelled_out.status_code, spelled_out.headers["allow"]) == (405, "DELETE")


@pytest.mark.parametrize(
    "path",
    [
        "/v1/runs",
        "/v1/runs/",
        f"/v1/runs/{UNKNOWN}",
        f"/v1/runs/{UNKNOWN}/",
        "/v1/runs/x:retry",
        "/v1/specs",
        "/v1/specs/",
        "/v1/specs/a/b",
    ],
)
async def test_the_removed_pipeline_is_gone_for_every_method(world: HttpWorld, path: str) -> None:
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
        assert await code(world, method, path, None) == (410, "UZ-RUNS-410")


async def test_ids_are_checked_before_anything_is_asked_of_an_actor(either: HttpWorld) -> None:
    token = await either.enrol()
    assert await code(either, "GET", "/v1/workspaces/x/zombies") == (400, "UZ-UUIDV7-009")
    assert await code(either, "GET", f"{either.ws}/zombies/x") == (400, "UZ-UUIDV7-009")
    assert await code(either, "POST", "/v1/webhooks/x/github", None, content=b"{}") == (400, "UZ-UUIDV7-009")

    renew = "/v1/runners/me/leases/x/renew"
    assert await code(either, "POST", renew, token, json=USAGE) == (400, "UZ-UUIDV7-009")

    beat = {"active_lease_ids": ["x"]}
    assert await code(either, "POST", "/v1/runners/me/heartbeats", token, json=beat) == (400, "UZ-UUIDV7-009")

    upper = f"/v1/workspaces/{str(either.installation.workspace_id).upper()}"
    answer = await either.get(upper)
    assert answer.json()["workspace_id"] == str(either.installation.workspace_id)


@pytest.mark.parametrize(
    ("content", "content_type", "status", "error"),
    [
        (b"not json", "application/json", 400, "UZ-REQ-001"),
        (b"[]", "application/json", 400, "UZ-REQ-001"),
        (b'{"max":"x"}', "application/json", 400, "UZ-REQ-001"),
        (b'{"max":0}', "application/json", 400, "UZ-REQ-001"),
        (b'{"max":65}', "application/json", 400, "UZ-REQ-001"),
        (b'{"wait_ms":30001}', "application/json", 400, "UZ-REQ-001"),
        (b'{"max":1,"max":1}', "application/json", 400, "UZ-REQ-001"),
        (b'{"other":1}', "application/json", 400, "UZ-REQ-001"),
        (b'{"x":' + b"[" * 70 + b"]" * 70 + b"}", "application/json", 400, "UZ-REQ-001"),
        (b"{}", "text/plain", 415, "UZ-REQ-005"),
        (b"{}", "", 415, "UZ-REQ-005"),
        (b" " * (2 * 1024 * 1024 + 1), "application/json", 413, "UZ-REQ-002"),
        (b'{"max":1.0}', "application/json; charset=utf-8", 200, ""),
        (b"", "", 200, ""),
    ],
)
async def test_a_body_is_checked_the_same_on_both_mounts(
    either: HttpWorld, content: bytes, content_type: str, status: int, error: str
) -> None:
    token = await either.enrol()
    headers = {"content-type": content_type} if content_type else {}
    path = "/v1/runners/me/leases"

    assert await code(either, "POST", path, token, content=content, headers=headers) == (status, error)


async def test_a_lease_answers_to_its_own_runner_only(either: HttpWorld) -> None:
    _zombie, _mine, lease = await either.working()
    other = await either.enrol("h2")
    at = f"/v1/runners/me/leases/{lease['lease_id']}"
    assert await code(either, "POST", f"{at}/renew", other, json=USAGE) == (404, "UZ-RUN-006")
    assert await code(either, "POST", f"{at}/activity", other, json={"frames": []}) == (404, "UZ-RUN-006")
    assert await code(either, "POST", f"{at}/release", other, json={}) == (404, "UZ-RUN-006")

    ask = {"action_id": "a", "tool_name": "t", "action_name": "n"}
    assert await code(either, "POST", f"{at}/gates", other, json=ask) == (404, "UZ-RUN-006")
    assert await code(either, "GET", f"{at}/gates/{UNKNOWN}", other) == (404, "UZ-RUN-006")

    park = {"gate_id": UNKNOWN, "checkpoint": {}}
    assert await code(either, "POST", f"{at}/park", other, json=park) == (404, "UZ-RUN-006")

    gone = f"/v1/runners/me/leases/{UNKNOWN}"
    assert await code(either, "POST", f"{gone}/renew", other, json=USAGE) == (404, "UZ-RUN-006")

    one = {"lease_id": lease["lease_id"], "fencing_token": 1, **USAGE}
    batch = await either.post("/v1/runners/me/leases:renew", {"leases": [one, one]}, other)
    assert [row["error_code"] for row in batch.json()["results"]] == ["UZ-RUN-006"] * 2

    periods = f"/v1/tenants/me/billing/charges/{lease['event']['event_id']}/metering-periods"
    assert (await either.get(periods)).json()["items"] == []


async def test_a_batch_of_renewals_has_a_result_for_each(either: HttpWorld) -> None:
    _zombie, token, lease = await either.working()
    good = {"lease_id": lease["lease_id"], "fencing_token": lease["fencing_token"], **USAGE}
    stale = {**good, "fencing_token": 99}
    answer = await either.post("/v1/runners/me/leases:renew", {"leases": [good, stale]}, token)
    first, second = answer.json()["results"]
    assert (first["ok"], first["slice_seq"], first["state"]) == (True, 1, "active")
    assert (second["ok"], second["error_code"], second["status"]) == (False, "UZ-RUN-011", 409)

    empty = await either.post("/v1/runners/me/leases:renew", {"leases": []}, token)
    assert (empty.status_code, empty.json()["results"]) == (200, [])

    many = await either.post("/v1/runners/me/leases:renew", {"leases": [good] * 1025}, token)
    assert many.json()["error_code"] == "UZ-REQ-001"


async def test_a_webhook_is_accepted_once_and_refused_for_its_faults(either: HttpWorld) -> None:
    await either.keep_secret()
    zombie = await either.install()
    url = zombie["webhook_urls"]["github"]
    first = await either.deliver(url, **{"x-github-delivery": "d1"})
    assert (first.status_code, first.json()["accepted"], first.json()["status"]) == (202, True, "accepted")

    again = await either.deliver(url, **{"x-github-delivery": "d1"})
    assert (again.status_code, again.json()["status"]) == (200, "duplicate")
    assert again.json()["event_id"] == first.json()["event_id"]
    assert UUID(again.json()["request_id"]).version == 7

    unsigned = await either.http.post(url, content=b"{}", headers={"x-github-event": "push"})
    assert (unsigned.status_code, unsigned.json()["error_code"]) == (401, "UZ-WH-010")

    wrong = await either.deliver(url, **{"x-hub-signature-256": "sha256=" + "0" * 64})
    assert (wrong.status_code, wrong.json()["error_code"]) == (401, "UZ-WH-010")

    unknown = await either.deliver(f"/v1/webhooks/{UNKNOWN}/github")
    assert (unknown.status_code, unknown.json()["error_code"]) == (404, "UZ-WH-001")

    large = await either.http.post(url, content=b" " * (1024 * 1024 + 1))
    assert (large.status_code, large.json()["error_code"]) == (413, "UZ-WH-030")

    stopped = await either.call(
        "PATCH", f"{either.ws}/zombies/{zombie['zombie_id']}", json={"status": "stopped"}
    )
    assert stopped.json()["status"] == "stopped"

    asleep = await either.deliver(url)
    assert (asleep.status_code, asleep.json()["error_code"]) == (403, "UZ-WH-003")

    killed = await either.call(
        "PATCH", f"{either.ws}/zombies/{zombie['zombie_id']}", json={"status": "killed"}
    )
    assert killed.json()["status"] == "killed"

    dead = await either.deliver(url)
    assert (dead.status_code, dead.json()["error_code"]) == (410, "UZ-WH-004")

    events = (await either.get(f"{either.ws}/events")).json()["items"]
    assert len(events) == 1


async def test_an_outage_of_the_database_is_told_and_waited_out(either: HttpWorld) -> None:
    token = await either.enrol()
    await either.get("/v1/runners/me", token)
    either.memory.faults.away = True
    answer = await either.get(f"{either.ws}/events")
    assert (answer.status_code, answer.json()["error_code"]) == (503, "UZ-INTERNAL-001")
    assert int(answer.headers["retry-after"]) >= 1

    ready = await either.get("/readyz", None)
    assert (ready.status_code, ready.json()["ready"], ready.json()["database"]) == (503, False, False)
    assert (await either.get("/healthz", None)).json()["status"] == "ok"

    either.memory.faults.away = False
    assert (await either.get(f"{either.ws}/events")).status_code == 200
    assert (await either.get("/readyz", None)).json()["ready"] is True


async def test_a_request_id_and_a_trace_go_in_and_come_out(either: HttpWorld) -> None:
    mine = "019363B0-0000-7000-8000-0000000000AA"
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    headers = {"x-request-id": mine, "traceparent": trace}
    answer = await either.get("/healthz", None, headers=headers)
    assert answer.json()["request_id"] == answer.headers["x-request-id"] == mine.lower()
    assert answer.headers["traceparent"] == trace

    other = await either.get("/healthz", None, headers={"x-request-id": "not a uuid", "traceparent": "00-x"})
    assert UUID(other.headers["x-request-id"]).version == 7
    assert "traceparent" not in other.headers

    missing = await either.get("/nowhere", None, headers=headers)
    assert missing.json()["request_id"] == mine.lower()


async def test_credentials_are_bounded_and_never_shown(world: HttpWorld) -> None:
    path = f"{world.ws}/credentials"
    refused: list[Any] = [{}, [], "x", None, 7]
    for data in refused:
        assert await code(world, "POST", path, json={"name": "a", "data": data}) == (400, "UZ-VAULT-001")
    large = {"name": "a", "data": {"a": "x" * 4096}}
    assert await code(world, "POST", path, json=large) == (400, "UZ-VAULT-002")
    assert await code(world, "POST", path, json={"name": "a b", "data": {"a": 1}}) == (400, "UZ-REQ-001")
    assert await code(world, "POST", path, json={"name": "a", "data": {"a": "hidden"}}) == (201, "")

    listed = await world.get(path)
    assert [item["name"] for item in listed.json()["items"]] == ["a"]
    assert listed.json()["credentials"] == listed.json()["items"]
    assert "hidden" not in listed.text
    assert await code(world, "DELETE", f"{path}/a") == (204, "")
    assert (await world.get(path)).json()["items"] == []


async def test_credentials_come_page_by_page_where_that_is_asked_for(world: HttpWorld) -> None:
    path, names = f"{world.ws}/credentials", ["B", "a", "b", "c-1", "c_1"]
    for name in reversed(names):
        assert await code(world, "POST", path, json={"name": name, "data": {"k": "v"}}) == (201, "")
    pages: list[list[str]] = []
    query = "?limit=2"
    while query:
        page = (await world.get(path + query)).json()
        pages.append([item["name"] for item in page["credentials"]])
        query = f"?limit=2&cursor={page['next_cursor']}" if page["next_cursor"] else ""
    whole = (await world.get(path)).json()

    assert pages == [names[:2], names[2:4], names[4:]]
    assert [item["name"] for item in whole["items"]] == names
    assert whole["next_cursor"] is None


async def test_a_cursor_of_credentials_is_good_for_its_workspace_only(world: HttpWorld) -> None:
    path = f"{world.ws}/credentials"
    for name in ("a", "b"):
        assert await code(world, "POST", path, json={"name": name, "data": {"k": "v"}}) == (201, "")
    other = (await world.post("/v1/workspaces", {"name": "elsewhere"})).json()["workspace_id"]
    cursor = (await world.get(f"{path}?limit=1")).json()["next_cursor"]
    strange = f"/v1/workspaces/{other}/credentials?cursor={cursor}"
    wrong = (strange, *(f"{path}?{q}" for q in ("limit=0", "limit=201", "cursor=WyJcdTAwMDAiLCJ4Il0")))
    answers = {await code(world, "GET", one) for one in wrong}

    assert answers == {(400, "UZ-REQ-001")}


async def test_an_agent_that_does_not_compile_is_told_where(world: HttpWorld) -> None:
    path = f"{world.ws}/zombies"
    bad = {"source_markdown": "no front matter", "trigger_markdown": "---\nname: x\n---\n"}
    answer = await world.post(path, bad)
    assert (answer.status_code, answer.json()["error_code"]) == (400, "UZ-ZMB-008")
    assert answer.json()["detail"].startswith("ERR_ZOMBIE_INVALID_CONFIG")
    assert await code(world, "POST", path, json={"source_markdown": "", "trigger_markdown": "x"}) == (
        400,
        "UZ-REQ-001",
    )

    wide = {"source_markdown": "é" * 40_000, "trigger_markdown": "x"}
    assert await code(world, "POST", path, json=wide) == (400, "UZ-REQ-001")

    await world.install()
    listed = (await world.get(path)).json()
    assert (listed["total"], [item["name"] for item in listed["items"]]) == (1, ["doctor"])

    again = await world.post(path, {})
    assert again.status_code == 400


async def test_a_listing_goes_on_where_it_stopped(world: HttpWorld) -> None:
    await world.keep_secret()
    zombie = await world.install()
    for _ in range(5):
        await world.deliver(zombie["webhook_urls"]["github"])
    path = f"{world.ws}/zombies/{zombie['zombie_id']}/events"
    seen: list[str] = []
    query: dict[str, Any] = {"limit": 2, "since": "1h", "actor": "webhook:*"}
    while True:
        page = (await world.get(path, params=query)).json()
        seen += [item["event_id"] for item in page["items"]]
        if page["next_cursor"] is None:
            break
        query = {"limit": 2, "cursor": page["next_cursor"], "actor": "webhook:*"}
    assert len(seen) == len(set(seen)) == 5
    assert seen == sorted(seen, reverse=True)

    both = {"cursor": query["cursor"], "since": "1h"}
    assert await code(world, "GET", path, params=both) == (400, "UZ-REQ-001")

    other = {"cursor": query["cursor"], "actor": "cron:*"}
    assert await code(world, "GET", path, params=other) == (400, "UZ-REQ-001")

    for bad in ({"limit": 0}, {"limit": 201}, {"cursor": "x"}, {"since": "soon"}):
        assert await code(world, "GET", path, params=bad) == (400, "UZ-REQ-001")
    none = (await world.get(path, params={"actor": "cron:*"})).json()
    assert none["items"] == []


async def test_a_person_steers_an_agent_and_stops_it(world: HttpWorld) -> None:
    zombie = await world.install()
    path = f"{world.ws}/zombies/{zombie['zombie_id']}"
    steered = await world.post(f"{path}/messages", {"message": "look again"})
    assert (steered.status_code, steered.json()["status"]) == (202, "accepted")

    [event] = (await world.get(f"{path}/events")).json()["items"]
    assert event["actor"] == "steer:admin"
    assert await code(world, "POST", f"{path}/messages", json={"message": "é" * 5000}) == (400, "UZ-REQ-001")
    assert await code(world, "PATCH", path, json={"status": "paused"}) == (400, "UZ-REQ-001")
    assert await code(world, "PATCH", path, json={"status": "stopped"}) == (200, "")

    stopped = await world.call("PATCH", path, json={"status": "stopped"})
    assert (stopped.status_code, stopped.json()["current_state"]) == (409, "stopped")

    refused = await world.post(f"{path}/messages", {"message": "hello"})
    assert (refused.status_code, refused.json()["error_code"]) == (409, "UZ-ZMB-012")

    shown = (await world.get(path)).json()
    assert (shown["status"], shown["spend"]) == ("stopped", {"day_nanos": 0, "month_nanos": 0})
    assert shown["source_markdown"].startswith("---")


async def test_a_platform_admin_credits_a_tenant(world: HttpWorld) -> None:
    path = f"/v1/admin/tenants/{world.installation.tenant_id}/credit"
    body = {"amount_nanos": 5, "reason": "thanks"}
    credited = await world.post(path, body, world.admin_token())
    assert credited.json()["balance_nanos"] == 5_000_000_005
    assert await code(world, "POST", path, json=body) == (403, "UZ-AUTH-021")

    admin = world.admin_token()
    assert await code(world, "POST", path, admin, json={**body, "amount_nanos": 0}) == (400, "UZ-REQ-001")

    unknown = f"/v1/admin/tenants/{UNKNOWN}/credit"
    assert await code(world, "POST", unknown, admin, json=body) == (404, "UZ-TENANT-001")


async def test_the_fleet_shows_what_waits_and_what_lives(world: HttpWorld) -> None:
    await world.keep_secret()
    zombie = await world.install(tags="gpu")
    await world.deliver(zombie["webhook_urls"]["github"])
    token = await world.enrol()
    assert (await world.post("/v1/runners/me/leases", {}, token)).json()["leases"] == []

    queue = (await world.get("/v1/fleet/queue", world.admin_token())).json()
    assert (queue["depth"], queue["leases_active"]) == (1, 0)
    assert queue["unsatisfiable"] == [{"required_tags": ["gpu"], "events": 1, "ready_agents": 1}]

    supervisor = (await world.get("/v1/fleet/supervisor", world.admin_token())).json()
    assert supervisor["tree"]["name"] == "sexton"

    metrics = (await world.get("/metrics", None)).text
    assert 'sexton_http_requests_total{method="GET",route="/v1/fleet/queue",status="2xx"} 1.0' in metrics


async def test_metrics_are_of_the_routes_that_were_used_and_not_of_when_they_began(world: HttpWorld) -> None:
    await world.get("/v1/fleet/queue", world.admin_token())
    lines = (await world.get("/metrics", None)).text.splitlines()
    assert not [line for line in lines if "_created" in line]

    requests = [line for line in lines if line.startswith("sexton_http_requests_total{")]
    used = [line for line in requests if 'route="/v1/fleet/queue"' in line]
    assert [line.rpartition(" ")[2] for line in used] == ["0.0", "1.0", "0.0", "0.0", "0.0"]
    assert not [line for line in requests if 'route="/v1/fleet/runners"' in line]
