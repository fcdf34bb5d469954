"""HTTP/1.1 and HTTP/2 take the same requests, refuse the same and answer alike; and so does Hypercorn."""

import json
import math
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from http import HTTPStatus
from socket import create_server
from typing import Any, NamedTuple

import pytest
import structlog.testing
import trio
from hypercorn.config import Config
from hypercorn.trio import serve as hypercorn_serve
from prometheus_client import CollectorRegistry

from sexton_http.app import create_app
from sexton_http.wire import timeouts
from sexton_http.wire.tls import Tls
from tests.worlds.asgi_server import Reader, answer, dial, dial_port, serving
from tests.worlds.http import HttpWorld
from tests.worlds.http2_client import DATA, END_STREAM, PREFACE, Field, Http2Client, frame, headers, settings

VERSIONS = ["HTTP/1.1", "HTTP/2"]
JSON = (b"content-type", b"application/json")
PIECE = 16_384
HUGE = b"99999999"
"""The length of a body that is never sent."""


class Asked(NamedTuple):
    method: bytes = b"GET"
    path: bytes = b"/a"
    fields: Sequence[Field] = ()
    host: bytes = b"x"
    body: bytes = b""


class Answered(NamedTuple):
    status: str
    """Of the first answer that is final; or how the stream or the connection ended."""
    fields: dict[bytes, bytes]
    body: bytes

    @property
    def is_refusal(self) -> bool:
        """The request was turned down by whoever read the connection."""
        return self.status in {"400", "reset PROTOCOL_ERROR"}


async def ask(port: int, version: str, asked: Asked) -> Answered:
    """On a connection of its own, over a plain socket."""
    async with await dial_port(port) as stream:
        if version == "HTTP/1.1":
            lines = [b"%b %b HTTP/1.1" % asked[:2], b"Host: " + asked.host]
            lines += [b"%b: %b" % field for field in asked.fields]
            await stream.send_all(b"\r\n".join(lines) + b"\r\n\r\n" + asked.body)
            status, head, body = await Reader(stream).answer()
            fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
            return Answered(str(status), fields, body)
        client = Http2Client(stream)
        pseudo = [
            (b":method", asked.method),
            (b":scheme", b"http"),
            (b":path", asked.path),
            (b":authority", asked.host),
        ]
        said = headers(1, [*pseudo, *asked.fields], end=False)
        # A head that is too large for one frame goes on in the next.
        first, rest = said[9 : 9 + PIECE], said[9 + PIECE :]
        await client.send(PREFACE, settings(), frame(1, 0 if rest else 4, 1, first))
        while rest:
            part, rest = rest[:PIECE], rest[PIECE:]
            await client.send(frame(9, 0 if rest else 4, 1, part))
        if (b"content-length", HUGE) not in asked.fields:
            await client.send(frame(DATA, END_STREAM, 1, asked.body))
        status2, body = await client.answer(1)
        return Answered(status2, client.heads.get(1, {}), body)


class Fine:
    """Answers 200, and counts."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self, _scope: dict[str, Any], _receive: Any, send: Any) -> None:
        self.asked += 1
        await answer(send, 200, b"taken")


TAKEN = {
    "nothing special": Asked(),
    "a query": Asked(path=b"/a?b=%20c"),
    "a host with a port": Asked(host=b"a.b-c:80"),
    "an address of IPv6": Asked(host=b"[::1]:80"),
    "a head of nearly 64 KiB": Asked(fields=[(b"x", b"y" * 65_000)]),
    "255 headers": Asked(fields=[(b"x", b"1")] * 255),
    "the server itself": Asked(b"OPTIONS", b"*"),
}
REFUSED = {
    "a method that is none": Asked(b"FOO"),
    "a method in small letters": Asked(b"get"),
    "an address beyond ASCII": Asked(path=b"/\xc3\xa9"),
    "an address without a slash": Asked(path=b"a"),
    "a head over 64 KiB": Asked(fields=[(b"x", b"y" * 33_250)] * 2),
    "a head of many over 64 KiB": Asked(fields=[(b"x", b"y" * 500)] * 140),
    "257 headers": Asked(fields=[(b"x", b"1")] * 257),
    "two hosts": Asked(fields=[(b"host", b"y")]),
    "two lengths": Asked(fields=[(b"content-length", b"1"), (b"content-length", b"2")]),
    "a negative length": Asked(fields=[(b"content-length", b"-1")]),
    "a length without end": Asked(fields=[(b"content-length", b"9" * 5000)]),
    "a coding": Asked(fields=[(b"transfer-encoding", b"gzip, chunked")]),
    **{
        f"the host {host.decode()}": Asked(host=host)
        for host in (b"a b", b"a/b", b"user@a", b"a:b", b"[::1", b"a,b:c", b"a?b", b"a#b", b"a:123456")
    },
}


async def test_the_same_heads_are_taken_and_the_same_refused() -> None:
    app = Fine()
    wrong: list[str] = []
    async with serving(app) as doors:
        for version in VERSIONS:
            for name, asked in TAKEN.items():
                if (got := await ask(doors.port, version, asked)).status != "200":
                    wrong.append(f"{version}, {name}: {got.status}")
            taken, app.asked = app.asked, 0
            for name, asked in REFUSED.items():
                if not (got := await ask(doors.port, version, asked)).is_refusal:
                    wrong.append(f"{version}, {name}: {got.status}")
            assert (taken, app.asked, wrong) == (len(TAKEN), 0, [])


def requests(world: HttpWorld, name: str) -> dict[str, Asked]:
    """What is asked of the product; ``name`` is that of the workspace that is made."""
    bearer = (b"authorization", b"Bearer " + world.api_key.encode())
    large = (b"content-length", HUGE)
    path, keys = b"/v1/workspaces", b"/v1/api-keys"
    body = b'{"name":"%b"}' % name.encode()
    return {
        "health": Asked(path=b"/healthz"),
        "a list": Asked(path=keys, fields=[bearer]),
        "nobody": Asked(path=keys),
        "two tokens": Asked(path=keys, fields=[bearer, bearer]),
        "no such route": Asked(path=b"/v1/nothing"),
        "no such method": Asked(b"PUT", path, [bearer]),
        "a body that is no JSON": Asked(b"POST", path, [bearer, JSON, (b"content-length", b"1")], body=b"{"),
        "a workspace": Asked(
            b"POST", path, [bearer, JSON, (b"content-length", b"%d" % len(body))], body=body
        ),
        "a body that says that it is too large": Asked(b"POST", path, [bearer, JSON, large]),
        "too large, on a hot route": Asked(b"POST", b"/v1/runners/me/reports", [bearer, JSON, large]),
    }


EACH_TIME = {b"date", b"connection", b"transfer-encoding", b"server", b":status"}
"""Headers that one version or server has and another has not."""


def gist(got: Answered) -> tuple[str, list[bytes], Any]:
    told = got.body if b"json" in got.fields.get(b"content-type", b"") else b"null"
    problem = json.loads(told) if told else None
    code = problem.get("error_code") if isinstance(problem, dict) else None
    return got.status, sorted(got.fields.keys() - EACH_TIME), code


@asynccontextmanager
async def hypercorn_serving(app: Any) -> AsyncIterator[int]:
    """The port of plain Hypercorn, which knows nothing of our connections."""
    stop = trio.Event()
    with create_server(("127.0.0.1", 0)) as listener:
        config = Config()
        config.bind = [f"fd://{listener.fileno()}"]
        config.errorlog = None
        config.graceful_timeout = 0.1
        async with trio.open_nursery() as nursery:

            async def run(task_status: trio.TaskStatus[Any]) -> None:
                await hypercorn_serve(app, config, shutdown_trigger=stop.wait, task_status=task_status)

            await nursery.start(run)
            try:
                yield listener.getsockname()[1]
            finally:
                stop.set()
        listener.detach()


async def test_the_product_answers_alike_over_both_and_on_another_server(world: HttpWorld) -> None:
    app = create_app(replace(world.ctx, registry=CollectorRegistry()))
    answers: dict[str, dict[str, Any]] = {}
    async with serving(app) as doors:
        for version in VERSIONS:
            asked = requests(world, version[-1])
            answers[version] = {
                name: gist(await ask(doors.port, version, one)) for name, one in asked.items()
            }
    assert answers["HTTP/2"] == answers["HTTP/1.1"]
    assert {got[0] for got in answers["HTTP/2"].values()} == {"200", "201", "400", "401", "404", "405", "413"}

    async with hypercorn_serving(app) as port:
        for name, one in requests(world, "hypercorn").items():
            # Whether a body that is held back is waited for is the server's own affair.
            if (b"content-length", HUGE) not in one.fields:
                assert gist(await ask(port, "HTTP/2", one)) == answers["HTTP/2"][name], name


async def test_a_body_that_is_announced_is_asked_for_or_refused(
    world: HttpWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeouts, "DRAIN_S", math.inf)
    app = create_app(replace(world.ctx, registry=CollectorRegistry()))
    body = b'{"name":"patient"}'
    fields = [
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", b"/v1/workspaces"),
        (b":authority", b"x"),
        JSON,
        (b"expect", b"100-continue"),
        (b"content-length", b"%d" % len(body)),
    ]
    bearer = (b"authorization", b"Bearer " + world.api_key.encode())
    async with serving(app) as doors, await dial(doors) as stream:
        client = Http2Client(stream)
        await client.send(PREFACE, settings(), headers(1, [*fields, bearer], end=False))
        while client.status(1) != "100":
            assert await client.frame() is not None
        await client.send(frame(DATA, END_STREAM, 1, body))
        assert (await client.answer(1))[0] == "201"

        # Who may not is not told to send it, and is told to leave it.
        await client.send(headers(3, fields, end=False))
        frames = await client.until(lambda got: got.outcome() != "")
        assert (client.status(3), frames[-1].outcome()) == ("401", "reset NO_ERROR")


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_secret_in_an_address_is_not_logged_when_a_request_fails(version: str) -> None:
    async def broken(_scope: Any, _receive: Any, _send: Any) -> None:
        raise RuntimeError("handler")

    with structlog.testing.capture_logs() as logged:
        async with serving(broken) as doors:
            got = await ask(doors.port, version, Asked(path=b"/v1/webhooks/a/zwh_secret"))
            assert got.status == "500"

    assert [entry["path"] for entry in logged if entry["event"] == "request_failed"] == ["/v1/webhooks/a/..."]


async def test_a_status_line_ends_in_its_phrase(tls: Tls | None) -> None:
    """Some clients count an answer without one as failed."""

    async def as_asked(scope: dict[str, Any], _receive: Any, send: Any) -> None:
        await answer(send, int(scope["path"][1:]), b"")

    wrong: list[bytes] = []
    async with serving(as_asked, tls=tls) as doors, await dial(doors) as stream:
        reader = Reader(stream)
        for status in (*(one for one in HTTPStatus if one >= HTTPStatus.OK), 299, 499, 599):
            await stream.send_all(b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n" % status)
            _, head, _ = await reader.answer()
            first = head.partition(b"\r\n")[0]
            if not first.startswith(b"HTTP/1.1 %d " % status) or len(first.split(b" ", 2)[2]) < 2:
                wrong.append(first)

        assert not wrong

        await stream.send_all(b"FOO / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await reader.answer())[1].startswith(b"HTTP/1.1 400 Bad Request\r\n")
