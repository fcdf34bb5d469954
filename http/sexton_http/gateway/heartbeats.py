"""Keeps a stream alive while what it waits for is slow, without giving up the wait."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Generic, TypeVar

import trio

from sexton_http.wire.stop_signal import Stop, until_stopped

T = TypeVar("T")


async def with_heartbeats(
    items: AsyncGenerator[T, None], every_s: float, stop: Stop
) -> AsyncGenerator[T | None, None]:
    """The items as they come, and None whenever none came for ``every_s``; ends at ``stop``.

    Closing it closes ``items``. A fault of ``items`` is raised here, after the items before it.
    """
    send, receive = trio.open_memory_channel[T](0)
    reader = _Reader(items, send)
    # A wait for the next item cannot be cut and taken up again, and a nursery cannot span a yield: so the
    # items are read by a task of their own, which ends with this.
    trio.lowlevel.spawn_system_task(reader.run)
    try:
        while True:
            item: T | None = None
            with trio.move_on_after(every_s) as waited:
                try:
                    item = await until_stopped(receive.receive, stop)
                except trio.EndOfChannel:
                    break
                if item is None:
                    return
            if item is None and not waited.cancelled_caught:
                return
            yield item
        if reader.fault is not None:
            raise reader.fault
    finally:
        reader.scope.cancel()
        with trio.CancelScope(shield=True):
            await reader.over.wait()


class _Reader(Generic[T]):
    def __init__(self, items: AsyncGenerator[T, None], send: trio.MemorySendChannel[T]) -> None:
        self._items = items
        self._send = send
        self.scope = trio.CancelScope()
        self.over = trio.Event()
        self.fault: Exception | None = None

    async def run(self) -> None:
        """Never raises: a system task that did would end the whole program."""
        try:
            with self.scope:
                async with self._send, aclosing(self._items):
                    try:
                        async for item in self._items:
                            await self._send.send(item)
                    except Exception as fault:  # noqa: BLE001 - it is raised by the one who reads
                        self.fault = fault
        except Exception as fault:  # noqa: BLE001 - closing can fail as well
            self.fault = fault
        finally:
            self.over.set()
