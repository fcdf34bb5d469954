"""Thousands who send a byte at a time, or nothing more, keep nobody else waiting."""

import resource
from collections.abc import Iterator
from contextlib import AsyncExitStack

import pytest

from sexton_http.wire import timeouts
from sexton_http.wire.connection_ceilings import Ceilings
from sexton_http.wire.open_connections import OpenConnections
from tests.thorough import amount
from tests.worlds.asgi_server import Reader, Stream, dial, echo, serving

SLOW_CONNECTIONS = amount(2_000, 10_000, variable="SEXTON_SLOW_SENDERS")
"""Fewer where this process may not have two descriptors for each."""
SPARE_DESCRIPTORS = 512
HEAD = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
ROUNDS = 2
PATIENCE_S = 3600.0
ROOM = Ceilings(most=2 * SLOW_CONNECTIONS, of_address=2 * SLOW_CONNECTIONS)
LOOK_EVERY = 500


@pytest.fixture
def connections() -> Iterator[int]:
    """How many there can be, with the limit of descriptors raised as far as it goes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * SLOW_CONNECTIONS + SPARE_DESCRIPTORS
    raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, raised), hard))
    yield min(SLOW_CONNECTIONS, (max(soft, raised) - SPARE_DESCRIPTORS) // 2)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_slow_senders_keep_nobody_else_waiting(
    connections: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine the round takes longer than slow senders are given; none is to be cut before its end.
    monkeypatch.setattr(timeouts, "READ_S", PATIENCE_S)
    assert connections >= LOOK_EVERY

    async with serving(echo, connections=OpenConnections(ROOM)) as doors, AsyncExitStack() as held:
        slow: list[Stream] = []
        for _ in range(connections):
            stream = await dial(doors)
            await held.enter_async_context(stream)
            await stream.send_all(HEAD[:4])
            slow.append(stream)
        healthy = await dial(doors)
        await held.enter_async_context(healthy)
        reader, answered = Reader(healthy), 0
        for place in range(ROUNDS):
            for number, stream in enumerate(slow):
                await stream.send_all(HEAD[4 + place : 5 + place])
                if number % LOOK_EVERY == 0:
                    await healthy.send_all(HEAD)
                    answered += (await reader.answer())[0] == 200
        assert answered == ROUNDS * -(-connections // LOOK_EVERY)

        # And the slow are served as well, once they have said what they want.
        await slow[-1].send_all(HEAD[4 + ROUNDS :])
        assert (await Reader(slow[-1]).answer())[0] == 200
