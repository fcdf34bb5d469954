"""A run that was well but could not finish: another event goes on from its checkpoint."""

from typing import Any

import trio

from tests.patience import PATIENCE_S
from tests.worlds.event_stream import listening
from tests.worlds.http import HttpWorld

NOTE = {"agent": {"version": 1, "stage": 2, "note": "Half is done."}}


def report_of(lease: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "lease_id": lease["lease_id"],
        "event_id": lease["event"]["event_id"],
        "fencing_token": lease["fencing_token"],
        "outcome": "processed",
        "response_text": "Half is done.",
        "input_tokens": 10,
        "cached_input_tokens": 0,
        "output_tokens": 5,
        "telemetry": {"wall_ms": 12, "time_to_first_token_ms": 3},
        **changes,
    }


async def test_another_event_resumes_a_processed_one_that_left_a_checkpoint(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    report = report_of(lease, checkpoint=NOTE)
    stream_path = f"{world.ws}/zombies/{zombie['zombie_id']}/events/stream"
    async with listening(world.base_url, stream_path, world.api_key, last_event_id="0") as stream:
        done = await world.post("/v1/runners/me/reports", report, token)
        assert (done.status_code, done.json()["status"]) == (200, "processed")

        again = await world.post("/v1/runners/me/reports", report, token)
        assert again.json()["duplicate"] is True

        following = await world.lease(token)
        with trio.fail_after(PATIENCE_S):
            while (frame := await stream.frame()).get("resumes_event_id") is None:
                pass
    event, first = following["event"], lease["event"]
    assert (frame["kind"], frame["event_id"]) == ("event_received", event["event_id"])
    assert event["event_id"] != first["event_id"]
    assert (event["actor"], event["event_type"]) == (first["actor"], first["event_type"])
    assert event["request_json"] == first["request_json"]
    assert following["checkpoint"] == NOTE
    assert (following["attempt"], following["fencing_token"] > lease["fencing_token"]) == (1, True)

    ended = await world.post("/v1/runners/me/reports", report_of(following), token)
    assert ended.status_code == 200

    page = (await world.get(f"{world.ws}/zombies/{zombie['zombie_id']}/events")).json()
    assert [(one["status"], one["resumes_event_id"]) for one in page["items"]] == [
        ("processed", first["event_id"]),
        ("processed", None),
    ]


async def test_a_failed_or_cancelled_run_is_not_gone_on_with(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    failed = report_of(lease, outcome="agent_error", failure_reason="agent_run", checkpoint=NOTE)
    assert (await world.post("/v1/runners/me/reports", failed, token)).status_code == 200

    await world.deliver(zombie["webhook_urls"]["github"])
    second = await world.lease(token)
    path = f"{world.ws}/zombies/{zombie['zombie_id']}/events/{second['event']['event_id']}/cancel"
    assert (await world.post(path)).status_code == 202

    done = await world.post("/v1/runners/me/reports", report_of(second, checkpoint=NOTE), token)
    assert done.json()["status"] == "cancelled"

    page = (await world.get(f"{world.ws}/zombies/{zombie['zombie_id']}/events")).json()
    assert [one["status"] for one in page["items"]] == ["cancelled", "agent_error"]


async def test_a_repeated_report_of_an_outdated_lease_makes_no_second_event(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    report = report_of(lease, checkpoint=NOTE)
    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(world.post, "/v1/runners/me/reports", report, token)
    other = report_of(lease, checkpoint={"agent": {"note": "other"}})
    refused = await world.post("/v1/runners/me/reports", other, token)
    assert (refused.status_code, refused.json()["error_code"]) == (409, "UZ-RUN-005")

    page = (await world.get(f"{world.ws}/zombies/{zombie['zombie_id']}/events")).json()
    assert len(page["items"]) == 2
