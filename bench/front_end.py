"""What the front end spends on one request, in this process: no socket, no database, nobody else at work.

A connection is given the bytes of a request and gives those of its answer. Between them are the parser, the
gateway, the actor, and storage in memory. The least of many short runs is told, since what else the machine
does only ever adds. To compare releases, run this file in the checkout of each, in turns.
"""

import hashlib
import hmac
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import orjson
import trio
from prometheus_client import CollectorRegistry

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that the file also runs by itself

from bench import harness, machine
from bench.product import USAGE, payload
from bench.wire import post_json, request
from sexton_http.app import create_app
from sexton_http.wire.date_header import DateHeader
from sexton_http.wire.hang_ups import HangUps
from sexton_http.wire.http1 import Http1Connection
from sexton_http.wire.transport import FRAME_BYTES, Ends
from tests.worlds.http import HttpWorld, open_http_world
from tests.worlds.samples import SECRET

HOST = "127.0.0.1:8080"
REQUESTS = 100
"""A run; short, so that some of them are not disturbed."""
RUNS = harness.size("RUNS", 60)
BATCH = 64


class Fed:
    """A transport that gives one request after the other, and keeps the last answer."""

    secure: ClassVar[bool] = False
    piece_bytes: ClassVar[int] = FRAME_BYTES

    def __init__(self, make: Callable[[], bytes], end: socket.socket) -> None:
        """``end`` stands for the socket; nothing comes by it."""
        self._make = make
        self._left = REQUESTS
        self.descriptor = end.fileno()
        self.answer = b""

    def ends(self) -> Ends:
        return ("127.0.0.1", 5000), ("127.0.0.1", 8080)

    async def receive(self) -> bytes:
        await trio.lowlevel.checkpoint()
        self._left -= 1
        return self._make() if self._left >= 0 else b""

    def send_now(self, data: bytes) -> bool:
        self.answer = data
        return True

    def send_pieces_now(self, pieces: Sequence[bytes]) -> bool:
        return self.send_now(b"".join(pieces))

    async def flush(self) -> None:
        raise AssertionError("nothing is left to send")

    def finish(self) -> None:
        return

    async def discard(self) -> bool:
        return False

    async def close(self) -> None:
        return


async def requests_of(world: HttpWorld) -> dict[str, Callable[[], bytes]]:
    """To each name, what makes the next request."""
    zombie, token, lease = await world.working()
    held = {"lease_id": lease["lease_id"], "fencing_token": lease["fencing_token"]}
    run = {
        **held,
        "event_id": lease["event"]["event_id"],
        "outcome": "processed",
        "response_text": "Done.",
        "evidence": {"checked": 1},
        **USAGE,
        "telemetry": {"wall_ms": 1},
    }
    body, number = orjson.dumps(payload()), count()
    signature = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    path = zombie["webhook_urls"]["github"].removeprefix(world.base_url)

    def webhook() -> bytes:
        return request(
            "POST",
            path,
            host=HOST,
            body=body,
            x_github_event="workflow_run",
            x_github_delivery=f"d-{next(number) % 16}",
            x_hub_signature_256=f"sha256={signature}",
        )

    def posted(path: str, value: dict[str, Any]) -> Callable[[], bytes]:
        data = post_json(path, value, host=HOST, token=token)
        return lambda: data

    me = "/v1/runners/me"
    health = request("GET", "/healthz", host=HOST)
    return {
        "health": lambda: health,
        "renewal": posted(f"{me}/leases/{held['lease_id']}/renew", USAGE),
        f"{BATCH} renewals of one lease": posted(
            f"{me}/leases:renew", {"leases": [{**held, **USAGE}] * BATCH}
        ),
        "poll that finds nothing": posted(f"{me}/leases", {"wait_ms": 0}),
        "webhook, a repeat": webhook,
        # The last: it ends the lease, and each after the first is known again.
        "report, a repeat": posted(f"{me}/reports", run),
    }


async def measure() -> dict[str, Any]:
    figures = []
    async with open_http_world(address_rate=None) as world:
        app = create_app(replace(world.ctx, registry=CollectorRegistry()))
        date = DateHeader()
        for name, make in (await requests_of(world)).items():
            best = []
            for _ in range(RUNS):
                near, far = socket.socketpair()
                with near, far, closing(HangUps()) as hang_ups:
                    fed = Fed(make, near)
                    connection = Http1Connection(
                        app, fed, date=date, is_stopping=lambda: False, hang_ups=hang_ups
                    )
                    began = time.process_time()
                    await connection.run()
                    best.append(1e6 * (time.process_time() - began) / REQUESTS)
                assert fed.answer.startswith(b"HTTP/1.1 20"), fed.answer
            figures.append(harness.Figure(name, harness.once(min(best)), "µs/request"))
    return harness.report("front_end", machine.describe(), figures)


def run() -> dict[str, Any]:
    return trio.run(measure)


if __name__ == "__main__":
    print(harness.line(run()))
