"""What a client is told before it has sent all, or when what it sent is no request."""

import json
import math
from typing import Any
from uuid import UUID

import pytest
import trio

from sexton_http.answers import Answer
from sexton_http.wire import timeouts
from sexton_http.wire.tls import Tls
from tests.worlds.asgi_server import Reader, dial as open_stream, serving
from tests.worlds.http import HttpWorld, open_http_world

HOST = b"Host: x\r\n"
JSON = b"Content-Type: application/json\r\n"
EXPECT = b"Expect: 100-continue\r\n"


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits for the rest of a body waits for ever: so a test that ends has seen that nobody did."""
    monkeypatch.setattr(timeouts, "DRAIN_S", math.inf)


async def dial(world: HttpWorld) -> trio.SocketStream:
    port = int(world.base_url.rpartition(":")[2])
    return await trio.open_tcp_stream("127.0.0.1", port)


async def first_answer(world: HttpWorld, sent: bytes) -> tuple[int, dict[bytes, bytes], bytes]:
    """Of a connection of its own, with the names of its headers in lower case."""
    async with await dial(world) as stream:
        await stream.send_all(sent)
        status, head, body = await Reader(stream).answer()
    return status, dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:]), body


def bearer(world: HttpWorld) -> bytes:
    return b"Authorization: Bearer " + world.api_key.encode() + b"\r\n"


MALFORMED = {
    "no host": b"GET /healthz HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "a negative length": b"POST /v1/workspaces HTTP/1.1\r\n" + HOST + b"Content-Length: -1\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "length and chunks": b"POST / HTTP/1.1\r\n"
    + HOST
    + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
    "garbage": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "no method": b"FOO /healthz HTTP/1.1\r\n" + HOST + b"\r\n",
    "an address beyond ASCII": b"GET /\xc3\xa9 HTTP/1.1\r\n" + HOST + b"\r\n",
    "a broken chunk": b"POST /v1/auth/sessions HTTP/1.1\r\n"
    + HOST
    + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
}


@pytest.mark.parametrize("sent", MALFORMED.values(), ids=MALFORMED)
async def test_bytes_that_are_no_request_are_told_so_in_a_problem_document(
    world: HttpWorld, sent: bytes
) -> None:
    status, headers, body = await first_answer(world, sent)
    assert status == 400
    assert headers[b"content-type"] == b"application/problem+json"
    assert headers[b"connection"] == b"close"

    problem = json.loads(body)
    assert problem["error_code"] == "UZ-REQ-001"
    assert UUID(problem["request_id"]) == UUID(headers[b"x-request-id"].decode())
    assert problem["docs_uri"] == f"{world.base_url}/docs/errors#UZ-REQ-001"


LARGE, SMALL = b"Content-Length: 3000000\r\n", b"Content-Length: 10\r\n"
REFUSED = {
    "too large": (b"POST /v1/workspaces", LARGE, 413),
    "too large, on a hot route": (b"POST /v1/runners/me/reports", LARGE, 413),
    "too large a webhook": (b"POST /v1/webhooks/019363b0-0000-7000-8000-00000000ffff", LARGE, 413),
    "no such route": (b"POST /v1/nothing", SMALL, 404),
    "no such method": (b"PUT /v1/workspaces", SMALL, 405),
    "no token": (b"POST /v1/workspaces", SMALL, 401),
    "no token, on a hot route": (b"POST /v1/runners/me/leases", SMALL, 401),
    "no token, in chunks": (b"POST /v1/workspaces", b"Transfer-Encoding: chunked\r\n", 401),
}


@pytest.mark.parametrize(("asked", "length", "status"), REFUSED.values(), ids=REFUSED)
async def test_who_asks_before_sending_a_body_is_refused_without_being_told_to_send_it(
    world: HttpWorld, asked: bytes, length: bytes, status: int
) -> None:
    sent = asked + b" HTTP/1.1\r\n" + HOST + JSON + EXPECT + length
    got, headers, body = await first_answer(world, sent + b"\r\n")

    assert (got, headers[b"connection"]) == (status, b"close")
    assert json.loads(body)["status"] == status


async def test_who_asks_before_sending_a_body_that_is_wanted_is_told_to_send_it(world: HttpWorld) -> None:
    async with await dial(world) as stream:
        reader = Reader(stream)
        body = b'{"name":"patient"}'
        head = b"POST /v1/workspaces HTTP/1.1\r\n" + HOST + JSON + EXPECT + bearer(world)
        await stream.send_all(head + b"Content-Length: %d\r\n\r\n" % len(body))
        assert (await reader.answer())[0] == 100

        await stream.send_all(body)
        assert (await reader.answer())[0] == 201

        # A body that is read over does not end the connection either.
        await stream.send_all(b"GET /healthz HTTP/1.1\r\n" + HOST + EXPECT + b"Content-Length: 0\r\n\r\n")
        assert (await reader.answer())[0] == 200


async def test_a_body_that_says_that_it_is_far_too_large_is_not_waited_for(world: HttpWorld) -> None:
    for path in (b"/v1/workspaces", b"/v1/runners/me/reports", b"/v1/nothing"):
        sent = (
            b"POST %b HTTP/1.1\r\n" % path + HOST + JSON + bearer(world) + b"Content-Length: 99999999\r\n\r\n"
        )
        got, headers, _ = await first_answer(world, sent)
        assert (got, headers[b"connection"]) == (404 if path == b"/v1/nothing" else 413, b"close")


async def test_a_request_has_one_token(world: HttpWorld) -> None:
    for path in (b"/v1/api-keys", b"/v1/runners/me", b"/v1/nothing"):
        sent = b"GET %b HTTP/1.1\r\n" % path + HOST + bearer(world) + bearer(world) + b"\r\n"
        got, _, body = await first_answer(world, sent)
        assert (got, json.loads(body)["error_code"]) == (400, "UZ-REQ-001")


async def test_who_asks_for_what_is_not_there_is_slowed_down() -> None:
    async with open_http_world(address_rate=1) as world:
        answers = [await world.get(path, None) for path in ("/x", "/v1/y", "/v1/nothing/here")]

    assert [answer.status_code for answer in answers] == [404, 404, 429]
    assert answers[2].json()["error_code"] == "UZ-REQ-006"
    assert answers[0].headers["ratelimit-policy"] == '"default";q=2;w=2'
    assert int(answers[2].headers["retry-after"]) >= 1


@pytest.mark.parametrize("path", ["/v1/specs", "/v1/runs/", "/v1/runs/x/y"])
async def test_who_asks_for_what_is_gone_takes_nothing_from_others_at_its_address(
    path: str,
) -> None:
    async with open_http_world(address_rate=1) as world:
        gone = [(await world.get(path, None)).status_code for _ in range(4)]

        assert gone == [410, 410, 429, 429]
        assert (await world.get("/v1/nothing", None)).status_code == 404
        assert (await world.get("/v1/workspaces/x", "zmb_t_" + "0" * 64)).status_code == 401


class Speaking:
    """An app with words for what is no request."""

    async def __call__(self, *exchange: Any) -> None:
        raise NotImplementedError

    def say_malformed(self, detail: str) -> Answer:
        return Answer(400, ((b"content-type", b"text/x"),), detail.encode())


async def test_whoever_reads_the_connection_lets_the_app_say_what_is_wrong(tls: Tls | None) -> None:
    async with serving(Speaking(), tls=tls) as doors, await open_stream(doors) as stream:
        await stream.send_all(MALFORMED["no host"])
        status, head, body = await Reader(stream).answer()

    assert (status, body.startswith((b"one Host", b"this is no request"))) == (400, True)
    assert b"content-type: text/x" in head
    assert b"connection: close" in head
