"""What a request costs is counted in calls of Python: a figure that no busy machine changes."""

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from types import FrameType
from typing import Any, ClassVar

import orjson
import pytest
import trio
from prometheus_client import CollectorRegistry

from sexton_http.app import create_app
from sexton_http.wire.date_header import DateHeader
from sexton_http.wire.hang_ups import HangUps
from sexton_http.wire.http1 import Http1Connection
from sexton_http.wire.transport import Ends
from tests.worlds.http import HttpWorld

ROOM = f"{os.sep}sexton_http{os.sep}"
WARM = 5
COUNTED = 20
USAGE = {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0}


class Scripted:
    """A client that sends the same request again as soon as it has its answer, and counts calls meanwhile."""

    secure: ClassVar[bool] = False

    def __init__(self, request: bytes, end: socket.socket) -> None:
        """``end`` stands for the socket; nothing comes by it."""
        self._request = request
        self.descriptor = end.fileno()
        self._turn = 0
        self.calls = 0
        self.answer = b""

    def ends(self) -> Ends:
        return ("127.0.0.1", 5000), ("127.0.0.1", 8080)

    async def receive(self) -> bytes:
        self._turn += 1
        if self._turn == WARM:
            sys.setprofile(self._note)
        if self._turn == WARM + COUNTED:
            sys.setprofile(None)
            return b""
        return self._request

    def _note(self, frame: FrameType, event: str, _what: Any) -> None:
        """What the front end calls, its own and others'; rounds and timers of actors are not its."""
        if event == "call":
            caller = frame.f_back
            self.calls += ROOM in frame.f_code.co_filename or (
                caller is not None and ROOM in caller.f_code.co_filename
            )

    def send_now(self, data: bytes) -> bool:
        self.answer = data
        return True

    async def flush(self) -> None:
        raise AssertionError("nothing is left to send")

    def finish(self) -> None:
        return

    async def discard(self) -> bool:
        return False

    async def close(self) -> None:
        return


@pytest.fixture(autouse=True)
def no_profile() -> Iterator[None]:
    """Whatever fails, nothing is counted any more."""
    before = sys.getprofile()
    yield
    sys.setprofile(before)


def request_of(path: str, token: str | None, value: Any = None) -> bytes:
    body = b"" if value is None else orjson.dumps(value)
    lines = [f"{'GET' if value is None else 'POST'} {path} HTTP/1.1", "host: 127.0.0.1:8080"]
    if token is not None:
        lines.append(f"authorization: Bearer {token}")
    if value is not None:
        lines += ["content-type: application/json", f"content-length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def cost_of(world: HttpWorld, request: bytes) -> float:
    """Calls of Python for one request, from its bytes to those of its answer."""
    clock = trio.lowlevel.current_clock().current_time
    app = create_app(replace(world.ctx, registry=CollectorRegistry(), monotonic=clock))
    near, far = socket.socketpair()
    with near, far, closing(HangUps()) as hang_ups, trio.fail_after(10):
        client = Scripted(request, near)
        connection = Http1Connection(
            app, client, date=DateHeader(), is_stopping=lambda: False, hang_ups=hang_ups
        )
        await connection.run()
    assert client.answer.startswith(b"HTTP/1.1 200 OK\r\n"), client.answer
    return client.calls / COUNTED


async def test_a_request_of_a_known_runner_takes_few_calls(world: HttpWorld) -> None:
    _, token, lease = await world.working()
    renew = f"/v1/runners/me/leases/{lease['lease_id']}/renew"
    entry = {"lease_id": lease["lease_id"], "fencing_token": lease["fencing_token"], **USAGE}
    run = {
        "lease_id": lease["lease_id"],
        "event_id": lease["event"]["event_id"],
        "fencing_token": lease["fencing_token"],
        "outcome": "processed",
        "evidence": {"checked": 1},
        **USAGE,
        "telemetry": {"wall_ms": 1},
    }
    costs = {
        "health": await cost_of(world, request_of("/healthz", None)),
        "renewal": await cost_of(world, request_of(renew, token, USAGE)),
        "renewals": await cost_of(
            world, request_of("/v1/runners/me/leases:renew", token, {"leases": [entry] * 64})
        ),
        "poll": await cost_of(world, request_of("/v1/runners/me/leases", token, {"wait_ms": 0})),
        "report": await cost_of(world, request_of("/v1/runners/me/reports", token, run)),
    }

    assert costs["health"] <= 95
    assert costs["renewal"] <= 150
    assert costs["report"] <= 155
    assert costs["poll"] <= 160
    # One lease 64 times: it is renewed once, and the rest is what reading and answering many costs.
    assert costs["renewals"] <= 350
