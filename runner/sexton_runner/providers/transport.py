"""The connection to a provider: one pool for each run, with bounds on what comes back."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import httpx2

from sexton_runner.client import is_loopback
from sexton_runner.providers.faults import ModelAway
from sexton_runner.providers.sse import event_data

CONNECT_S = 10.0
SILENCE_S = 180.0
"""A model that is silent for this long will not answer; those that think send signs of life."""
MAX_ANSWER_BYTES = 32 << 20


def open_pool(base_url: str) -> httpx2.AsyncClient:
    """Open a pool for one provider. Redirects are not followed: they would carry the key elsewhere."""
    return httpx2.AsyncClient(
        timeout=httpx2.Timeout(SILENCE_S, connect=CONNECT_S),
        follow_redirects=False,
        # What comes in small pieces gains nothing by compression, and is read as it comes off the wire.
        headers={"accept-encoding": "identity"},
        trust_env=not is_loopback(base_url),
        event_hooks={"response": [_bound]},
    )


async def _bound(response: httpx2.Response) -> None:
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Bounded(response.stream)


class _Bounded(httpx2.AsyncByteStream):
    """Breaks off an answer that does not end, and takes down the generators below it when it is closed."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner
        self._pieces = aiter(inner)
        self._left = MAX_ANSWER_BYTES

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        piece = await anext(self._pieces)
        self._left -= len(piece)
        if self._left < 0:
            raise httpx2.ReadError(f"the answer has more than {MAX_ANSWER_BYTES} bytes")
        return piece

    async def aclose(self) -> None:
        await self._inner.aclose()
        await _run_out(self._pieces)


async def _run_out(pieces: AsyncIterator[Any]) -> None:
    """Take what is left of a stream whose connection is closed: there is little, and then a fault."""
    try:
        async for _ in pieces:
            pass
    except Exception:  # noqa: BLE001, S110 - whatever it is, the stream has ended, which was wanted
        pass


@asynccontextmanager
async def data_of(response: httpx2.Response) -> AsyncIterator[AsyncGenerator[bytes, None]]:
    """Iterate the data of an answer's events, and leave nothing of the iteration behind, however it ends.

    The clients' own iterators stack asynchronous generators on one another and drop them when they have seen
    enough; on trio those would be finished at some later time, by the collector.
    """
    if not isinstance(response.stream, _Bounded):
        raise TypeError("the pool was not opened by open_pool")
    async with aclosing(event_data(response.stream)) as running:
        yield running


def cut_off(why: str) -> ModelAway:
    """Say that a stream ended before its answer did."""
    return ModelAway(f"the answer broke off: {why}")
