"""An agent in plain English, from a signed webhook to evidence, with a real server, runner and protocol."""

from __future__ import annotations

import hashlib
import hmac
import uuid
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio

from tests.fakes.collector import Collector, Seen, open_collector
from tests.fakes.model_servers import KEY, Call, ModelServer, Say, open_model, words_of
from tests.patience import PATIENCE_S
from tests.worlds.server_process import ServerProcess, open_server

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "issue-triage"
PAYLOAD = (EXAMPLE / "payloads/issues.opened.json").read_bytes()
SECRET = "signed with this"
VERDICT = (
    "kind: regression\nurgency: soon\ncomponent: export\nduplicate of: none\nmissing: nothing\n"
    "summary: The CSV export ends after 65536 rows since 4.2."
)
RUN = "invoke_agent issue-triage"
OPEN = ("received", "running", "waiting_approval")


class User:
    """The calls of somebody who runs the example."""

    def __init__(self, server: ServerProcess, http: httpx2.AsyncClient) -> None:
        self._http = http
        self.workspace = f"/v1/workspaces/{server.ready['workspace_id']}"
        self._headers = {"authorization": f"Bearer {server.ready['api_key']}"}

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        answer = await self._http.request(method, path, json=body, headers=self._headers)
        assert answer.is_success, f"{path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    async def install(self, name: str = "issue-triage", context: str = "") -> tuple[str, str]:
        """Install the example; its id, and where its webhook goes."""
        for credential, data in (
            ("github-webhook", {"webhook_secret": SECRET}),
            ("github-api", {"token": "t"}),
        ):
            await self.call("POST", f"{self.workspace}/credentials", {"name": credential, "data": data})
        skill, trigger = ((EXAMPLE / file).read_text() for file in ("SKILL.md", "TRIGGER.md"))
        files = {
            "source_markdown": skill.replace("name: issue-triage", f"name: {name}"),
            "trigger_markdown": trigger.replace("name: issue-triage", f"name: {name}").replace(
                "  max_turns: 16\n", context or "  max_turns: 16\n"
            ),
        }
        made = await self.call("POST", f"{self.workspace}/zombies", files)
        return made["zombie_id"], made["webhook_urls"]["github"]

    async def deliver(self, url: str) -> str:
        """Send the example's payload as GitHub does."""
        signature = hmac.new(SECRET.encode(), PAYLOAD, hashlib.sha256).hexdigest()
        headers = {
            "x-github-event": "issues",
            "x-github-delivery": str(uuid.uuid4()),
            "x-hub-signature-256": f"sha256={signature}",
            "content-type": "application/json",
        }
        answer = await self._http.post(url, content=PAYLOAD, headers=headers)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["event_id"])

    async def ended(self, zombie_id: str, event_id: str) -> dict[str, Any]:
        with trio.fail_after(PATIENCE_S):
            while True:
                found = await self.events(zombie_id)
                event = next(one for one in found if one["event_id"] == event_id)
                if event["status"] not in OPEN:
                    return event
                await trio.sleep(0.1)

    async def events(self, zombie_id: str) -> list[dict[str, Any]]:
        page = await self.call("GET", f"{self.workspace}/zombies/{zombie_id}/events")
        items: list[dict[str, Any]] = page["items"]
        return items


def triage() -> list[Say]:
    """What the model does about the example's payload."""
    entry = {"key": "issue 812", "content": "export: stops at 65536 rows; regression, soon"}
    recall = Call("memory_recall", {"query": "export rows"})
    return [
        Say("I look up what I know.", (recall,), input_tokens=900, output_tokens=40),
        Say("", (Call("memory_store", entry),), input_tokens=80, cached=900, output_tokens=50),
        Say(VERDICT, input_tokens=60, cached=980, output_tokens=60),
    ]


async def test_an_agent_in_plain_english_goes_from_signed_webhook_to_evidence_with_each_provider(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        open_model("anthropic", *triage()) as claude,
        open_model("openai", *triage()) as chat,
        open_collector() as collector,
    ):
        monkeypatch.setenv("SEXTON_ANTHROPIC_BASE_URL", claude.base_url)
        monkeypatch.setenv("SEXTON_OPENAI_BASE_URL", chat.base_url)
        async with (
            open_server(
                tmp_path, "--port", "0", "--runners", "1", "--otlp-endpoint", collector.base_url
            ) as server,
            httpx2.AsyncClient(base_url=server.ready["base_url"], timeout=30, trust_env=False) as http,
        ):
            user = User(server, http)
            zombie_id, url = await user.install()
            for model in (claude, chat):
                event = await _try_one(user, model, zombie_id, url)
                await _trace(collector, event, model)
            memories = await user.call("GET", f"{user.workspace}/zombies/{zombie_id}/memories")
            assert [entry["key"] for entry in memories["items"]] == ["issue 812"]
            # What the first run learnt, the second was told.
            assert "stops at 65536 rows" in words_of(chat.asked[0])

            await _preview(user, chat)
            await _go_on(user, chat)


async def _trace(collector: Collector, event: dict[str, Any], model: ModelServer) -> None:
    """All of the run is one trace, and its costs are what the event was charged."""
    trace_id = uuid.UUID(event["event_id"]).hex
    await collector.until(lambda got: any(span.name == "event" for span in of_trace(got, trace_id)))
    spans = of_trace(collector, trace_id)
    paths = sorted("/".join(collector.path(span)) for span in spans)
    name = event["evidence"]["model"]

    assert paths == sorted(
        [
            "event",
            "event/wait",
            "event/lease",
            "event/lease/report",
            f"event/lease/{RUN}",
            *[f"event/lease/{RUN}/chat {name}"] * 3,
            f"event/lease/{RUN}/execute_tool memory_recall",
            f"event/lease/{RUN}/execute_tool memory_store",
        ]
    )
    chats = [span.attributes for span in spans if span.name.startswith("chat")]
    assert {chat["gen_ai.provider.name"] for chat in chats} == {model.protocol}
    assert [chat["gen_ai.usage.input_tokens"] for chat in chats] == [900, 980, 1040]
    assert sum(span.attributes["sexton.cost.nanos"] for span in spans) == event["charged_nanos"] > 0
    assert VERDICT not in repr(spans)


def of_trace(collector: Collector, trace_id: str) -> list[Seen]:
    return [span for span in collector.spans if span.trace_id == trace_id]


async def _try_one(user: User, model: ModelServer, zombie_id: str, url: str) -> dict[str, Any]:
    key = {"provider": model.protocol, "api_key": KEY}
    await user.call("PUT", f"{user.workspace}/credentials/llm", key)
    event = await user.ended(zombie_id, await user.deliver(url))
    assert (event["status"], event["failure_label"]) == ("processed", None), event
    assert event["response_text"] == VERDICT
    assert event["tokens"] == 900 + 40 + 80 + 900 + 50 + 60 + 980 + 60
    evidence = event["evidence"]
    assert evidence["provider"] == model.protocol
    assert [(call["tool"], call["ok"]) for call in evidence["tools"]] == [
        ("memory_recall", True),
        ("memory_store", True),
    ]
    assert all(len(call["result_sha256"]) == 64 for call in evidence["tools"])
    first = words_of(model.asked[0])
    assert "You triage the issues" in first
    assert "Export loses rows since 4.2" in first
    assert event["event_id"] in first
    return event


async def _preview(user: User, model: ModelServer) -> None:
    model.script = [Say("An agent that triages.")]
    body = {"messages": [{"role": "user", "content": "Write an agent."}]}
    answer = await user._http.post(f"{user.workspace}/spec/preview", json=body, headers=user._headers)
    assert "event: done" in answer.text


async def _go_on(user: User, model: ModelServer) -> None:
    """A window that is full ends its event, and another event goes on from the note."""
    zombie_id, url = await user.install("small-window", "  context_cap_tokens: 1024\n")
    before = len(model.asked)
    model.script = [
        Say("", (Call("memory_recall", {"query": "export"}),), input_tokens=2_000),
        Say("Looked up: nothing. Left: the verdict."),
        Say(VERDICT),
    ]
    first = await user.ended(zombie_id, await user.deliver(url))
    assert first["status"] == "processed"
    assert first["response_text"] == "Looked up: nothing. Left: the verdict."
    with trio.fail_after(PATIENCE_S):
        while (follower := (await user.events(zombie_id))[0])["event_id"] == first["event_id"]:
            await trio.sleep(0.1)
    assert follower["resumes_event_id"] == first["event_id"]
    last = await user.ended(zombie_id, follower["event_id"])
    assert (last["status"], last["response_text"]) == ("processed", VERDICT)
    assert last["evidence"]["stage"] == 2
    assert "Left: the verdict." in words_of(model.asked[-1])
    assert len(model.asked) == before + 3
