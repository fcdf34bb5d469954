"""Connections of a runner come to one worker, whoever accepts them; one that stops passes its own on."""

import os
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio
from prometheus_client import CollectorRegistry, Counter as Count, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from sexton_http.gateway.shared_limits import SharedGcra, make_table
from sexton_http.gateway.worker_metrics import WorkerMetrics
from sexton_http.wire.relay import Relay
from sexton_http.wire.server import BACKLOG, Doors, serve
from sexton_http.wire.tls import Tls
from sexton_http.wire.worker_board import Row, WorkerBoard, WorkerState
from sexton_http.wire.worker_mail import make_inbox
from tests.patience import PATIENCE_S
from tests.worlds.asgi_server import answer
from tests.worlds.certificates import make_certificate

PREFIX = b"zrn_"
WORKERS = 3
RUNNERS = [f"zrn_{number}" for number in range(8)]


@dataclass
class Workers:
    """Workers of one server, all in this process: each answers with its number."""

    port: int
    board: WorkerBoard
    relays: list[Relay]
    stops: list[trio.Event]
    scheme: str
    ended: Counter[int] = field(default_factory=Counter)

    @property
    def base_url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def stop(self, slot: int) -> None:
        """Have it drain, as a worker does that is told to."""
        self.board.beat(slot, WorkerState.DRAINING)
        self.stops[slot].set()

    def client(self, *, http2: bool = False) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(base_url=self.base_url, verify=False, http1=not http2, http2=http2)

    @property
    def handed(self) -> Counter[str]:
        return sum((relay.handed for relay in self.relays), Counter())


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def app_of(slot: int) -> Callable[..., Any]:
    async def app(scope: dict[str, Any], receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
        body = b""
        while (message := await receive())["type"] == "http.request":
            body += message["body"]
            if not message["more_body"]:
                break
        said = f"{slot} {scope['scheme']} {scope['client'][0]} {len(body)}"
        await answer(send, 200, said.encode())

    return app


@asynccontextmanager
async def open_workers(tls: Tls | None = None, count: int = WORKERS) -> AsyncIterator[Workers]:
    board = WorkerBoard.create(count)
    inboxes = [make_inbox() for _ in range(count)]
    putting = [inbox.putting for inbox in inboxes]
    relays = [Relay(slot, board, inbox.reading, putting, PREFIX) for slot, inbox in enumerate(inboxes)]
    door = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
    stops = [trio.Event() for _ in range(count)]
    name = door.getsockname()
    scheme = "http" if tls is None else "https"

    def doors() -> Doors:
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(door.dup()))
        return Doors([listener], name[0], name[1], tls is not None)

    async def beat() -> None:
        while True:
            for slot, stop in enumerate(stops):
                board.beat(slot, WorkerState.DRAINING if stop.is_set() else WorkerState.SERVING)
            await trio.sleep(0.05)

    workers = Workers(name[1], board, relays, stops, scheme)

    async def work(slot: int) -> None:
        await serve(app_of(slot), doors(), stop=stops[slot], tls=tls, relay=relays[slot], grace_s=1.0)
        workers.ended[slot] += 1

    try:
        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(beat)
                for slot in range(count):
                    board.put(slot, Row(WorkerState.STARTING, 0.0, os.getpid(), 0))
                    nursery.start_soon(work, slot)
                while len(board.up()) < count:
                    await trio.sleep(0.01)
                yield workers
                nursery.cancel_scope.cancel()
    finally:
        door.close()
        board.close()
        for inbox in inboxes:
            for end in inbox:
                end.close()


async def slots_of(workers: Workers, *, http2: bool, body: bytes) -> dict[str, set[str]]:
    """Who answered each runner, over several connections."""
    found: dict[str, set[str]] = {token: set() for token in RUNNERS}
    for _ in range(4):
        for token in RUNNERS:
            async with workers.client(http2=http2) as client:
                for _ in range(2):
                    reply = await client.post("/a", headers=bearer(token), content=body)
                    slot, *rest = reply.text.split()
                    assert rest == [workers.scheme, "127.0.0.1", str(len(body))]
                    found[token].add(slot)
    return found


@pytest.mark.parametrize(("secure", "http2"), [(False, False), (True, False), (True, True), (False, True)])
@pytest.mark.parametrize("size", [0, 300_000])
async def test_a_runner_is_always_answered_by_the_same_worker(
    tmp_path: Path, *, secure: bool, http2: bool, size: int
) -> None:
    tls = make_certificate(tmp_path, "127.0.0.1") if secure else None
    async with open_workers(tls) as workers:
        found = await slots_of(workers, http2=http2, body=b"x" * size)

        assert {len(slots) for slots in found.values()} == {1}, found
        assert len(set.union(*found.values())) > 1
        assert workers.handed["runner"] > 0


async def test_a_worker_that_is_silent_is_handed_nothing() -> None:
    async with open_workers() as workers:
        found = await slots_of(workers, http2=False, body=b"")
        token, [home] = next(iter(found.items()))
        workers.stop(int(home))

        async with workers.client() as client:
            slots = {(await client.get("/", headers=bearer(token))).text.split()[0] for _ in range(5)}

        assert len(slots) == 1
        assert slots != {home}


async def test_a_worker_that_stops_cuts_no_connection_that_it_can_pass_on() -> None:
    """Each client has one connection: a second one would show at its port."""
    async with open_workers() as workers:
        clients: list[trio.SocketStream] = []
        for _ in range(12):
            stream = await trio.open_tcp_stream("127.0.0.1", workers.port)
            clients.append(stream)
        answered = [await ask(stream, RUNNERS[n % len(RUNNERS)]) for n, stream in enumerate(clients)]

        passed = 0
        for slot in range(WORKERS - 1):
            passed += answered.count(slot)
            workers.stop(slot)
            while not workers.ended[slot]:
                await trio.sleep(0.01)
            answered = [await ask(stream, RUNNERS[n % len(RUNNERS)]) for n, stream in enumerate(clients)]
            assert set(answered) <= set(range(slot + 1, WORKERS))
        assert workers.handed["drain"] == passed > 0

        for stream in clients:
            await stream.aclose()


async def ask(stream: trio.SocketStream, token: str) -> int:
    """The number of the worker that answers on this connection."""
    await stream.send_all(f"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    data = b""
    while not data.partition(b"\r\n\r\n")[2]:
        more = await stream.receive_some()
        assert more, "the connection was cut"
        data += more
    assert b"connection: close" not in data
    return int(data.partition(b"\r\n\r\n")[2].split()[0])


async def test_one_scrape_adds_up_all_workers_and_what_ended_ones_counted() -> None:
    async with open_workers() as workers:
        files = [os.memfd_create("metrics") for _ in range(WORKERS)]
        counts = []
        for relay in workers.relays:
            registry = CollectorRegistry()
            hits = Count("hits", "Hits", registry=registry)
            hits.inc(10.0**relay.slot)
            counts.append(WorkerMetrics(registry, relay, files))

        assert total(await counts[0].text(generate_latest, by_worker=False)) == [111.0]
        assert sorted(total(await counts[1].text(generate_latest, by_worker=True))) == [1.0, 10.0, 100.0]

        # Worker 2 ends, and another process takes its place: what was shown is not taken back.
        workers.stop(2)
        assert total(await counts[0].text(generate_latest, by_worker=False)) == [111.0]

        registry = CollectorRegistry()
        Count("hits", "Hits", registry=registry).inc(5)
        counts[2] = WorkerMetrics(registry, workers.relays[2], files)
        assert total(await counts[2].text(generate_latest, by_worker=False)) == [116.0]

        for file in files:
            os.close(file)


def total(text: bytes) -> Sequence[float]:
    families = text_string_to_metric_families(text.decode())
    return [s.value for family in families for s in family.samples if s.name == "hits_total"]


def test_a_rate_holds_over_all_workers() -> None:
    file = make_table()
    now = [100.0]
    workers = [SharedGcra(file, lambda: now[0]) for _ in range(3)]
    key, other = ("address", "192.0.2.1"), ("address", "192.0.2.2")

    admitted = [workers[turn % 3].admit(key, 5).allowed for turn in range(30)]
    assert (sum(admitted), all(admitted[:10])) == (10, True)

    refused = workers[0].admit(key, 5)
    assert (refused.allowed, refused.wait_s, refused.remaining) == (False, 1, 0)
    assert workers[1].admit(other, 5).remaining == 9

    now[0] += 1.0
    assert sum(workers[turn % 3].admit(key, 5).allowed for turn in range(30)) == 5

    os.close(file)
