"""More connections than a server may hold: who makes room, who is told to come again, who still asks."""

import re
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from sexton_http.routes.table import OPERATIONS
from sexton_http.wire.asgi import RESERVED
from sexton_http.wire.connection_ceilings import Ceilings
from sexton_http.wire.forwarded import read_networks
from sexton_http.wire.open_connections import OpenConnections
from sexton_http.wire.server import Doors
from sexton_http.wire.timeouts import IDLE_S, RESERVED_S
from sexton_http.wire.tls import Tls
from tests.worlds.asgi_server import Reader, Stream, answer, dial, let_the_server_read, serving
from tests.worlds.http import open_http_world

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
PARAMETER = re.compile(r"\{\w+\}")
UNKNOWN = "019363b0-0000-7000-8000-00000000ffff"
HALF = b"GET / HTTP/1.1\r\nHo"


async def tells(scope: Any, receive: Any, send: Any) -> None:
    """Answers 503 to a connection of the reserve."""
    del receive
    await answer(send, 503 if RESERVED in scope["extensions"] else 200, b"")


@asynccontextmanager
async def small(
    most: int, *, of_address: int = 99, reserve: int = 1, trusted: Sequence[str] = (), tls: Tls | None = None
) -> AsyncIterator[Doors]:
    connections = OpenConnections(Ceilings(most, of_address, reserve), read_networks(trusted))
    async with serving(tells, tls=tls, connections=connections) as doors:
        yield doors


async def asks(stream: Stream) -> int:
    """The status of one request; 0 when the connection has ended."""
    try:
        await stream.send_all(GET)
    except trio.BrokenResourceError:
        return 0
    return (await Reader(stream).answer())[0]


async def leave(*streams: Stream) -> None:
    for stream in streams:
        await trio.aclose_forcefully(stream)


async def test_the_connection_that_was_idle_longest_makes_room(
    mock_clock: MockClock, tls: Tls | None
) -> None:
    async with small(3, tls=tls) as doors:
        old: list[Stream] = []
        for _ in range(2):
            old.append(await dial(doors))
            await asks(old[-1])
            await let_the_server_read()
            mock_clock.jump(IDLE_S)
        busy = await dial(doors)
        await busy.send_all(HALF)
        await let_the_server_read()
        mock_clock.jump(IDLE_S)
        new = await dial(doors)
        statuses = [await asks(stream) for stream in (new, *old)]
        await leave(new, busy, *old)

    assert statuses == [200, 0, 200]


async def test_without_an_idle_one_a_newcomer_is_told_to_come_again_and_the_connection_ends() -> None:
    async with small(1) as doors:
        busy = await dial(doors)
        await busy.send_all(HALF)
        await let_the_server_read()
        async with await dial(doors) as new:
            await new.send_all(GET)
            reader = Reader(new)
            status, head, _ = await reader.answer()
            ended = await reader.is_closed()
        await leave(busy)
        await let_the_server_read()
        again = await dial(doors)
        later = await asks(again)
        await leave(again)

    assert (status, b"connection: close" in head.lower(), ended, later) == (503, True, True, 200)


async def test_whoever_stays_in_the_reserve_makes_room_for_the_next_who_asks(mock_clock: MockClock) -> None:
    async with small(1) as doors:
        busy = await dial(doors)
        await busy.send_all(HALF)
        await let_the_server_read()
        silent = await dial(doors)
        await let_the_server_read()
        new = await dial(doors)
        told, made_room = await asks(new), await Reader(silent).is_closed()
        slow = await dial(doors)
        await slow.send_all(HALF)
        await let_the_server_read()
        mock_clock.jump(RESERVED_S + 1)
        cut = await Reader(slow).is_closed()
        await leave(busy, silent, new, slow)

    assert (told, made_room, cut) == (503, True, True)


@pytest.mark.parametrize(("trusted", "status"), [((), 503), (("127.0.0.1",), 200)])
async def test_one_address_does_not_take_all(trusted: Sequence[str], status: int) -> None:
    async with small(4, of_address=2, trusted=trusted) as doors:
        mine = [await dial(doors) for _ in range(2)]
        for stream in mine:
            await stream.send_all(HALF)
        await let_the_server_read()
        third = await dial(doors)
        other = await trio.open_tcp_stream("127.0.0.1", doors.port, local_address="127.0.0.2")
        statuses = [await asks(stream) for stream in (third, other)]
        await leave(*mine, third, other)

    assert statuses == [status, 200]


async def test_a_full_server_answers_its_health_and_tells_all_others_to_come_again() -> None:
    async with open_http_world(connections=OpenConnections(Ceilings(most=0))) as world:
        told: dict[str, set[tuple[int, str, bool]]] = defaultdict(set)
        for operation in OPERATIONS:
            answer = await world.call(operation.method, PARAMETER.sub(UNKNOWN, operation.path))
            code = "" if answer.status_code == 200 else answer.json()["error_code"]
            told[operation.path].add((answer.status_code, code, "retry-after" in answer.headers))
        told["/nowhere"].add(((await world.get("/nowhere")).status_code, "UZ-API-005", True))

    healthy = {path for path, answers in told.items() if answers == {(200, "", False)}}

    assert healthy == {"/healthz", "/readyz", "/metrics"}
    assert all(told[path] == {(503, "UZ-API-005", True)} for path in told.keys() - healthy)


def test_addresses_of_one_ipv6_household_are_counted_together() -> None:
    connections = OpenConnections()
    places = [connections._address(host) for host in ("2001:db8::1", "2001:db8::2", "2001:db8:0:1::1")]

    assert places == ["2001:db8::/64", "2001:db8::/64", "2001:db8:0:1::/64"]
    assert connections._address("::ffff:192.0.2.1") == connections._address("192.0.2.1") == "192.0.2.1"
