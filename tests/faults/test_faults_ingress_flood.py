"""A flood of webhooks beside a runner at work: the runner's calls go first.

Counted, not timed, so that it holds on a busy machine, too: while a call of the runner waits for its answer,
few of the webhooks that wait beside it are let in.
"""

import json
import os
import sys
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median
from typing import Any
from uuid import uuid4

import trio

from bench.product import (
    Delivery,
    Site,
    create_agent,
    delivery,
    enrol,
    held,
    keep_secret,
    mint_enrolment,
    payload,
    poll,
    renew,
    report,
)
from tests.worlds.raw_client import Line, site_of
from tests.worlds.server_process import open_server

SENDERS = 128
"""Each sends its next webhook when it has the answer to the last."""
WARM = 256
"""Answers to the flood before the runner begins: by then the server has measured what it can take in."""
MOST = int(os.environ.get("SEXTON_FLOOD", "2000"))
"""Webhooks in all; the flood ends earlier, with the runner."""
BUSY_AT = os.environ.get("SEXTON_FLOOD_BUSY_AT", "1")
"""Milliseconds; so few that the flood is too much for a quick machine as well."""
AGENTS = 8
RUNS = 4
BUSY = 503
PAUSE_S = 0.2
FEW = SENDERS / 3
"""Without the doors, about as many as there are senders are let in during each call."""


class Flood:
    """Webhooks over many connections at once, and their answers."""

    def __init__(self, signed: list[Delivery]) -> None:
        self._signed = signed
        self.left = MOST
        self.answers: Counter[int] = Counter()
        self.warm = trio.Event()

    async def send(self, line: Line) -> None:
        while self.left:
            self.left -= 1
            request = self._signed[self.left % len(self._signed)].with_id(str(uuid4()))
            status, _ = await line.ask(request)
            self.answers[status] += 1
            if self.answers.total() >= WARM:
                self.warm.set()
            if status == BUSY:
                # Sooner than Retry-After says: this is a flood.
                await trio.sleep(PAUSE_S)


async def _call(line: Line, data: bytes) -> Any:
    status, body = await line.ask(data)
    assert status < 300, body
    return json.loads(body)


async def _let_in(site: Site, token: str, line: Line, flood: Flood) -> list[int]:
    """How many webhooks were let in during each call of a runner that leases, renews and reports."""
    counts = []

    async def call(data: bytes) -> Any:
        before = flood.answers[202]
        answer = await _call(line, data)
        counts.append(flood.answers[202] - before)
        return answer

    while flood.left and len(counts) < 3 * RUNS:
        [lease] = held(token, await call(poll(site, token, wait_ms=30_000)))
        await call(renew(site, lease))
        await call(report(site, lease))
    return counts


async def test_a_runner_s_calls_are_answered_before_the_webhooks_that_flood_in(tmp_path: Path) -> None:
    async with (
        open_server(tmp_path, "--port", "0", "--runners", "0", "--busy-at", BUSY_AT) as server,
        AsyncExitStack() as stack,
    ):
        site = site_of(server)
        streams = [await trio.open_tcp_stream(*site.address) for _ in range(1 + SENDERS)]
        runner, *senders = [Line(await stack.enter_async_context(stream)) for stream in streams]
        await _call(runner, keep_secret(site))
        made = [await _call(runner, create_agent(site, f"busy-{number}")) for number in range(AGENTS)]
        enrolment = (await _call(runner, mint_enrolment(site)))["token"]
        token = (await _call(runner, enrol(site, enrolment, "busy", 1)))["runner_token"]
        flood = Flood([delivery(site, one["zombie_id"], payload()) for one in made])
        async with trio.open_nursery() as nursery:
            for line in senders:
                nursery.start_soon(flood.send, line)
            await flood.warm.wait()
            let_in = await _let_in(site, token, runner, flood)
            nursery.cancel_scope.cancel()

    figures = {"let in during a call": let_in, "answers": dict(flood.answers)}
    sys.stdout.write(f"flood {json.dumps(figures)}\n")

    assert set(flood.answers) <= {202, BUSY}
    assert len(let_in) >= 3
    assert median(let_in) <= FEW
