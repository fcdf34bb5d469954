"""What the worst requests cost the loop at a stretch, from the first byte to the last, beside small ones."""

import base64
import hashlib
import hmac
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

import httpx2
import pytest
import trio
from trio.lowlevel import Task

from sexton_http.gateway.operations import MAX_WEBHOOK_BYTES
from tests.http.test_http_loop_time import MOST_UNITS, RUNS, Steps, filled, unit_s
from tests.worlds.http import HttpWorld, open_http_world
from tests.worlds.http_agents import at, skill, trigger
from tests.worlds.samples import SECRET

SHOWN = 14
CALM_S = 0.01
Ask = Callable[[int], Awaitable[httpx2.Response]]
"""Given how often it has been asked."""


class OthersSteps(Steps):
    """Only what the server's tasks do: the client runs in the test's own."""

    def __init__(self) -> None:
        super().__init__()
        self._mine = trio.lowlevel.current_task()

    def after_task_step(self, task: Task) -> None:
        if task is not self._mine:
            super().after_task_step(task)


def dense(unit: str, count: int) -> str:
    return f"context:\n  x: [{unit * count}1]\n"


def manifests() -> Iterator[tuple[str, str, str]]:
    """A name, and what stands in SKILL.md and TRIGGER.md beside what has to."""
    yield "small", "", ""
    yield "more lists than may be", "", dense("[],", 20_000)
    yield "lists", "", dense("[],", 740)
    yield "numbers", "", dense("1,", 1_500)
    yield "texts", "", dense("abc,", 1_500)
    yield "keys", "", "context:\n" + "".join(f"  k{number}: 1\n" for number in range(740))
    yield "one long text", "", f"context:\n  x: {'abc ' * 15_000}\n"
    yield "lines", "\n" * 60_000, ""
    yield "a command of many lines", "```sh\n" + "x\n" * 29_000 + "```\n", "runtime: command\n"
    yield "blocks", "```text\n```\n" * 500 + "```sh\nx\n```\n", "runtime: command\n"


def payloads() -> Iterator[tuple[str, bytes]]:
    start = b'{"action":"completed","x":'
    size = MAX_WEBHOOK_BYTES - 100
    yield "small", start + b"1}"
    for name, unit, most in (
        ("numbers", b"1,", 45_000),
        ("objects", b'{"a":1},', 16_000),
        ("lists", b"[],", 16_000),
        ("lists in lists", b"[" * 60 + b"]" * 60 + b",", 260),
    ):
        yield f"more {name} than may be", filled(size, start + b"[", unit, b"1]}")
        begun = start + b"[" + unit * most + b'"'
        yield name, begun + b"x" * (size - len(begun)) + b'"]}'
    yield "escapes", filled(size, start + b'"', b"\\n", b'"}')
    yield "a long text", filled(size, start + b'"', b"a", b'"}')


async def longest(steps: OthersSteps, ask: Ask, most: float) -> tuple[float, int]:
    """In units of this moment of this machine, until it is within ``most``; and the last status."""
    best, status = float("inf"), 0
    for run in range(RUNS):
        unit = unit_s()
        steps.longest = 0.0
        status = (await ask(run)).status_code
        await trio.sleep(CALM_S)
        best = min(best, steps.longest / max(unit, unit_s()))
        if best <= most:
            break
    return best, status


class Requests:
    """The worst of each kind, by name."""

    def __init__(self, world: HttpWorld, working: tuple[dict[str, Any], str, dict[str, Any]]) -> None:
        self._world = world
        self._zombie, self._token, self._lease = working
        self._installed = 0

    def all(self) -> Iterator[tuple[str, Ask]]:
        for name, body, config in manifests():
            yield f"install, {name}", self._install(body, config)
        for name, payload in payloads():
            yield f"webhook, {name}", self._deliver(payload)
        sample = b'{"a":[' + b"1," * 30_000 + b"1]}"
        for name, size in (("small", 0), ("large", 900_000)):
            yield f"sample, {name}", self._verify(sample[: 10_000 if not size else None] + b" " * size)
        held = f"/v1/runners/me/leases/{self._lease['lease_id']}"
        fenced = {"fencing_token": self._lease["fencing_token"]}
        for name, text in {"small": "x", "long": "x" * 1_800_000, "line ends": "\n" * 240_000}.items():
            yield (
                f"activity, {name}",
                self._run_says(f"{held}/activity", {"frames": [{"kind": "chunk", "text": text}], **fenced}),
            )
        for name, evidence in {
            "small": {},
            "long": {"a": "x" * 1_900_000},
            "dense": {"a": [1] * 8_000},
        }.items():
            gate = {"tool_name": "http", "action_name": "GET", "evidence": evidence}
            yield f"gate, {name}", self._opens_gate(f"{held}/gates", gate)

    def _install(self, body: str, config: str) -> Ask:
        async def ask(_: int) -> httpx2.Response:
            self._installed += 1
            name = f"a{self._installed}"
            files = {"source_markdown": skill(name, body=body), "trigger_markdown": trigger(name, config)}
            return await self._world.post(f"{self._world.ws}/zombies", files)

        return ask

    def _deliver(self, payload: bytes) -> Ask:
        async def ask(run: int) -> httpx2.Response:
            body = payload[:-1] + b" " * run + payload[-1:]
            signature = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
            headers = {
                "x-github-event": "workflow_run",
                "x-github-delivery": f"{hashlib.sha256(payload).hexdigest()[:16]}-{run}",
                "x-hub-signature-256": f"sha256={signature}",
            }
            url = self._zombie["webhook_urls"]["github"]
            return await self._world.http.post(url, content=body, headers=headers)

        return ask

    def _verify(self, body: bytes) -> Ask:
        sample = {
            "headers": {"x-github-event": "push", "x-hub-signature-256": "sha256=" + 64 * "0"},
            "body_base64": base64.b64encode(body).decode(),
            "source": "github",
        }

        async def ask(_: int) -> httpx2.Response:
            return await self._world.post(f"{at(self._world, self._zombie)}/webhooks:verify", sample)

        return ask

    def _run_says(self, path: str, body: Mapping[str, Any]) -> Ask:
        async def ask(_: int) -> httpx2.Response:
            return await self._world.post(path, body, self._token)

        return ask

    def _opens_gate(self, path: str, body: Mapping[str, Any]) -> Ask:
        async def ask(run: int) -> httpx2.Response:
            return await self._world.post(path, {**body, "action_id": f"{len(str(body))}-{run}"}, self._token)

        return ask


async def test_no_request_keeps_the_loop_for_long(capsys: pytest.CaptureFixture[str]) -> None:
    rows = list[tuple[float, int, str]]()
    async with open_http_world(address_rate=None) as world:
        requests = Requests(world, await world.working())
        steps = OthersSteps()
        trio.lowlevel.add_instrument(steps)
        for name, ask in requests.all():
            # A mebibyte is decoded, hashed and copied, none of which can be done by halves.
            allowed = 3 if name.startswith("webhook") else 1
            units, status = await longest(steps, ask, allowed * MOST_UNITS)
            rows.append((units / allowed, status, name))
    rows.sort(reverse=True)
    with capsys.disabled():
        lines = [f"{units:7.2f} {status} {name}" for units, status, name in rows[:SHOWN]]
        sys.stdout.write("\n  units     request\n" + "\n".join(lines) + "\n")

    assert rows[0][0] <= MOST_UNITS, rows[0]
