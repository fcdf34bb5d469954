"""Pages of the console in a browser without JavaScript: agents, the interface, models, settings, money."""

import html
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
import yaml

from sexton_actors.catalogue import Catalogue
from sexton_http.describe.documents import make_documents
from sexton_http.routes.console.operation_views import describe_operation
from sexton_http.routes.table import OPERATIONS
from sexton_storage.records.users import Role
from tests.http.test_http_models_and_keys import MODELS
from tests.http.test_http_pages import become
from tests.worlds.browser import Visitor, text_of, visiting
from tests.worlds.http import HttpWorld, open_http_world
from tests.worlds.http_agents import UNKNOWN, compiled, open_trigger, propose, run, skill
from tests.worlds.samples import SECRET, agent_files

ROOT = Path(__file__).resolve().parents[2]
HOW = re.compile(r"parts\.how\(frame, (\[.*?\])(?:, (\[.*?\]))?(?:, (\[.*?\]))?\)")


CALL = re.compile(r"\{% *(?:call (?P<what>[^%]*)|(?P<end>endcall) *)%\}")
NO_FIGURES = ("api_operation", "parts_page")
"""Pages to which the others lead to say how they know, and of parts that show nothing."""
ACTS = ('parts.card("Steer")', 'parts.card("Mend")', 'parts.card("Try it", "as you")')
"""Cards that hold buttons alone."""


@pytest.fixture
async def world() -> AsyncIterator[HttpWorld]:
    async with open_http_world(catalogue=Catalogue("2026-11-20", MODELS)) as opened:
        yield opened


@pytest.fixture
async def visitor(world: HttpWorld) -> AsyncIterator[Visitor]:
    async with visiting(world) as browser:
        yield await browser.sign_in()


def home(world: HttpWorld) -> str:
    return f"/console/{world.installation.workspace_id}"


def cards_without(template: str, words: str) -> list[str]:
    """The cards of a template in which these words do not stand."""
    opened: list[re.Match[str]] = []
    found: list[str] = []
    for mark in CALL.finditer(template):
        if mark["end"] is None:
            opened.append(mark)
            continue
        began = opened.pop()
        what = began["what"].strip()
        if what.startswith("parts.card(") and words not in template[began.end() : mark.start()]:
            found.append(what)
    assert not opened
    return found


async def told(world: HttpWorld, **query: str) -> list[str]:
    """What the audit log says was done, the newest first."""
    answer = await world.get("/v1/audit", world.admin_token(), params={"limit": "200", **query})
    return [line["action"] for line in answer.json()["items"]]


async def test_an_agent_is_rolled_back_and_its_proposals_memories_and_grants_are_decided(
    world: HttpWorld, visitor: Visitor
) -> None:
    zombie, token, lease = await world.working()
    page, first = f"{home(world)}/agents/{zombie['zombie_id']}", zombie["config_version_id"]
    entry = {"lease_id": lease["lease_id"], "key": "a/b <i>", "content": "It fills.", "category": "core"}
    await world.post(f"/v1/runners/me/memory/{zombie['zombie_id']}", entry, token)
    second = await compiled(world, zombie, skill(body="Look twice.\n"), open_trigger("grafana"))
    shown = await visitor.get(f"{page}/versions/{second}")
    assert '<span class="green">+Look twice.</span>' in shown.text

    active = await visitor.post(page, data={"verb": "roll_back", "version": second})
    assert active.status_code == 200, "its new address is shown this once"

    [url] = set(re.findall(r"/zwh_[A-Za-z0-9_-]{20,}", active.text))
    assert url not in (await visitor.get(page)).text

    back = await visitor.post(page, data={"verb": "roll_back", "version": first})
    assert (back.status_code, back.headers["location"]) == (303, page)

    for title in ("Look twice", "Look thrice"):
        await propose(world, zombie["zombie_id"], title=title)
    found = re.findall(r'name="proposal" value="([0-9a-f-]+)"', (await visitor.get(page)).text)
    newest, oldest = dict.fromkeys(found)
    denied = await visitor.post(page, data={"verb": "reject", "proposal": newest, "message": "Too much."})
    approved = await visitor.post(page, data={"verb": "approve", "proposal": oldest})
    again = await visitor.post(page, data={"verb": "approve", "proposal": oldest})
    assert (denied.status_code, approved.status_code, again.status_code) == (303, 303, 409)
    assert "UZ-AGENT-002" in again.text

    wish = {"service": "pagerduty", "reason": "To see who is on call."}
    made = (await world.post(f"{world.ws}/zombies/{zombie['zombie_id']}/integration-requests", wish)).json()
    for verb in ("grant", "revoke"):
        assert (await visitor.post(page, data={"verb": verb, "grant": made["grant_id"]})).status_code == 303
    assert "a/b &lt;i&gt;" in (await visitor.get(page)).text
    assert (await visitor.post(page, data={"verb": "forget", "key": "a/b <i>"})).status_code == 303
    assert "It remembers nothing yet." in (await visitor.get(page)).text

    assert (await told(world))[:9] == [
        *("memory.forget", "grant.change", "grant.change", "grant.request", "proposal.approve"),
        *("proposal.reject", "proposal.create", "proposal.create", "agent.activate"),
    ]

    for wrong in (
        {"verb": "roll_back", "version": "x"},
        {"verb": "approve", "proposal": "x"},
        {"verb": "no"},
    ):
        assert (await visitor.post(page, data=wrong)).status_code == 400
    become(world, Role.USER)
    refused = await visitor.post(page, data={"verb": "roll_back", "version": second})
    assert (refused.status_code, "UZ-AUTH-009" in refused.text) == (403, True)
    assert "This needs the role operator" in (await visitor.get(page)).text


async def test_what_a_page_tells_to_type_sends_a_delivery(world: HttpWorld, visitor: Visitor) -> None:
    await world.keep_secret()
    zombie = await world.install()
    page = (await visitor.get(f"{home(world)}/agents/{zombie['zombie_id']}")).text
    [lines] = re.findall(
        r'aria-label="How to send a delivery of github by hand">(.*?)</pre>', page, re.DOTALL
    )

    script = f"set -e\n{html.unescape(lines)} -s -o /dev/null -w '%{{http_code}}'"
    done = await trio.run_process(
        ["bash", "-c", script], capture_stdout=True, env={**os.environ, "SECRET": SECRET, "NO_PROXY": "*"}
    )

    assert done.stdout == b"202"


async def test_a_page_starts_no_work_in_a_paused_workspace(world: HttpWorld, visitor: Visitor) -> None:
    zombie, settings = await world.install(), f"{home(world)}/settings"
    assert (await visitor.post(settings, data={"verb": "pause"})).status_code == 303

    steered = await visitor.post(
        f"{home(world)}/agents/{zombie['zombie_id']}", data={"verb": "steer", "message": "go"}
    )
    files = msgspec.json.encode(agent_files("second")).decode()
    install = {"address": f"{world.ws}/zombies", "body": files, "sure": "yes"}
    installed = await visitor.post(f"{home(world)}/api/install_zombie", data=install)
    assert (steered.status_code, "UZ-WORKSPACE-002" in steered.text) == (402, True)
    assert "UZ-WORKSPACE-002" in installed.text

    assert (await visitor.post(settings, data={"verb": "resume"})).status_code == 303
    assert (await visitor.post(settings, data={"verb": "rename", "name": "payments"})).status_code == 303
    assert (
        await visitor.post(settings, data={"verb": "scoring", "context_tokens": "512"})
    ).status_code == 303

    kept = await visitor.post(settings, data={"verb": "retention", "event_days": "90", "file_days": ""})
    assert kept.status_code == 303

    shown = text_of((await visitor.get(settings)).text)
    assert "Kept 90 days." in shown
    assert "SEXTON_MAX_STREAMS Streams of server-sent events at once. 2048 default" in shown
    assert (await world.get(world.ws)).json()["name"] == "payments"
    assert (await world.get(f"{world.ws}/scoring")).json()["context_tokens"] == 512

    no_days = {"verb": "retention", "event_days": "0"}
    for wrong in ({"verb": "rename", "name": ""}, {"verb": "scoring", "context_tokens": "x"}, no_days):
        assert (await visitor.post(settings, data=wrong)).status_code == 400


async def test_agents_are_found_by_a_part_of_their_name_and_by_their_state(
    world: HttpWorld, visitor: Visitor
) -> None:
    for name in ("deploy-doctor", "deploy-scribe", "night-watch"):
        await world.install(name)
    [stopped] = [
        one["zombie_id"]
        for one in (await world.get(f"{world.ws}/zombies")).json()["items"]
        if one["name"] == "deploy-scribe"
    ]
    await world.call("PATCH", f"{world.ws}/zombies/{stopped}", json={"status": "stopped"})

    async def found(**query: str) -> list[str]:
        page = (await visitor.get(f"{home(world)}/agents", params=query)).text
        return sorted(re.findall(r'/agents/[0-9a-f-]{36}">([a-z-]+)</a>', page))

    part, glob = await found(name="doctor"), await found(name="deploy-*", status="")
    by_state = await found(name="", status="stopped")
    none = (await visitor.get(f"{home(world)}/agents?name=nobody")).text

    assert (part, glob) == (["deploy-doctor"], ["deploy-doctor", "deploy-scribe"])
    assert by_state == ["deploy-scribe"]
    assert "No agent is like that." in none


async def test_a_runner_is_revoked_for_good_once_its_host_was_typed(
    world: HttpWorld, visitor: Visitor
) -> None:
    runner = str((await world.get("/v1/runners/me", await world.enrol())).json()["id"])
    page = f"{home(world)}/fleet/{runner}"
    [host] = re.findall(
        r"<label for=\"name-[0-9a-f-]+\">Type ([^<]+)<", (await visitor.get(f"{home(world)}/fleet")).text
    )

    untyped = await visitor.post(page, data={"verb": "revoke"})
    mistyped = await visitor.post(page, data={"verb": "revoke", "name": f"{host}x"})
    before = (await world.get("/v1/fleet/runners", world.admin_token())).json()["items"][0]
    typed = await visitor.post(page, data={"verb": "revoke", "name": f" {host}"})
    after = (await world.get("/v1/fleet/runners", world.admin_token())).json()["items"][0]

    assert (untyped.status_code, mistyped.status_code, typed.status_code) == (400, 400, 303)
    assert f"type the name of its host, {host}" in html.unescape(untyped.text)
    assert (before["admin_state"], after["admin_state"]) == ("active", "revoked")


async def test_models_are_chosen_and_money_is_seen_and_given(world: HttpWorld, visitor: Visitor) -> None:
    zombie, runner = await world.install(), await world.enrol()
    await run(world, zombie, runner)
    models, money = f"{home(world)}/models", f"{home(world)}/money"
    assert (await visitor.post(models, data={"verb": "choose", "model": "small"})).status_code == 303
    assert (await world.get("/v1/tenants/me/provider")).json()["model"] == "small"
    assert "✓ chosen" in (await visitor.get(models)).text
    assert (await visitor.post(models, data={"verb": "choose", "model": "none"})).status_code == 400
    assert (await visitor.post(models, data={"verb": "reset"})).status_code == 303

    before = (await world.get("/v1/tenants/me/billing")).json()["balance_nanos"]
    given = await visitor.post(money, data={"dollars": "$2.5", "reason": "A gift."})
    after = (await world.get("/v1/tenants/me/billing")).json()["balance_nanos"]
    assert (given.status_code, after - before) == (303, 2_500_000_000)

    for wrong in ("0", "-1", "NaN", "1e99", "0.0000000001", "x"):
        answer = await visitor.post(money, data={"dollars": wrong, "reason": "A gift."})
        assert (answer.status_code, "an amount above zero" in answer.text) == (400, True)
    shown = text_of((await visitor.get(money)).text)
    assert "doctor 1 " in shown

    exported = await visitor.get("/v1/tenants/me/billing/charges/export")
    assert (exported.status_code, len(exported.text.splitlines())) == (200, 1)


async def test_every_operation_has_a_page_and_is_tried_as_the_reader(
    world: HttpWorld, visitor: Visitor
) -> None:
    zombie, api = await world.install(), f"{home(world)}/api"
    listed = (await visitor.get(api)).text
    assert all(f'{api}/{operation.name}"' in listed for operation in OPERATIONS)
    assert len(listed) < 100_000

    document = make_documents(OPERATIONS, "").document
    told_of = [describe_operation(document, operation) for operation in OPERATIONS]
    longest = sorted(told_of, key=lambda one: len(msgspec.json.encode(one)))[-3:]
    for name in ("install_zombie", *(one.entry.name for one in longest)):
        page = await visitor.get(f"{api}/{name}")
        assert (page.status_code, len(page.text) < 100_000) == (200, True), name
    assert (await visitor.client.get(f"{api}/nothing")).status_code == 404

    async def tried(name: str, path: str, **more: str) -> str:
        answer = await visitor.post(f"{api}/{name}", data={"address": path, **more})
        assert answer.status_code == 200, answer.text
        return html.unescape(answer.text)

    agent = f"{world.ws}/zombies/{zombie['zombie_id']}"
    assert '"name": "doctor"' in await tried("list_zombies", f"{world.ws}/zombies?limit=1")
    assert "UZ-REQ-001" in await tried("list_zombies", f"{world.ws}/zombies?limit=0")
    assert "UZ-UUIDV7-009" in await tried("get_zombie", f"{world.ws}/zombies/x")
    assert "UZ-REQ-001" in await tried("get_zombie", "/v1/whoami")
    assert "UZ-WORKSPACE-001" in await tried("list_zombies", f"/v1/workspaces/{UNKNOWN}/zombies")

    asked = await tried("change_zombie", agent, body='{"status":"stopped"}')
    assert "Send this PATCH now" in asked
    assert (await world.get(agent)).json()["status"] == "active", "a change is asked for once more"

    done = await tried("change_zombie", agent, body='{"status":"stopped"}', sure="yes")
    assert '"status": "stopped"' in done
    assert (await told(world))[0] == "agent.change"
    assert "UZ-REQ-001" in await tried("change_zombie", agent, body="[]", sure="yes")

    wire = await visitor.post(f"{api}/poll_leases", data={"address": "/v1/runners/me/leases"})
    assert wire.status_code in {400, 404}

    become(world, Role.VIEWER)
    assert "UZ-AUTH-009" in await tried("change_zombie", agent, body='{"status":"active"}', sure="yes")


def test_every_figure_names_calls_metrics_and_alerts_that_there_are() -> None:
    folder = ROOT / "http" / "sexton_http" / "pages" / "templates" / "html"
    metrics = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    rules = yaml.safe_load((ROOT / "docs" / "monitoring" / "alerts.yml").read_text(encoding="utf-8"))
    alerts = {rule["alert"] for group in rules["groups"] for rule in group["rules"]}
    calls = {operation.name for operation in OPERATIONS}
    named: list[Any] = []
    untold: list[tuple[str, str]] = []
    for template in folder.glob("*.html"):
        text = template.read_text(encoding="utf-8")
        untold += [(template.stem, card) for card in cards_without(text, "parts.how(")]
        if template.name != "parts.html":
            assert text.count("parts.how(") == len(HOW.findall(text)), template.name
        named += [tuple(yaml.safe_load(part or "[]") for part in found) for found in HOW.findall(text)]

    assert {name for one in named for name in one[0]} <= calls
    assert all(f"`{name.removesuffix('_total')}`" in metrics for one in named for name in one[1])
    assert {name for one in named for name in one[2]} <= alerts
    assert [one for one in untold if one[0] not in NO_FIGURES and one[1] not in ACTS] == []
