"""Requests that are sent away before a parser has seen them: which those are, and what they are told."""

from random import Random
from typing import Any

import pytest
import trio

from sexton_http.answers import Answer
from sexton_http.wire.gatekeeper import Prepared
from sexton_http.wire.http1_parser import Parser
from sexton_http.wire.tls import Tls
from sexton_http.wire.whole_request import MAX_HEAD, MAX_LINES, whole_request
from tests.thorough import examples
from tests.worlds.asgi_server import Reader, answer, dial, serving

HEAD = b"POST /shut?a=b HTTP/1.1\r\nHost: x:80\r\nUser-Agent: GitHub-Hookshot/1\r\nContent-Length: 4\r\n\r\n"
WHOLE = HEAD + b"body"
PIECES = (
    *(bytes([one]) for one in range(256)),
    b"\r\n",
    b"\r\n\r\n",
    b"\r\nHost: y",
    b"\r\nContent-Length: 4",
    b"\r\nContent-Length: 04",
    b"\r\ncontent-length:4",
    b"\r\nContent-Length : 4",
    b"\r\nTransfer-Encoding: chunked",
    b"\r\ntransfer-encoding:\tchunked",
    b"\r\nConnection: close",
    b"\r\nConnection: keep-alive, close",
    b"\r\nExpect: 100-continue",
    b"\r\nUpgrade: h2c",
    b"\r\n folded: line",
    b"\r\n\tfolded",
    b"\n",
    b" ",
    b"%2e",
    b"HTTP/1.0",
    WHOLE,
)


def mutated(rng: Random) -> bytes:
    """A request with some bytes or headers put in, taken out or replaced."""
    data = WHOLE
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
        begin = rng.randrange(len(data) + 1)
        end = min(len(data), begin + rng.choice((0, 0, 0, 1, 1, 2, 12)))
        data = data[:begin] + rng.choice(PIECES) + data[end:]
    return data


def test_what_is_read_without_the_parser_is_one_whole_request_to_the_parser_too() -> None:
    rng, read = Random(7), 0
    for _ in range(examples(6_000)):
        data = mutated(rng)
        head = whole_request(data, "::1")
        if head is None:
            continue
        read += 1
        parser = Parser()
        parser.feed(data)

        assert not parser.broken, data
        assert parser.is_between, data
        [request] = parser.requests
        assert request.complete, data
        assert request.keep_alive, data
        assert not request.awaits_go, data
        assert (request.method, request.path, request.query) == (head.method, head.path, head.query), data
        assert dict(request.headers) == head.headers, data

    assert read > 100, "most is left to the parser, and not all"


LEFT = {
    "a part of one": WHOLE[:-1],
    "two of them": WHOLE + WHOLE,
    "in chunks": b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "the last of its connection": HEAD.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") + b"body",
    "of HTTP/1.0": WHOLE.replace(b"HTTP/1.1", b"HTTP/1.0"),
    "without a body in its answer": WHOLE.replace(b"POST", b"HEAD"),
    "without a host": WHOLE.replace(b"Host", b"Most"),
    "a head too long": WHOLE.replace(b"Hookshot", b"x" * MAX_HEAD),
    "too many headers": b"GET / HTTP/1.1\r\nHost: x"
    + b"".join(b"\r\na%d:" % n for n in range(MAX_LINES))
    + b"\r\n\r\n",
    "only blanks": b"GET / HTTP/1.1\r\nHost:" + b" " * 65_000 + b"\x00\r\n\r\n",
}


@pytest.mark.parametrize("data", LEFT.values(), ids=LEFT)
def test_all_that_is_not_plain_is_left_to_the_parser(data: bytes) -> None:
    assert whole_request(WHOLE, "") is not None
    assert whole_request(data, "") is None


class Shut:
    """An app that turns ``/shut`` away, by its bytes where they are whole; counts how it was asked."""

    def __init__(self) -> None:
        self.by_bytes = self.by_head = self.ran = 0

    def refuse_bytes(self, data: bytes, client: str) -> Prepared | None:
        head = whole_request(data, client)
        if head is None or head.path != "/shut":
            return None
        self.by_bytes += 1
        return Prepared(b"HTTP/1.1 503 Service Unavailable\r\n", b"content-length: 5\r\n\r\nlater")

    def refuse_early(self, scope: dict[str, Any]) -> Answer | None:
        if scope["path"] != "/shut":
            return None
        self.by_head += 1
        return Answer(503, (), b"later")

    async def __call__(self, _scope: dict[str, Any], _receive: Any, send: Any) -> None:
        self.ran += 1
        await answer(send, 200, b"taken")


async def test_a_whole_request_is_sent_away_unparsed_and_its_connection_goes_on(tls: Tls | None) -> None:
    app, answers = Shut(), list[tuple[int, bytes, bytes]]()
    opened = b"GET /open HTTP/1.1\r\nHost: x\r\n\r\n"
    sent = [WHOLE, WHOLE, opened, WHOLE + WHOLE + opened, WHOLE]
    async with serving(app, tls=tls) as doors, await dial(doors) as stream:
        reader = Reader(stream)
        for data in sent:
            await stream.send_all(data)
            answers += [await reader.answer() for _ in range(data.count(b" HTTP/1.1\r\n"))]
        # In parts: once the parser has begun with a request it also ends it.
        await stream.send_all(WHOLE[:30])
        await trio.testing.wait_all_tasks_blocked(0.05)
        await stream.send_all(WHOLE[30:])
        answers.append(await reader.answer())

    assert [status for status, _, _ in answers] == [503, 503, 200, 503, 503, 200, 503, 503]
    assert all(b"\r\ndate: " in head for _, head, _ in answers)
    assert {body for _, _, body in answers} == {b"later", b"taken"}
    assert (app.by_bytes, app.by_head, app.ran) == (3, 3, 2)
