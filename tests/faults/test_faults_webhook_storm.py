"""A storm of webhooks with repeats, the server killed in its midst: what was promised is kept, once.

The size is small by default; ``SEXTON_STORM=50000`` is the evidence run.
"""

import json
import random
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import trio

from bench.product import Delivery, Site, create_agent, delivery, keep_secret, payload
from tests.thorough import amount
from tests.worlds.raw_client import Gone, Line, site_of
from tests.worlds.server_process import open_server

SIZE = amount(800, 2000, variable="SEXTON_STORM")
"""Different deliveries."""
REPEATS = 0.1
SENDERS = 32
AGENTS = 4
PAGE = 200
BUSY = 503
PAUSE_S = 0.05


class Storm:
    """What is to be sent, and what was promised."""

    def __init__(self, site: Site, zombie_ids: list[str], seed: int) -> None:
        self._random = random.Random(seed)
        self._zombie_ids = zombie_ids
        self._signed: list[Delivery] = []
        self.aim(site)
        self._names = [str(uuid.UUID(int=self._random.getrandbits(128))) for _ in range(SIZE)]
        self._next = 0
        self.open: set[int] = set()
        """Sent, and not answered: the sender does not know."""
        self.promised: dict[int, str] = {}
        self.answers: Counter[int] = Counter()
        self.half = trio.Event()

    def aim(self, site: Site) -> None:
        """At the server as it lives now: its port may be another."""
        self._signed = [
            delivery(site, zombie_id, payload(number)) for number, zombie_id in enumerate(self._zombie_ids)
        ]

    def name(self, number: int) -> str:
        return self._names[number]

    def _request(self, number: int) -> bytes:
        return self._signed[number % len(self._signed)].with_id(self._names[number])

    def _numbers(self) -> Iterator[int]:
        """New ones, and one in ten that was sent before."""
        while self._next < SIZE:
            number = self._next
            self._next += 1
            yield number
            if self._random.random() < REPEATS / (1 - REPEATS):
                yield self._random.randrange(self._next)

    async def send(self, line: Line) -> None:
        for number in self._numbers():
            await self._send_one(line, number)

    async def send_again(self, line: Line, numbers: list[int]) -> None:
        """As senders do who had no answer."""
        while numbers:
            await self._send_one(line, numbers.pop())

    async def _send_one(self, line: Line, number: int) -> None:
        self.open.add(number)
        status, body = await line.ask(self._request(number))
        self.answers[status] += 1
        while status == BUSY:
            # Sooner than Retry-After says: this storm is meant to be one.
            await trio.sleep(PAUSE_S)
            status, body = await line.ask(self._request(number))
            self.answers[status] += 1
        assert status in {200, 202}, (status, body)
        event_id = json.loads(body)["event_id"]
        assert self.promised.setdefault(number, event_id) == event_id, "one delivery, two events"
        self.open.discard(number)
        if len(self.promised) >= SIZE // 2:
            self.half.set()


async def _lines(site: Site, work: Any) -> None:
    """All senders at once; one whose server goes away stops."""

    async def sender() -> None:
        try:
            stream = await trio.open_tcp_stream(*site.address)
            async with stream:
                await work(Line(stream))
        except (Gone, OSError):
            return

    async with trio.open_nursery() as nursery:
        for _ in range(SENDERS):
            nursery.start_soon(sender)


async def _set_up(site: Site) -> list[str]:
    async with await trio.open_tcp_stream(*site.address) as stream:
        line = Line(stream)
        assert (await line.ask(keep_secret(site)))[0] == 201
        made = [await line.ask(create_agent(site, f"storm-{number}")) for number in range(AGENTS)]
        return [json.loads(body)["zombie_id"] for _, body in made]


async def _history(site: Site) -> list[tuple[str, str]]:
    """Event ids and the senders' own, of all that is kept."""
    kept: list[tuple[str, str]] = []
    cursor = ""
    async with await trio.open_tcp_stream(*site.address) as stream:
        line = Line(stream)
        while True:
            path = f"{site.workspace}/events?limit={PAGE}{cursor}"
            status, body = await line.ask(site.get(path))
            assert status == 200, body
            page = json.loads(body)
            kept += [(item["event_id"], item["source_event_id"]) for item in page["items"]]
            if page["next_cursor"] is None:
                return kept
            cursor = f"&cursor={page['next_cursor']}"


async def test_a_storm_of_webhooks_over_a_kill_is_kept_exactly_once(tmp_path: Path) -> None:
    async with open_server(tmp_path, "--port", "0", "--runners", "0", "--busy-at", "10") as server:
        site = site_of(server)
        storm = Storm(site, await _set_up(site), seed=7)
        began = time.perf_counter()

        async def kill() -> None:
            await storm.half.wait()
            server.kill()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(kill)
            await _lines(site, storm.send)
        before_s, before = time.perf_counter() - began, len(storm.promised)
        unknown = sorted(storm.open)
        await server.start()
        site = site_of(server)
        kept_before = await _history(site)
        _hold_promises(storm, kept_before)
        storm.aim(site)
        again = list(unknown)
        began = time.perf_counter()
        await _lines(site, lambda line: storm.send_again(line, again))
        await _lines(site, storm.send)
        after_s = time.perf_counter() - began
        kept = await _history(site)
        _hold_promises(storm, kept)
        assert len(storm.promised) == len(kept) == SIZE

        figures = {
            "deliveries": SIZE,
            "answers": dict(storm.answers),
            "promised_at_the_kill": before,
            "unknown_at_the_kill": len(unknown),
            "kept_of_the_unknown": len(kept_before) - before,
            "per_second_before": round(before / before_s),
            "per_second_after": round((SIZE - before) / after_s),
            "kept": len(kept),
        }
        sys.stdout.write(f"storm {json.dumps(figures)}\n")


def _hold_promises(storm: Storm, kept: list[tuple[str, str]]) -> None:
    by_id = Counter(event_id for event_id, _ in kept)
    by_delivery = Counter(source_id for _, source_id in kept)
    assert {by_id[event_id] for event_id in storm.promised.values()} <= {1}, "a promise was broken"
    assert set(by_delivery.values()) <= {1}, "a delivery was kept twice"
    ids = {source_id: event_id for event_id, source_id in kept}
    assert all(ids[storm.name(number)] == event_id for number, event_id in storm.promised.items())
