"""The examples that a model carries out, installed in a real server and run by a real runner."""

from __future__ import annotations

import hashlib
import hmac
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
import trio

from sexton_actors.manifest.model import Signature, WebhookTrigger
from sexton_actors.protocol.scheduler import Look
from sexton_cli.demo.issue_triage import here, script_for
from sexton_cli.demo.issues_api import open_issues_api
from sexton_cli.demo.outside import LEDGER
from sexton_cli.example_files import load, payload
from sexton_cli.webhook_samples import Stamp, sample_of, signed
from sexton_runner.main import run_runner
from sexton_runner.providers.settings import ModelSettings
from sexton_runner.runner import Runner
from sexton_runner.settings import RunnerSettings
from sexton_runner.tool_settings import ToolSettings
from tests.fakes.model_servers import KEY, Call, ModelServer, Say, open_model, words_of
from tests.patience import PATIENCE_S
from tests.worlds.http import HttpWorld, open_http_world
from tests.worlds.runner import PACE
from tests.worlds.toolbox import Seen, Web, open_web

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SECRET = "the alerts are signed with this"
TOKEN = "chat-canary-90e1b2c3"
TRIAGED = WebhookTrigger("github", signature=Signature("github-webhook"))
FIVE_MINUTES_MS = 300_000
ENDED = ("processed", "agent_error", "gate_blocked", "dead_lettered", "cancelled")


@asynccontextmanager
async def at_work(folder: Path, model: ModelServer) -> AsyncIterator[HttpWorld]:
    """Give a server with a runner that speaks with ``model``."""
    async with open_http_world() as world:
        key = {"provider": model.protocol, "api_key": KEY}
        answer = await world.call("PUT", f"{world.ws}/credentials/llm", json=key)
        assert answer.status_code == 204, answer.text
        settings = RunnerSettings(
            base_url=world.base_url,
            state_dir=folder / "state",
            runner_token=await world.enrol(),
            tools=ToolSettings(allow_loopback=True),
            models=ModelSettings(addresses={model.protocol: model.base_url}),
        )
        runners: list[Runner] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(
                partial(run_runner, settings, timing=PACE, rng=random.Random(1), announce=runners.append)
            )
            yield world
            runners[0].stop("the test is over")


async def install(world: HttpWorld, example: str, host: str, web: Web) -> dict[str, Any]:
    """Install an example with the test's server in place of its host."""
    skill, trigger = ((EXAMPLES / example / name).read_text() for name in ("SKILL.md", "TRIGGER.md"))
    body = {
        "source_markdown": skill.replace(f"https://{host}", web.url),
        "trigger_markdown": trigger.replace(host, "localhost").replace(
            "runtime: agent", "runtime: agent\nmodel: m-1"
        ),
    }
    answer = await world.post(f"{world.ws}/zombies", body)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def events(world: HttpWorld, zombie: dict[str, Any]) -> list[dict[str, Any]]:
    found = await world.get(f"{world.ws}/zombies/{zombie['zombie_id']}/events")
    items: list[dict[str, Any]] = found.json()["items"]
    return items


async def until(found: Callable[[], Any]) -> Any:
    """Wait for what a server will show."""
    with trio.fail_after(PATIENCE_S):
        while not (result := await found()):
            await trio.sleep(0.02)
    return result


async def ended(world: HttpWorld, zombie: dict[str, Any], count: int = 1) -> dict[str, Any]:
    """Wait until that many events have ended; give the newest."""

    async def all_ended() -> list[dict[str, Any]]:
        items = await events(world, zombie)
        return items if len([one for one in items if one["status"] in ENDED]) >= count else []

    items: list[dict[str, Any]] = await until(all_ended)
    return items[0]


def health(up: list[bool]) -> Callable[[Seen], tuple[int, dict[str, str], bytes]]:
    return lambda _: (200, {}, b'{"ok": true}') if up[0] else (503, {}, b"overloaded")


async def test_cron_health_check_notices_that_a_service_went_down(tmp_path: Path) -> None:
    up = [True]
    async with (
        open_web(health(up)) as web,
        open_model("anthropic") as model,
        at_work(tmp_path, model) as world,
    ):
        ask = Call("http_request", {"url": f"{web.url}/health", "timeout_s": 10})
        recall = Call("memory_recall", {"query": "state"})
        store = {"key": "last state", "content": "up, 200"}
        model.script = [
            Say("", (recall,)),
            Say("", (ask,)),
            Say("", (Call("memory_store", store),)),
            Say("state: up\nchanged: yes\nseen: 200"),
            Say("", (recall,)),
            Say("", (ask,)),
            Say("", (ask,)),
            Say("", (Call("memory_store", store | {"content": "down, 503 twice"}),)),
            Say("state: down\nchanged: yes\nseen: 503 twice"),
        ]
        zombie = await install(world, "cron-health-check", "status.example.com", web)
        event: dict[str, Any] = {}
        for turn in (1, 2):
            await world.system.ask("scheduler", "", Look())
            world.pass_ms(FIVE_MINUTES_MS)
            await world.system.ask("scheduler", "", Look())
            event = await ended(world, zombie, turn)
            assert event["actor"] == "cron:*/5 * * * *"
            assert event["status"] == "processed", event
            up[0] = False
        memories = (await world.get(f"{world.ws}/zombies/{zombie['zombie_id']}/memories")).json()["items"]

    assert event["response_text"] == "state: down\nchanged: yes\nseen: 503 twice"
    assert [(one["key"], one["content"]) for one in memories] == [("last state", "down, 503 twice")]
    assert [seen.target for seen in web.seen] == ["/health"] * 3
    assert [call["ok"] for call in event["evidence"]["tools"]] == [True, False, False, True]
    assert "HTTP 503" in words_of(model.asked[-1])


REPORT = "Checkout answered 502 from 08:41 to 09:36. Noticed after 12 minutes, resolved after 55."
TIMES = "import json; print(json.dumps({'noticed': 12, 'resolved': 55}))"


async def wake(world: HttpWorld, zombie: dict[str, Any]) -> None:
    body = (EXAMPLES / "incident-scribe/payloads/incident.resolved.json").read_bytes()
    digest = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    headers = {"x-alerts-signature": f"sha256={digest}", "content-type": "application/json"}
    answer = await world.http.post(zombie["webhook_urls"]["alerts"], content=body, headers=headers)
    assert answer.status_code == 202, answer.text


@pytest.mark.parametrize("decision", ["approve", "deny"])
async def test_incident_scribe_posts_what_a_person_has_read_and_nothing_else(
    tmp_path: Path, decision: str
) -> None:
    async with (
        open_web(lambda _: (200, {}, b'{"ok": true}')) as web,
        open_model("openai") as model,
        at_work(tmp_path, model) as world,
    ):
        for name, data in (("alerts", {"webhook_secret": SECRET}), ("chat", {"token": TOKEN})):
            await world.post(f"{world.ws}/credentials", {"name": name, "data": data})
        post = {
            "url": f"{web.url}/api/post",
            "method": "POST",
            "headers": {"authorization": "Bearer ${secrets.chat.token}"},
            "json": {"channel": "incidents", "text": REPORT},
        }
        last = "posted" if decision == "approve" else "not posted: wrong times"
        model.script = [
            Say("", (Call("python", {"code": TIMES}),)),
            Say("", (Call("http_request", post),)),
            Say(f"{REPORT}\n{last}"),
        ]
        zombie = await install(world, "incident-scribe", "chat.example.com", web)
        await wake(world, zombie)
        gate = await until(partial(pending, world))
        assert web.seen == [], "nothing goes out before somebody has read it"
        assert gate["evidence"]["json"]["text"] == REPORT
        assert (gate["tool_name"], gate["action_name"]) == ("http_request", "POST localhost")

        await world.post(f"{world.ws}/approvals/{gate['gate_id']}:{decision}", {"reason": "wrong times"})
        event = await ended(world, zombie)
    assert event["status"] == "processed", event
    assert event["response_text"] == f"{REPORT}\n{last}"
    assert TOKEN not in str(model.asked) + str(gate) + str(event)
    assert "'resolved': 55" in words_of(model.asked[1]) or '"resolved": 55' in words_of(model.asked[1])

    if decision == "approve":
        (seen,) = web.seen
        assert seen.headers["authorization"] == f"Bearer {TOKEN}"
        assert orjson.loads(seen.body) == post["json"]
    else:
        assert web.seen == []
        assert "said no: wrong times" in words_of(model.asked[2])


async def pending(world: HttpWorld) -> dict[str, Any] | None:
    found = (await world.get(f"{world.ws}/approvals?status=pending")).json()["items"]
    return dict(found[0]) if found else None


async def test_issue_triage_labels_an_issue_and_opens_no_pull_request_that_a_person_refuses(
    tmp_path: Path,
) -> None:
    async with (
        open_issues_api(LEDGER, TOKEN) as api,
        open_model("openai") as model,
        at_work(tmp_path, model) as world,
    ):
        for name, data in (("github-webhook", {"webhook_secret": SECRET}), ("github-api", {"token": TOKEN})):
            await world.post(f"{world.ws}/credentials", {"name": name, "data": data})
        turns = [(call.tool, call.arguments) for turn in script_for(api) for call in turn.calls]
        model.script = [*(Say("", (Call(*turn),)) for turn in turns), Say("kind: regression")]
        files = here(load("issue-triage"), api)
        body = {
            "source_markdown": files.source_markdown,
            "trigger_markdown": files.trigger_markdown.replace(
                "runtime: agent", "runtime: agent\nmodel: m-1"
            ),
        }
        zombie = (await world.post(f"{world.ws}/zombies", body)).json()
        stamp = Stamp("delivery-1", world.actors_world.now_ms() // 1000)
        issue = payload("issue-triage", "issues.opened.json")
        sent = signed(TRIAGED, sample_of(TRIAGED, "issues.opened", issue, stamp), SECRET, stamp)
        answer = await world.http.post(
            zombie["webhook_urls"]["github"], content=sent.body, headers=sent.headers
        )
        assert answer.status_code == 202, answer.text

        gate = await until(partial(pending, world))
        assert (gate["tool_name"], gate["evidence"]["json"]["head"]) == ("http_request", "known-issue-812")

        await world.post(f"{world.ws}/approvals/{gate['gate_id']}:deny", {"reason": "Not yet."})
        event = await ended(world, zombie)

    assert event["status"] == "processed", event
    assert (api.labels, api.pulls) == ({812: ["regression", "urgency: soon"]}, [])
    assert [(one.method, one.status) for one in api.asked] == [
        ("POST", 200),
        ("GET", 200),
        ("POST", 201),
        ("PUT", 201),
    ]
    assert "a person was asked and said no: Not yet." in words_of(model.asked[8])
    assert "paste.example.net" in words_of(model.asked[4])
    assert TOKEN not in str(model.asked) + str(event) + str(gate)
