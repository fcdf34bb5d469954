"""What a request costs is counted in calls of Python: a figure that no busy machine changes."""

import os
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
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
from sexton_http.wire.http2 import Http2Connection
from sexton_http.wire.transport import FRAME_BYTES, Ends
from tests.patience import PATIENCE_S
from tests.worlds.http import HttpWorld
from tests.worlds.http2_client import (
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PREFACE,
    SETTINGS,
    WINDOW_UPDATE,
    block,
    frame,
    settings,
)

ROOM = f"{os.sep}sexton_http{os.sep}"
WARM = 5
COUNTED = 20
USAGE = {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0}


class Scripted:
    """A client that sends the same request again as soon as it has its answer, and counts calls meanwhile."""

    secure: ClassVar[bool] = False
    piece_bytes: ClassVar[int] = FRAME_BYTES

    def __init__(self, request: Callable[[int], bytes], end: socket.socket) -> None:
        """``request`` is given the number of the turn. ``end`` stands for the socket; nothing comes by it."""
        self._request = request
        self.descriptor = end.fileno()
        self._turn = 0
        self.calls = 0
        self.answer = b""
        self._answered = trio.Event()
        self._answered.set()

    def ends(self) -> Ends:
        return ("127.0.0.1", 5000), ("127.0.0.1", 8080)

    async def receive(self) -> bytes:
        if not self._answered.is_set():
            await self._answered.wait()
        self._answered = trio.Event()
        self._turn += 1
        if self._turn == WARM:
            sys.setprofile(self._note)
        if self._turn == WARM + COUNTED:
            sys.setprofile(None)
            return b""
        return self._request(self._turn)

    def _note(self, frame: FrameType, event: str, _what: Any) -> None:
        """What the front end calls, its own and others'; rounds and timers of actors are not its."""
        if event == "call":
            caller = frame.f_back
            self.calls += ROOM in frame.f_code.co_filename or (
                caller is not None and ROOM in caller.f_code.co_filename
            )

    def send_now(self, data: bytes) -> bool:
        if data[3] not in {SETTINGS, WINDOW_UPDATE}:
            self.answer = data
            self._answered.set()
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


def as_http2(request: bytes) -> Callable[[int], bytes]:
    """The same in frames, for each turn on a stream of its own."""
    head, _, body = request.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    method, path, _ = first.split(b" ")
    told = [(name, value) for name, _, value in (line.partition(b": ") for line in lines)]
    (_, authority), *rest = told
    pseudo = [(b":method", method), (b":scheme", b"http"), (b":path", path), (b":authority", authority)]
    spelled = block([*pseudo, *rest])

    def spell(turn: int) -> bytes:
        stream_id = 2 * turn - 1
        frames = frame(HEADERS, END_HEADERS if body else END_HEADERS | END_STREAM, stream_id, spelled)
        if body:
            frames += frame(DATA, END_STREAM, stream_id, body)
        return PREFACE + settings() + frames if turn == 1 else frames

    return spell


async def cost_of(world: HttpWorld, request: bytes, *, http2: bool = False) -> float:
    """Calls of Python for one request, from its bytes to those of its answer."""
    clock = trio.lowlevel.current_clock().current_time
    app = create_app(replace(world.ctx, registry=CollectorRegistry(), monotonic=clock))
    near, far = socket.socketpair()
    with near, far, closing(HangUps()) as hang_ups, trio.fail_after(PATIENCE_S):
        client = Scripted(as_http2(request) if http2 else lambda _: request, near)
        date = DateHeader()
        if http2:
            await Http2Connection(app, client, date=date, is_stopping=lambda: False).run()
        else:
            await Http1Connection(app, client, date=date, is_stopping=lambda: False, hang_ups=hang_ups).run()
    # The first field of a head without a table is its status: 200 is one byte.
    assert client.answer.startswith(b"HTTP/1.1 200 OK\r\n") or client.answer[9:10] == b"\x88", client.answer
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


async def test_a_request_that_waits_for_nothing_takes_hardly_more_calls_over_http_2(world: HttpWorld) -> None:
    health = request_of("/healthz", None)

    over_http1 = await cost_of(world, health)
    over_http2 = await cost_of(world, health, http2=True)

    assert over_http2 <= 1.2 * over_http1


async def test_a_request_that_waits_takes_hardly_more_calls_over_http_2(world: HttpWorld) -> None:
    _, token, lease = await world.working()
    renewal = request_of(f"/v1/runners/me/leases/{lease['lease_id']}/renew", token, USAGE)

    over_http1 = await cost_of(world, renewal)
    over_http2 = await cost_of(world, renewal, http2=True)

    assert over_http2 <= 1.3 * over_http1
