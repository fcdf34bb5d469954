"""Requests out of bytes: what two readers could read differently is refused."""

import pytest
from hypothesis import given, strategies as st

from sexton_http.wire.heads import MAX_HEAD_BYTES, MAX_HEADERS
from sexton_http.wire.http1_parser import Parser
from sexton_http.wire.whole_request import whole_request
from tests.worlds.asgi_server import Reader, dial, echo, serving

HOST = b"Host: x\r\n"
GET = b"GET /a?b=c HTTP/1.1\r\n" + HOST + b"X-One: 1\r\n\r\n"
POST = b"POST /p HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"POST /c HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Late: 1\r\n\r\n"
)
OFFER = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"

HOSTILE = {
    "both lengths": b"POST / HTTP/1.1\r\n"
    + HOST
    + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    "a negative length": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: -1\r\n\r\n",
    "a length with a sign": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: +1\r\n\r\na",
    "an endless length": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 99999999999999999999999\r\n\r\n",
    "chunked not last": b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
    "chunked misspelt": b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a chunk without a size": b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n\r\n",
    "a chunk too large": b"POST / HTTP/1.1\r\n"
    + HOST
    + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffffff\r\n",
    "a name with a blank": b"GET / HTTP/1.1\r\n" + HOST + b"Content-Length : 3\r\n\r\n",
    "a folded header": b"GET / HTTP/1.1\r\n" + HOST + b"X: a\r\n b\r\n\r\n",
    "a line without its CR": b"GET / HTTP/1.1\nHost: x\n\n",
    "a NUL in a header": b"GET / HTTP/1.1\r\n" + HOST + b"X: a\x00b\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\nX: 1\r\n\r\n",
    "two hosts": b"GET / HTTP/1.1\r\n" + HOST + b"Host: y\r\n\r\n",
    "an unknown version": b"GET / HTTP/3.0\r\n" + HOST + b"\r\n",
    "an unknown method": b"FROB / HTTP/1.1\r\n" + HOST + b"\r\n",
    "a path that is not ASCII": b"GET /\xff HTTP/1.1\r\n" + HOST + b"\r\n",
    "a head without end": b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"y" * (3 * MAX_HEAD_BYTES),
    "headers without end": b"GET / HTTP/1.1\r\n" + HOST + b"X: 1\r\n" * (MAX_HEADERS + 1) + b"\r\n",
}


def parsed(*parts: bytes) -> Parser:
    parser = Parser()
    for part in parts:
        parser.feed(part)
    return parser


def told(parser: Parser) -> list[tuple[str, bytes, bytes, list[tuple[bytes, bytes]], bytes, bool]]:
    return [
        (one.method, one.raw_path, one.query, one.headers, b"".join(one.body), one.complete)
        for one in parser.requests
    ]


@given(st.lists(st.integers(1, 40), max_size=12))
def test_requests_are_the_same_however_their_bytes_are_cut(cuts: list[int]) -> None:
    data, parts = GET + POST + CHUNKED + GET, []
    for cut in cuts:
        parts.append(data[:cut])
        data = data[cut:]
    parser = parsed(*parts, data)

    assert told(parser) == told(parsed(GET + POST + CHUNKED + GET))
    assert (parser.broken, parser.is_between) == (False, True)
    assert [request.path for request in parser.requests] == ["/a", "/p", "/c", "/a"]


@pytest.mark.parametrize("request_", [POST, CHUNKED], ids=["of a length", "in chunks"])
def test_a_body_is_read_although_its_request_offers_another_protocol(request_: bytes) -> None:
    """As ``curl --http2`` sends it; wherever it is cut, and nothing that follows is read."""
    offered = request_.replace(HOST, HOST + OFFER)
    whole = parsed(offered + GET)

    [request] = whole.requests

    assert (b"".join(request.body), request.complete, request.keep_alive) == (b"hello", True, False)
    assert whole.broken
    assert whole.upgraded

    for place in range(len(offered)):
        cut = parsed(offered[:place], offered[place:], GET)
        assert (told(cut), cut.broken, cut.upgraded) == (told(whole), True, True)


def test_a_body_in_chunks_that_is_broken_is_not_read_because_of_an_offer() -> None:
    parser = parsed(CHUNKED.replace(HOST, HOST + OFFER).replace(b"\r\n0\r\n", b"\r\nzz\r\n"))

    assert not parser.requests[0].complete
    assert parser.broken
    assert not parser.upgraded


def test_a_trailer_is_no_header() -> None:
    [request] = parsed(CHUNKED).requests
    assert [name for name, _ in request.headers] == [b"host", b"transfer-encoding"]


def test_blanks_around_a_value_are_no_part_of_it() -> None:
    told = b"Host: x \t\r\nAuthorization:\t Bearer a b \r\nContent-Length: 5\t\r\nX: \t \r\n"
    head = b"POST /p HTTP/1.1\r\n" + told + b"\r\n"
    fields = [(b"host", b"x"), (b"authorization", b"Bearer a b"), (b"content-length", b"5"), (b"x", b"")]

    for place in range(len(head)):
        [request] = parsed(head[:place], head[place:], b"hello").requests

        assert (request.headers, request.declared) == (fields, 5)

    short = whole_request(head + b"hello", "")

    assert short is not None
    assert list(short.headers.items()) == fields


async def test_a_request_with_blanks_behind_its_values_is_served() -> None:
    head = POST.replace(b"Host: x", b"Host: x ").replace(b"Content-Length: 5", b"Content-Length: 5 ")
    async with serving(echo) as doors, await dial(doors) as stream:
        await stream.send_all(head)

        status, _, body = await Reader(stream).answer()

    assert (status, body) == (200, b"hello")


@given(st.binary(max_size=300))
def test_no_bytes_make_the_parser_raise(data: bytes) -> None:
    parser = parsed(data, data)
    assert parser.broken or len(parser.requests) <= len(data)


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE.keys())
def test_what_could_be_read_in_two_ways_is_not_read_at_all(hostile: bytes) -> None:
    parser = parsed(hostile)

    assert parser.broken
    assert not any(request.complete for request in parser.requests)


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE.keys())
async def test_it_is_answered_with_400_and_a_closed_connection(hostile: bytes) -> None:
    async with serving(echo) as doors, await dial(doors) as stream:
        await stream.send_all(GET + hostile)
        reader = Reader(stream)
        assert (await reader.answer())[0] == 200

        status, head, _ = await reader.answer()
        assert status == 400
        assert b"connection: close" in head
        assert await reader.is_closed()


async def test_who_waits_for_leave_to_send_gets_it() -> None:
    async with serving(echo) as doors, await dial(doors) as stream:
        await stream.send_all(POST.replace(b"\r\n\r\nhello", b"\r\nExpect: 100-continue\r\n\r\n"))
        reader = Reader(stream)
        assert (await reader.answer())[0] == 100

        await stream.send_all(b"hello")
        status, _, body = await reader.answer()
        assert (status, body) == (200, b"hello")


async def test_an_answer_to_http_1_0_ends_with_the_connection() -> None:
    async with serving(echo) as doors, await dial(doors) as stream:
        await stream.send_all(b"GET /a HTTP/1.0\r\n\r\n")
        reader = Reader(stream)
        status, head, _ = await reader.answer()

        assert status == 200
        assert b"connection: close" in head
        assert await reader.is_closed()
