"""The story of one event over HTTP, from an installed agent to evidence and a bill."""

from typing import Any

import trio

from tests.worlds.http import HttpWorld


async def tell(world: HttpWorld) -> None:
    """Live through it, and check each step as a client would."""
    zombie, token, lease = await world.working()
    zombie_id = zombie["zombie_id"]
    assert zombie["status"] == "active"
    assert zombie["approval_token"].startswith("zap_")
    assert lease["event"]["zombie_id"] == zombie_id
    assert (lease["fencing_token"], lease["attempt"], lease["runtime"]) == (1, 1, "agent")
    at = f"/v1/runners/me/leases/{lease['lease_id']}"

    usage = {"input_tokens": 10, "cached_input_tokens": 0, "output_tokens": 5}
    renewed = await world.post(f"{at}/renew", usage, token)
    assert (renewed.status_code, renewed.json()["slice_seq"], renewed.json()["state"]) == (200, 1, "active")

    frames = {"frames": [{"kind": "chunk", "text": "looking"}]}
    shown = await world.post(f"{at}/activity", frames, token)
    assert (shown.status_code, shown.json()["accepted"]) == (202, 1)

    ask = {"action_id": "a1", "tool_name": "http", "action_name": "POST", "proposed_action": "Deploy again."}
    gate = (await world.post(f"{at}/gates", ask, token)).json()
    assert gate["status"] == "pending"
    listed = (await world.get(f"{world.ws}/approvals", params={"status": "pending"})).json()
    assert [item["gate_id"] for item in listed["items"]] == [gate["gate_id"]]
    resolved: list[Any] = []

    async def wait_for_it() -> None:
        resolved.append(await world.get(f"{at}/gates/{gate['gate_id']}", token, params={"wait_ms": 5000}))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait_for_it)
        approved = await world.post(f"{world.ws}/approvals/{gate['gate_id']}:approve", {"reason": "fine"})
    assert (approved.status_code, approved.json()["outcome"]) == (200, "approved")
    assert resolved[0].json()["status"] == "approved"
    assert resolved[0].json()["resolved_by"].startswith("api:")
    again = await world.post(f"{world.ws}/approvals/{gate['gate_id']}:deny")
    assert (again.status_code, again.json()["error_code"], again.json()["outcome"]) == (
        404,
        "UZ-APPROVAL-002",
        "approved",
    )

    report = {
        "lease_id": lease["lease_id"],
        "event_id": lease["event"]["event_id"],
        "fencing_token": lease["fencing_token"],
        "outcome": "processed",
        "response_text": "It was the disk.",
        "evidence": {"found": "disk"},
        "input_tokens": 10,
        "cached_input_tokens": 0,
        "output_tokens": 5,
        "telemetry": {"wall_ms": 12, "time_to_first_token_ms": 3},
    }
    done = await world.post("/v1/runners/me/reports", report, token)
    assert (done.status_code, done.json()["duplicate"], done.json()["status"]) == (200, False, "processed")
    twice = await world.post("/v1/runners/me/reports", report, token)
    assert (twice.status_code, twice.json()["duplicate"]) == (200, True)

    history = (await world.get(f"{world.ws}/zombies/{zombie_id}/events")).json()
    [event] = history["items"]
    assert (event["status"], event["evidence"], event["tokens"]) == ("processed", {"found": "disk"}, 15)
    assert event["actor"] == "webhook:github"
    periods = await world.get(f"/v1/tenants/me/billing/charges/{event['event_id']}/metering-periods")
    charged = sum(row["charged_nanos"] for row in periods.json()["items"])
    balance = (await world.get("/v1/tenants/me/billing")).json()
    assert charged == event["charged_nanos"] == 5_000_000_000 - balance["balance_nanos"]
