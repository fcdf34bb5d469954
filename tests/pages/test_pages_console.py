"""The console in a real browser: what waits, what fails and what runs is seen, read and mended there."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import msgspec
import pytest
import trio

from sexton_actors.catalogue import Catalogue
from sexton_actors.periodic.census import Count
from sexton_actors.periodic.delivery_rounds import WriteDeliveries
from sexton_actors.periodic.failure_rounds import Sort
from sexton_engine import Message
from tests.http.test_http_models_and_keys import MODELS
from tests.http.test_http_transcripts import entry, write
from tests.pages.checks import check_console_page, sign_in
from tests.pages.screen import Screen
from tests.patience import PATIENCE_S
from tests.worlds.http import HttpWorld, open_http_world
from tests.worlds.http_agents import UNKNOWN, activate, compiled, open_trigger, propose, report, skill, steer
from tests.worlds.samples import trigger_md

PLACES = (
    *("events", "approvals", "agents", "failures", "jobs", "tree", "money"),
    *("credentials", "audit", "webhooks", "schedules", "events?q=&status=&agent=&after="),
    *("models", "settings", "api"),
    *("events?status=agent_error&q=code:*", "jobs?filter=status:agent_error&kind=replay"),
)
HOSTILE = "<script>alert(1)</script>\u202e\x1b[31m" + "x" * 2000

LONG_NAME = "w" * 64
"""The longest that an agent may have, and with nowhere to break it."""

BARS = ".timeline .lane title"


class Nonsense(msgspec.Struct, Message[None], frozen=True):
    """Nothing that an actor understands."""

    word: str


@pytest.fixture
async def world() -> AsyncIterator[HttpWorld]:
    async with open_http_world(catalogue=Catalogue("2026-11-20", MODELS)) as opened:
        yield opened


async def open_gate(world: HttpWorld, token: str, lease: dict[str, Any], **changes: Any) -> dict[str, Any]:
    body = {
        "action_id": "deploy",
        "tool_name": "deploy",
        "action_name": "rollback",
        "gate_kind": "approval",
        "proposed_action": "Roll parcel-service back to 8f4c2d1e",
        "blast_radius": "production of octo-org/parcel-service",
        "evidence": {"run": 812},
        "fencing_token": lease["fencing_token"],
        **changes,
    }
    answer = await world.post(f"/v1/runners/me/leases/{lease['lease_id']}/gates", body, token)
    assert answer.status_code in {200, 201}, answer.text
    gate: dict[str, Any] = answer.json()
    return gate


async def refused_delivery(world: HttpWorld, zombie: dict[str, Any]) -> None:
    hostile = {"x-github-event": "<i>push</i>", "authorization": "Bearer of-a-sender", "x-note": "<b>" * 600}
    url = zombie["webhook_urls"]["github"]
    assert (await world.http.post(url, content=HOSTILE.encode(), headers=hostile)).status_code == 401

    await world.system.ask("delivery_rounds", "", WriteDeliveries())


async def schedule(world: HttpWorld) -> None:
    cron = 'type: cron\n    schedule: "0 * * * *"\n    message: look <b>around</b>'
    files = {"source_markdown": skill("clock"), "trigger_markdown": trigger_md("clock", trigger=cron)}
    assert (await world.post(f"{world.ws}/zombies", files)).status_code == 201


async def fill_agent(world: HttpWorld, zombie: dict[str, Any], token: str, lease: dict[str, Any]) -> str:
    """Something of each kind that an agent's page shows; gives a version that was active for a moment."""
    for key in ("disk", HOSTILE[:60]):
        entry = {
            "lease_id": lease["lease_id"],
            "key": key,
            "content": "It fills on Mondays.",
            "category": "core",
        }
        await world.post(f"/v1/runners/me/memory/{zombie['zombie_id']}", entry, token)
    second = await compiled(world, zombie, skill(body="Look twice.\n"), open_trigger("github", "grafana"))
    for version in (second, zombie["config_version_id"]):
        assert (await activate(world, version)).status_code == 200
    await propose(world, zombie["zombie_id"], source_markdown=skill(body=f"Look thrice.\n{HOSTILE[:40]}\n"))
    wish = {"service": "pagerduty", "reason": "To see who is on call."}
    await world.post(f"{world.ws}/zombies/{zombie['zombie_id']}/integration-requests", wish)
    return second


async def test_an_agents_pages_and_an_operation_that_is_tried_are_for_everybody(
    screen: Screen, world: HttpWorld
) -> None:
    zombie, token, lease = await world.working()
    version = await fill_agent(world, zombie, token, lease)
    await sign_in(screen, world)
    agent = f"{world.base_url}/console/{world.installation.workspace_id}/agents/{zombie['zombie_id']}"
    await screen.open(agent)
    await check_console_page(screen, "agent_whole")
    await screen.open(f"{agent}/versions/{version}")
    await check_console_page(screen, "version")
    await screen.open(f"{agent.partition('/agents/')[0]}/api/list_zombies")
    await screen.press("Send")
    await screen.sees('"doctor"')
    await check_console_page(screen, "api_operation")


async def test_an_operator_sees_what_waits_and_fails_and_approves_it(
    screen: Screen, world: HttpWorld
) -> None:
    zombie, token, lease = await world.working()
    gate = await open_gate(world, token, lease)
    other = await world.install("scribe")
    await steer(world, other, HOSTILE)
    failing = await world.lease(token)
    said = [entry(1, HOSTILE, "note"), entry(2, "y" * 5_000, "output")]
    assert (await write(world, token, failing, *said)).status_code == 202

    await report(
        world, token, failing, outcome="agent_error", failure_reason="startup_posture", response_text=HOSTILE
    )
    await world.system.ask("failure_rounds", "", Sort())
    await refused_delivery(world, zombie)
    await schedule(world)
    await sign_in(screen, world)
    home = f"{world.base_url}/console"

    await screen.open(home)
    await screen.sees("Roll parcel-service back to 8f4c2d1e")
    shown = await screen.sees("scribe fails")
    assert "startup_posture" in shown

    await screen.sees("doctor refuses deliveries: signature_missing")

    await check_console_page(screen, "now")
    for place in PLACES:
        await screen.open(f"{home}/-/{place}")
        await check_console_page(screen, place.partition("?")[0])
    await screen.open(f"{home}/parts")
    await check_console_page(screen, "parts")
    here = f"{home}/{world.installation.workspace_id}"
    await screen.open(f"{here}/events/{failing['event']['event_id']}")
    await screen.sees("[U+202E]␛[31m")
    drawn = await screen.run(f"return [...document.querySelectorAll({BARS!r})].map((one) => one.textContent)")
    assert [words.partition(" ")[0] for words in drawn] == ["waited", "attempt", "renewed"], drawn

    await check_console_page(screen, "event")
    for part in ("transcript", "frames"):
        await screen.open(f"{here}/events/{failing['event']['event_id']}/{part}")
        await check_console_page(screen, part)
    [refused] = (await world.get(f"{world.ws}/webhook-deliveries?verdict=refused")).json()["items"]
    await screen.open(f"{here}/webhooks/{refused['delivery_id']}")
    assert "of-a-sender" not in await screen.sees("[U+202E]␛[31m")

    await check_console_page(screen, "delivery")
    await screen.press("Replay")
    await screen.sees("once")
    await screen.open(f"{here}/agents/{zombie['zombie_id']}")
    await check_console_page(screen, "agent")

    await screen.open(f"{here}/schedules")
    await screen.press("Pause")
    await screen.sees("paused by")

    await screen.open(f"{here}/approvals")
    await screen.press("Approve")
    await screen.sees("Nothing waits for a person")
    lately = await screen.text("#decided")
    assert "Roll parcel-service back to 8f4c2d1e" in lately
    assert "approved by user:" in lately

    decided = await world.get(f"{world.ws}/approvals/{gate['gate_id']}")
    assert decided.json()["status"] == "approved"


async def test_a_platform_admin_sees_what_crashed_and_what_is_stuck_and_mends_it(
    screen: Screen, world: HttpWorld
) -> None:
    runner = await world.enrol()
    await steer(world, await world.install(LONG_NAME))
    await world.lease(runner)
    agent = await world.install("picky", tags="gpu")
    await steer(world, agent)
    world.system.tell("zombie", UUID(agent["zombie_id"]), Nonsense(HOSTILE))
    await sign_in(screen, world)
    here = f"{world.base_url}/console/{world.installation.workspace_id}"

    with trio.fail_after(PATIENCE_S):
        await screen.open(f"{here}/now")
        while "Actor zombie crashed" not in (troubles := await screen.text("#troubles")):
            await screen.open(f"{here}/now")
    assert "picky" in troubles
    assert "gpu" in troubles

    await screen.open(f"{here}/fleet")
    await screen.press("Enrol a runner")
    command = await screen.text("#command pre")
    token = command.partition("=")[2].partition(" ")[0]
    body = {"host_id": "lab-7", "sandbox_tier": "bubblewrap", "labels": ["gpu"]}
    made = await world.post("/v1/runners", body, token)
    assert made.status_code == 201, command

    await world.system.ask("census", "", Count())
    await screen.open(f"{here}/fleet")
    ages = await screen.text("#ages")
    assert "gpu" in ages
    assert LONG_NAME in await screen.text("#leases")

    await check_console_page(screen, "fleet")
    await screen.press("Cordon")
    await screen.sees("cordoned")
    await screen.open(f"{here}/tree?kind=zombie")
    await screen.sees("Actors of the kind zombie")
    await screen.open(f"{here}/tree/zombie?key={agent['zombie_id']}&record=true")
    shown = await screen.sees("Traceback")
    assert "Nonsense" in shown

    await check_console_page(screen, "actor")
    await screen.press("Restart")
    await screen.sees("Restarts that count")
    log = (await world.get("/v1/admin/audit", world.admin_token())).json()["items"]
    assert [line["action"] for line in log[:4]] == [
        *("actor.restart", "runner.change", "runner.enrol", "enrolment_token.create"),
    ]


async def test_a_page_that_is_left_open_shows_what_happens(screen: Screen, world: HttpWorld) -> None:
    zombie = await world.install()
    await sign_in(screen, world)
    await screen.open(f"{world.base_url}/console/-/events")
    await screen.sees("live")
    assert "steer:" not in await screen.text("#events")

    await steer(world, zombie)

    await screen.sees("steer:admin")


async def test_whoever_asks_for_what_is_not_there_is_told_on_a_page(screen: Screen, world: HttpWorld) -> None:
    await sign_in(screen, world)
    here = f"{world.base_url}/console/{world.installation.workspace_id}"
    await screen.open(f"{here}/events/{UNKNOWN}")

    shown = await screen.sees("The workspace has no event")

    assert "UZ-EVENT-001" in shown

    screen.complaints.clear()
