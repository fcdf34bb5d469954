"""Heads of requests: their bounds and what they may say are the same with and without TLS."""

from collections.abc import Callable
from typing import Any

import pytest

from sexton_http.wire.tls import Tls
from tests.worlds.asgi_server import Reader, answer, dial, dial_port, serving
from tests.worlds.http import HttpWorld

GET = b"GET /a HTTP/1.1\r\nHost: x\r\n"
POST = b"POST /a HTTP/1.1\r\nHost: x\r\n"
BODY = b"\r\n5\r\nhello\r\n0\r\n\r\n"
MAX_HEAD_BYTES = 64 * 1024
CUTS = (1_000_000, 60_000, 1_400)
"""How much of a head is sent at once."""


async def fine(_scope: dict[str, Any], _receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
    await answer(send, 200, b"taken")


async def refused(sent: bytes, *, tls: Tls | None, cut: int = 1_000_000) -> bool:
    """Whether it is answered with 400 and the end of the connection; else it was taken."""
    async with serving(fine, tls=tls) as doors, await dial(doors) as stream:
        for start in range(0, len(sent), cut):
            await stream.send_all(sent[start : start + cut])
        reader = Reader(stream)
        status, head, _ = await reader.answer()
        assert status in {200, 400}
        if status == 200:
            return False
        assert b"connection: close" in head.lower()
        assert await reader.is_closed()
        return True


@pytest.mark.parametrize("cut", CUTS)
async def test_a_head_is_bounded_however_it_comes(tls: Tls | None, cut: int) -> None:
    for size in (MAX_HEAD_BYTES + 500, 66_500, 90_000, 120_000):
        assert await refused(GET + b"X: " + b"y" * size + b"\r\n\r\n", tls=tls, cut=cut), size
    assert not await refused(GET + b"X: " + b"y" * (MAX_HEAD_BYTES - 500) + b"\r\n\r\n", tls=tls, cut=cut)


async def test_an_address_counts_as_a_part_of_the_head(tls: Tls | None) -> None:
    assert await refused(b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", tls=tls)


async def test_many_small_headers_are_as_bounded_as_one_large(tls: Tls | None) -> None:
    assert await refused(GET + b"X: 1\r\n" * 257 + b"\r\n", tls=tls)
    assert await refused(GET + (b"X: " + b"y" * 500 + b"\r\n") * 200 + b"\r\n", tls=tls)


@pytest.mark.parametrize(
    "coding",
    [
        b"gzip, chunked",
        b"gzip",
        b"identity",
        b"chunked, chunked",
        b"chunked\r\nTransfer-Encoding: chunked",
        b"",
    ],
)
async def test_a_body_has_no_coding_but_chunks(tls: Tls | None, coding: bytes) -> None:
    assert await refused(POST + b"Transfer-Encoding: " + coding + b"\r\n" + BODY, tls=tls)


async def test_chunks_are_chunks_in_any_case(tls: Tls | None) -> None:
    assert not await refused(POST + b"Transfer-Encoding: Chunked\r\n" + BODY, tls=tls)


async def test_http_1_0_has_no_chunks(tls: Tls | None) -> None:
    assert await refused(b"POST /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n" + BODY, tls=tls)


@pytest.mark.parametrize(
    "host",
    [b"a b", b"a/b", b"user@a", b"a:b", b"[::1", b"a,b:c", b"a\\b", b"a?b", b"a#b", b"a:123456"],
)
async def test_a_host_that_is_none_is_refused(tls: Tls | None, host: bytes) -> None:
    assert await refused(b"GET /a HTTP/1.1\r\nHost: " + host + b"\r\n\r\n", tls=tls)


@pytest.mark.parametrize("host", [b"a", b"a.b-c:80", b"127.0.0.1:8080", b"[::1]:80", b"[fe80::1]", b""])
async def test_a_host_is_a_name_or_an_address(tls: Tls | None, host: bytes) -> None:
    assert not await refused(b"GET /a HTTP/1.1\r\nHost: " + host + b"\r\n\r\n", tls=tls)


async def test_one_key_makes_a_request_repeatable_and_two_make_it_unclear(world: HttpWorld) -> None:
    async with await dial_port(int(world.base_url.rpartition(":")[2])) as stream:
        head = b"POST /v1/workspaces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        head += b"Authorization: Bearer " + world.api_key.encode() + b"\r\nContent-Length: 2\r\n"
        reader = Reader(stream)
        await stream.send_all(head + b"Idempotency-Key: a\r\nIdempotency-Key: b\r\n\r\n{}")
        status, _, body = await reader.answer()
        assert (status, b"one Idempotency-Key" in body) == (400, True)

        await stream.send_all(head + b"Idempotency-Key: a\r\n\r\n{}")
        assert (await reader.answer())[0] == 201
