"""A proxy that ends TLS and passes on what is within, as Caddy or nginx do before a server."""

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial

from sexton_http.wire.tls import Tls

PIECE: int = 1 << 16


@contextmanager
def open_tls_proxy(host: str, upstream: int, tls: Tls) -> Iterator[int]:
    """Serve a free port of this address, which it gives, for what listens at a port of loopback."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tls.certificate, tls.key)
    loop = asyncio.new_event_loop()
    serving = loop.run_until_complete(
        asyncio.start_server(partial(_pass, upstream), host, 0, ssl=context, backlog=64)
    )
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield serving.sockets[0].getsockname()[1]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        serving.close()
        for task in asyncio.all_tasks(loop):
            task.cancel()
            with suppress(asyncio.CancelledError):
                loop.run_until_complete(task)
        loop.close()


async def _pass(upstream: int, inner: asyncio.StreamReader, outer: asyncio.StreamWriter) -> None:
    answers, asks = await asyncio.open_connection("127.0.0.1", upstream)
    await asyncio.gather(_copy(inner, asks), _copy(answers, outer))


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError, asyncio.CancelledError):
        while piece := await source.read(PIECE):
            sink.write(piece)
            await sink.drain()
    sink.close()
