"""Whoever reads slowly gets all of a large answer; whoever takes a byte now and then does not."""

from typing import Any, Final

from trio.testing import MockClock

from sexton_http.wire.timeouts import WRITE_S
from sexton_http.wire.tls import Tls
from tests.worlds.asgi_server import answer, dial, let_the_server_read, serving, sized
from tests.worlds.http2_client import (
    DATA,
    GOAWAY,
    INITIAL_WINDOW,
    RST_STREAM,
    Http2Client,
    get,
    speaking,
    window,
)

PART: Final = 16 * 1024
LARGE: Final = 20 * PART
HUGE: Final = 32 * 2**20
"""More than kernels hold for a connection."""
GET: Final = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def read_part_by_part(client: Http2Client, clock: MockClock, *, step: int, pause_s: float) -> list[str]:
    """How the first stream ended, and how many bytes of it came, where each window takes ``step`` bytes."""
    came = 0
    while (got := await client.frame()) is not None:
        if got.kind in {RST_STREAM, GOAWAY}:
            return [got.outcome(), str(came)]
        if got.kind == DATA:
            came += len(got.payload)
            if came == LARGE:
                return ["whole"]
            if came % step == 0:
                await let_the_server_read()
                clock.jump(pause_s)
                await let_the_server_read()
                await client.send(window(1, step))
    return ["closed", str(came)]


async def test_an_answer_of_http2_is_sent_to_its_end_while_its_client_goes_on_reading(
    mock_clock: MockClock,
) -> None:
    async with serving(sized) as doors, speaking(doors, (INITIAL_WINDOW, PART)) as client:
        await client.send(window(0, 1 << 30), get(1, f"/{LARGE}"))

        assert await read_part_by_part(client, mock_clock, step=PART, pause_s=WRITE_S / 4) == ["whole"]


async def test_an_answer_of_http2_that_is_taken_by_drips_is_given_up(mock_clock: MockClock) -> None:
    async with serving(sized) as doors, speaking(doors, (INITIAL_WINDOW, 100)) as client:
        await client.send(window(0, 1 << 30), get(1, f"/{LARGE}"))

        ended, came = await read_part_by_part(client, mock_clock, step=100, pause_s=WRITE_S / 4)

    assert ended == "reset CANCEL"
    assert int(came) <= 1000


async def test_an_answer_of_http1_is_sent_to_its_end_while_its_client_goes_on_reading(
    mock_clock: MockClock, tls: Tls | None
) -> None:
    async def huge(_scope: Any, _receive: Any, send: Any) -> None:
        await answer(send, 200, bytes(HUGE))

    async with serving(huge, tls=tls) as doors, await dial(doors) as stream:
        await stream.send_all(GET)
        came = len(await stream.receive_some(65536))
        pauses = 0
        while came < HUGE:
            data = await stream.receive_some(65536)
            if not data:
                break
            came += len(data)
            if came > (pauses + 1) * HUGE // 16:
                pauses += 1
                await let_the_server_read()
                mock_clock.jump(WRITE_S / 4)

    assert came >= HUGE
    assert pauses * WRITE_S / 4 > 3 * WRITE_S
