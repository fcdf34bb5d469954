"""A workspace says how long it keeps things, sees what would go, and what was charged is asked about."""

from typing import Any

from sexton_actors.periodic.retention_rounds import DropOld
from sexton_storage.records.tenants import PlanTier
from sexton_storage.records.users import Role
from tests.http.test_http_continuation import report_of
from tests.http.test_http_plans import free
from tests.worlds.http import HttpWorld, open_http_world

DAY_MS = 24 * 3600 * 1000


def by_class(answer: Any, field: str) -> dict[str, Any]:
    return {item["what"]: item[field] for item in answer.json()["items"]}


async def charged_event(world: HttpWorld) -> str:
    _, token, lease = await world.working()
    world.pass_ms(1_000)
    assert (await world.post("/v1/runners/me/reports", report_of(lease), token)).status_code == 200
    event_id: str = lease["event"]["event_id"]
    return event_id


async def test_the_smallest_of_workspace_plan_and_server_counts() -> None:
    async with open_http_world(terms=free(event_days=30, file_days=2)) as world:
        world.set_plan(PlanTier.FREE)
        path, admin = f"{world.ws}/retention", world.admin_token()
        first = await world.get(path)
        body = {"event_days": 90, "transcript_days": 5, "file_days": 1}
        put = await world.call("PUT", path, admin, json=body)
        shown = await world.get(path)
        reset = await world.call("PUT", path, admin, json={})

        assert by_class(first, "days") == {"events": 30, "transcripts": 30, "files": 2, "deliveries": 7}
        assert by_class(put, "days") == {"events": 30, "transcripts": 5, "files": 1, "deliveries": 7}
        assert by_class(shown, "own_days") == {
            "events": 90,
            "transcripts": 5,
            "files": 1,
            "deliveries": None,
        }
        assert by_class(reset, "days") == by_class(first, "days")

        for wrong in ({"event_days": 0}, {"event_days": "1"}, {"frame_days": 1}):
            assert (await world.call("PUT", path, admin, json=wrong)).status_code == 400
        refused = await world.call("PUT", path, world.user_token(Role.OPERATOR), json={})
        assert refused.json()["error_code"] == "UZ-AUTH-009"


async def test_charged_events_are_counted_first_and_go_only_when_that_is_said(world: HttpWorld) -> None:
    path, admin = f"{world.ws}/retention", world.admin_token()
    event_id = await charged_event(world)
    billed = await world.get(f"/v1/tenants/me/billing/charges/{event_id}/metering-periods")
    nanos = sum(item["charged_nanos"] for item in billed.json()["items"])
    world.pass_ms(3 * DAY_MS)

    preview = await world.get(f"{path}/preview", params={"event_days": "2"})
    later = await world.get(f"{path}/preview", params={"event_days": "9"})
    refused = await world.call("PUT", path, admin, json={"event_days": 2})
    await world.system.ask("retention_rounds", "", DropOld())
    kept = await world.get(f"{world.ws}/events/{event_id}")
    said = await world.call("PUT", path, admin, json={"event_days": 2, "drop_charged": True})
    await world.system.ask("retention_rounds", "", DropOld())
    gone = await world.get(f"{world.ws}/events/{event_id}")
    again = await world.get(f"/v1/tenants/me/billing/charges/{event_id}/metering-periods")

    assert nanos > 0
    assert (by_class(preview, "rows")["events"], by_class(preview, "charged_nanos")["events"]) == (1, nanos)
    assert by_class(later, "rows")["events"] == 0
    assert (refused.status_code, refused.json()["error_code"]) == (409, "UZ-RETENTION-001")
    assert (kept.status_code, said.status_code, gone.status_code) == (200, 200, 404)
    assert again.json()["items"] == billed.json()["items"]
