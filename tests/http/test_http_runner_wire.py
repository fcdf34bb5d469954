"""What a runner that was written from the documents alone may send, and what it is answered."""

from typing import Any
from uuid import UUID

import httpx2
import msgspec
import pytest
import trio

from sexton_engine import TreeNode
from sexton_http.bodies.lease_payload import LeaseEvent, LeaseHanded, LeasePolicy
from sexton_http.bodies.memories import CONTENT_BYTES
from sexton_http.routes.reports import CUT_MARK, TEXT_CHARS
from tests.worlds.http import HttpWorld
from tests.worlds.http_agents import steer

USAGE = {"input_tokens": 10, "cached_input_tokens": 0, "output_tokens": 5}
UNKNOWN = "019363b0-0000-7000-8000-00000000ffff"
BATCH = "/v1/runners/me/leases:renew"


def code(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json().get("error_code", "")


def report_of(lease: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "lease_id": lease["lease_id"],
        "event_id": lease["event"]["event_id"],
        "fencing_token": lease["fencing_token"],
        "outcome": "processed",
        "response_text": "done",
        **USAGE,
        **more,
    }


async def finished(world: HttpWorld, zombie: dict[str, Any]) -> dict[str, Any]:
    events = f"{world.ws}/zombies/{zombie['zombie_id']}/events"
    [event] = (await world.get(events)).json()["items"]
    found: dict[str, Any] = (await world.get(f"{events}/{event['event_id']}")).json()
    return found


# --- the description ----------------------------------------------------------------------------------------


async def test_leases_and_the_supervision_tree_are_as_they_are_described(world: HttpWorld) -> None:
    _zombie, _token, lease = await world.working()
    assert msgspec.convert(lease, LeaseHanded).event.event_type == "workflow_run.completed"

    fields = {field.encode_name for field in msgspec.structs.fields(LeaseHanded)}
    assert lease.keys() == fields

    for part, shape in (("event", LeaseEvent), ("policy", LeasePolicy)):
        # An event that brings no files says nothing of them.
        said = {field.encode_name for field in msgspec.structs.fields(shape)} - {"files"}
        assert lease[part].keys() == said
    tree = (await world.get("/v1/fleet/supervisor", world.admin_token())).json()["tree"]
    assert msgspec.convert(tree, TreeNode, strict=False).children

    schemas = (await world.get("/openapi.json", None)).json()["components"]["schemas"]
    assert schemas["LeasesAnswer"]["properties"]["leases"]["items"] == {
        "$ref": "#/components/schemas/LeaseHanded"
    }
    assert schemas["SupervisorState"]["properties"]["tree"]["$ref"].endswith("/TreeNode")
    assert "tool_call_started" in str(schemas["Frames"])


# --- polls and heartbeats -----------------------------------------------------------------------------------


async def test_a_poll_that_waits_for_nothing_is_told_when_to_come_again(world: HttpWorld) -> None:
    token = await world.enrol()
    for wait_ms, again in ((0, 1000), (20, 980)):
        answer = await world.post("/v1/runners/me/leases", {"wait_ms": wait_ms}, token)
        assert (answer.json()["lease"], answer.json()["retry_after_ms"]) == (None, again)


async def test_a_poll_says_how_long_it_waited_for_its_first_lease(world: HttpWorld) -> None:
    zombie = await world.install()
    token = await world.enrol()
    answers: list[dict[str, Any]] = []
    asked = trio.current_time()
    async with trio.open_nursery() as nursery:

        async def work() -> None:
            answer = await world.post("/v1/runners/me/leases", {"wait_ms": 20_000}, token)
            answers.append(answer.json())

        nursery.start_soon(work)
        await trio.sleep(0.3)
        sent = trio.current_time()
        await steer(world, zombie)

    [answer] = answers

    assert len(answer["leases"]) == 1
    # The grant came after the message; the poll came a little after it was asked.
    assert 0 < answer["waited_ms"] / 1000 <= trio.current_time() - asked
    assert answer["waited_ms"] / 1000 > (sent - asked) / 2


async def test_the_first_heartbeat_after_a_cancel_names_the_lease(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    event = f"{world.ws}/zombies/{zombie['zombie_id']}/events/{lease['event']['event_id']}"
    assert (await world.post(f"{event}/cancel")).status_code == 202

    beat = await world.post("/v1/runners/me/heartbeats", {"active_lease_ids": [lease["lease_id"]]}, token)
    assert beat.json()["cancelled_lease_ids"] == [lease["lease_id"]]


# --- fencing tokens -----------------------------------------------------------------------------------------


async def test_a_fencing_token_in_a_body_is_taken_and_checked(world: HttpWorld) -> None:
    _, token, lease = await world.working()
    at = f"/v1/runners/me/leases/{lease['lease_id']}"
    ask = {"action_id": "a1", "tool_name": "http", "action_name": "POST"}
    calls: list[tuple[str, dict[str, Any], str, int]] = [
        ("renew", USAGE, "UZ-RUN-011", 200),
        ("activity", {"frames": []}, "UZ-RUN-005", 202),
        ("gates", ask, "UZ-RUN-005", 200),
        ("park", {"gate_id": UNKNOWN, "checkpoint": {}}, "UZ-RUN-005", 404),
        ("release", {"reason": "tired"}, "UZ-RUN-005", 204),
    ]
    for name, body, stale, status in calls:
        refused = await world.post(f"{at}/{name}", {**body, "fencing_token": 7}, token)
        assert code(refused) == (409, stale), name
        taken = await world.post(f"{at}/{name}", {**body, "fencing_token": lease["fencing_token"]}, token)
        assert taken.status_code == status, taken.text


# --- many renewals ------------------------------------------------------------------------------------------


async def test_a_batch_of_nothing_renews_nothing(world: HttpWorld) -> None:
    answer = await world.post(BATCH, {"leases": []}, await world.enrol())
    assert (answer.status_code, answer.json()["results"]) == (200, [])


async def test_a_malformed_renewal_fails_by_itself(world: HttpWorld) -> None:
    _, token, lease = await world.working()
    good = {"lease_id": lease["lease_id"], "fencing_token": 1, **USAGE}
    spoilt: list[tuple[Any, Any, str]] = [
        ({**good, "lease_id": "nonsense"}, "nonsense", "UZ-UUIDV7-009"),
        ({**good, "lease_id": UUID(lease["lease_id"]).hex}, UUID(lease["lease_id"]).hex, "UZ-UUIDV7-009"),
        ({**good, "output_tokens": -1}, lease["lease_id"], "UZ-REQ-001"),
        ({**good, "extra": 1}, lease["lease_id"], "UZ-REQ-001"),
        ("no object", None, "UZ-REQ-001"),
        ({"lease_id": 7}, None, "UZ-REQ-001"),
    ]
    items = [item for item, *_ in spoilt]
    answer = await world.post(BATCH, {"leases": [items[0], good, *items[1:]]}, token)
    assert answer.status_code == 200, answer.text

    results = answer.json()["results"]
    renewed = results.pop(1)
    assert (renewed["ok"], renewed["slice_seq"]) == (True, 1)
    assert results == [
        {"lease_id": said, "ok": False, "error_code": error, "status": 400} for _, said, error in spoilt
    ]


@pytest.mark.parametrize("body", [{}, {"leases": {}}, {"leases": [], "x": 1}, {"leases": [{}] * 1025}, []])
async def test_a_batch_that_is_none_is_refused_whole(world: HttpWorld, body: Any) -> None:
    assert code(await world.post(BATCH, body, await world.enrol())) == (400, "UZ-REQ-001")


async def test_a_lease_that_comes_twice_in_a_batch_is_renewed_once(world: HttpWorld) -> None:
    _, token, lease = await world.working()
    one = {"lease_id": lease["lease_id"], "fencing_token": 1, **USAGE}
    other = {"lease_id": UNKNOWN, "fencing_token": 1, **USAGE}
    results = (await world.post(BATCH, {"leases": [one, other, one]}, token)).json()["results"]

    assert results[0] == results[2]
    assert (results[0]["slice_seq"], results[1]["error_code"]) == (1, "UZ-RUN-006")


# --- frames -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("frame", "pointer"),
    [
        ({"kind": "chunk"}, "/frames/1/text"),
        ({"kind": "chunk", "text": 7}, "/frames/1/text"),
        ({"kind": "tool_call_started"}, "/frames/1/name"),
        ({"kind": "tool_call_progress", "name": "sh", "elapsed_ms": -1}, "/frames/1/elapsed_ms"),
        ({"kind": "tool_call_completed", "name": "sh", "ms": True, "ok": True}, "/frames/1/ms"),
        ({"kind": "tool_call_completed", "name": "sh", "ms": 1, "ok": "yes"}, "/frames/1/ok"),
        ({"kind": "connection"}, "/frames/1/host"),
        ({"kind": "connection", "host": "a.org", "port": -1}, "/frames/1/port"),
    ],
)
async def test_a_frame_has_the_fields_of_its_kind(
    world: HttpWorld, frame: dict[str, Any], pointer: str
) -> None:
    _, token, lease = await world.working()
    frames = {"frames": [{"kind": "chunk", "text": "x"}, frame]}
    answer = await world.post(f"/v1/runners/me/leases/{lease['lease_id']}/activity", frames, token)

    assert code(answer) == (400, "UZ-REQ-001")
    assert answer.json()["pointer"] == pointer


async def test_connections_of_runs_are_shown_and_counted(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    one = {"kind": "connection", "host": "a.org", "port": 443, "why": "", "ms": 5}
    sizes = {"bytes_in": 70, "bytes_out": 7}
    one |= sizes
    told = [
        {**one, "verdict": "allowed", "path": "/x"},
        {**one, "verdict": "refused", "why": "not in network.allow", "count": 3},
        {**one, "verdict": "refused", "count": -9},
        {**one, "verdict": "refused", "count": 10**12},
        {**one, "verdict": "of its own"},
    ]
    at = f"/v1/runners/me/leases/{lease['lease_id']}/activity"
    assert (await world.post(at, {"frames": told}, token)).status_code == 202

    frames = await world.storage.frames.read(UUID(zombie["zombie_id"]), after=0, limit=100)
    shown = [frame.data for frame in frames if frame.kind == "connection"]
    counted = {
        verdict: world.registry.get_sample_value("sexton_run_connections_total", {"verdict": verdict})
        for verdict in ("allowed", "refused", "of its own")
    }
    came = world.registry.get_sample_value("sexton_run_connection_bytes_total", {"way": "in"})

    assert [data["verdict"] for data in shown] == ["allowed", *["refused"] * 3, "of its own"]
    assert counted == {"allowed": 1, "refused": 5, "of its own": None}
    assert came == 350


async def test_a_frame_cannot_say_whose_it_is(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    forged = {"kind": "chunk", "text": "x", "more": 1, "seq": 99, "event_id": UNKNOWN, "zombie_id": UNKNOWN}
    at = f"/v1/runners/me/leases/{lease['lease_id']}/activity"
    assert (await world.post(at, {"frames": [forged]}, token)).status_code == 202

    frames = await world.storage.frames.read(UUID(zombie["zombie_id"]), after=0, limit=100)
    [shown] = [frame for frame in frames if frame.kind == "chunk"]
    assert shown.data == {"text": "x", "more": 1}


# --- reports ------------------------------------------------------------------------------------------------


async def test_nothing_and_more_than_is_known_are_taken_in_a_report(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    nulls = {"memory": None, "proposals": None, "response_text": None}
    report = report_of(lease, **nulls, telemetry={"wall_ms": 12, "cache_hits": 3})
    done = await world.post("/v1/runners/me/reports", report, token)
    assert (done.status_code, done.json()["status"], done.json()["refused"]) == (200, "processed", [])

    event = await finished(world, zombie)
    assert (event["response_text"], event["wall_ms"]) == (None, 12)


async def test_a_report_without_telemetry_or_text_counts(world: HttpWorld) -> None:
    _, token, lease = await world.working()
    report = report_of(lease, telemetry=None)
    del report["response_text"]

    assert (await world.post("/v1/runners/me/reports", report, token)).status_code == 200


async def test_what_no_store_keeps_is_replaced_and_what_is_too_long_is_cut(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    text = "a\0\\u0000" + "x" * TEXT_CHARS
    report = report_of(lease, response_text=text)
    assert (await world.post("/v1/runners/me/reports", report, token)).status_code == 200

    shown = (await finished(world, zombie))["response_text"]
    assert shown.startswith("a\ufffd\\u0000x")
    assert (len(shown), shown.endswith("x" + CUT_MARK)) == (TEXT_CHARS, True)

    again = await world.post("/v1/runners/me/reports", report, token)
    assert (again.status_code, again.json()["duplicate"]) == (200, True)


async def test_parts_of_a_report_that_cannot_be_kept_are_named_and_the_rest_is_kept(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    report = report_of(
        lease,
        memory=[
            {"key": "k", "content": "kept"},
            {"key": "large", "content": "\u00e9" * (CONTENT_BYTES // 2 + 1)},
            {"key": "k" * 256, "content": "x"},
            {"key": "c", "content": "x", "category": "c" * 65},
        ],
        proposals=[{"title": "t", "rationale": "r"}],
    )
    done = await world.post("/v1/runners/me/reports", report, token)
    assert done.status_code == 200, done.text

    refused = done.json()["refused"]
    pointers = ["/memory/1/content", "/memory/2/key", "/memory/3/category", "/proposals/0"]
    assert [part["field"] for part in refused] == pointers
    assert all(part["reason"] for part in refused)

    again = (await world.post("/v1/runners/me/reports", report, token)).json()
    assert (again["duplicate"], again["refused"]) == (True, refused)

    kept = (await world.get(f"{world.ws}/zombies/{zombie['zombie_id']}/memories")).json()
    assert [item["key"] for item in kept["items"]] == ["k"]


@pytest.mark.parametrize(
    "fault",
    [
        {"memory": [{"key": "", "content": "x"}]},
        {"memory": [{"key": "k"}]},
        {"memory": [{"key": "k", "content": "x", "tags": []}]},
        {"memory": [{"key": "k", "content": "x", "delete": True}]},
        {"proposals": [{"title": "", "rationale": "r", "source_markdown": "x"}]},
        {"evidence": []},
        {"extra": 1},
        {"outcome": "well"},
    ],
)
async def test_other_faults_of_a_report_are_refused_whole(world: HttpWorld, fault: dict[str, Any]) -> None:
    _, token, lease = await world.working()
    assert code(await world.post("/v1/runners/me/reports", report_of(lease, **fault), token)) == (
        400,
        "UZ-REQ-001",
    )


# --- memory -------------------------------------------------------------------------------------------------


async def test_memory_is_written_by_the_lease_that_the_runner_holds(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    at = f"/v1/runners/me/memory/{zombie['zombie_id']}"
    entry = {"key": "k", "content": "x"}

    assert (await world.post(at, entry, token)).json()["key"] == "k"
    assert code(await world.post(at, entry, await world.enrol("h2"))) == (403, "UZ-MEM-001")
    assert (await world.post("/v1/runners/me/reports", report_of(lease), token)).status_code == 200
    assert code(await world.post(at, entry, token)) == (403, "UZ-MEM-001")


# --- money --------------------------------------------------------------------------------------------------


async def test_after_the_renewal_that_takes_the_last_of_the_balance_no_message_is_taken(
    world: HttpWorld,
) -> None:
    zombie, token, lease = await world.working()
    messages = f"{world.ws}/zombies/{zombie['zombie_id']}/messages"
    assert (await world.post(messages, {"message": "first"})).status_code == 202

    tenants, tenant_id = world.memory.tables.tenants, world.installation.tenant_id
    old = tenants[tenant_id]
    tenants[tenant_id] = type(old)(old.id, old.name, old.plan_tier, 1, None, old.created_at, old.updated_at)
    world.pass_ms(5)
    renewed = await world.post(f"/v1/runners/me/leases/{lease['lease_id']}/renew", USAGE, token)
    assert (renewed.status_code, renewed.json()["balance_nanos"]) == (200, 0)

    refused = await world.post(messages, {"message": "second"})
    assert code(refused) == (402, "UZ-BILLING-005")


# --- vault and provider -------------------------------------------------------------------------------------


async def test_the_name_of_the_model_key_is_not_a_credential_s(world: HttpWorld) -> None:
    key = f"{world.ws}/credentials/llm"
    await world.call("PUT", key, json={"provider": "p", "api_key": "k"})
    refused = await world.post(f"{world.ws}/credentials", {"name": "llm", "data": {"a": 1}})

    assert (code(refused), refused.json()["pointer"]) == ((400, "UZ-REQ-001"), "/name")
    assert (await world.get(key)).json()["has_key"] is True


# --- the fleet ----------------------------------------------------------------------------------------------


async def test_a_revoked_runner_is_not_taken_back(world: HttpWorld) -> None:
    token = await world.enrol()
    me = (await world.get("/v1/runners/me", token)).json()["id"]
    for state in ("revoked", "revoked"):
        answer = await world.call(
            "PATCH", f"/v1/fleet/runners/{me}", world.admin_token(), json={"admin_state": state}
        )
        assert answer.status_code == 200
    refused = await world.call(
        "PATCH", f"/v1/fleet/runners/{me}", world.admin_token(), json={"admin_state": "active"}
    )

    assert (code(refused), refused.json()["current_state"]) == ((409, "UZ-REQ-009"), "revoked")


async def test_the_queue_counts_events_and_says_which_no_runner_may_have(world: HttpWorld) -> None:
    await world.keep_secret()
    walled, gpu = await world.install("walled"), await world.install("gpu", tags="gpu")
    for zombie, count in ((walled, 3), (gpu, 2)):
        for _ in range(count):
            assert (await world.deliver(zombie["webhook_urls"]["github"])).status_code == 202

    async def queue() -> dict[str, Any]:
        found: dict[str, Any] = (await world.get("/v1/fleet/queue", world.admin_token())).json()
        return found

    # The labels alone would do for both, but neither agent allows a run without a sandbox.
    await world.enrol("bare", sandbox_tier="none", labels=["gpu"])
    seen = await queue()
    assert (seen["depth"], seen["ready_agents"], seen["leases_active"]) == (5, 2, 0)
    assert seen["oldest_age_ms"] >= 0
    assert {tuple(row["required_tags"]): row["events"] for row in seen["unsatisfiable"]} == {
        (): 3,
        ("gpu",): 2,
    }

    await world.lease(await world.enrol())
    seen = await queue()
    assert (seen["depth"], seen["ready_agents"], seen["leases_active"]) == (4, 1, 1)
    assert seen["unsatisfiable"] == [{"required_tags": ["gpu"], "events": 2, "ready_agents": 1}]
    assert {tuple(row["required_tags"]): (row["agents"], row["events"]) for row in seen["by_tags"]} == {
        (): (0, 2),
        ("gpu",): (1, 2),
    }
