"""pykka's future for a single thread: awaited, never blocked on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from types import TracebackType
from typing import Any, TypeAlias, TypeVar

import outcome
import pykka
import trio

__all__ = ["FutureNotReadyError", "TrioFuture"]

T = TypeVar("T")

OptExcInfo: TypeAlias = tuple[type[BaseException] | None, BaseException | None, TracebackType | None]


class FutureNotReadyError(pykka.Timeout):
    """``get()`` was called before the value was there; in a trio thread a future is awaited."""

    def __init__(self, future: TrioFuture[Any]) -> None:
        super().__init__("not ready: await the future, get() cannot wait in a trio thread")
        self.future = future


class TrioFuture(pykka.Future[T]):
    """A value that is there now or later.

    ``await future`` waits; ``get()`` hands out what is there and never waits. ``map``, ``filter``,
    ``join`` and ``reduce`` are pykka's own: their hooks run when the derived future is awaited.
    """

    def __init__(self) -> None:
        super().__init__()
        self._outcome: outcome.Value[T] | outcome.Error | None = None
        self._lot: trio.lowlevel.ParkingLot | None = None
        self.timeout: float | None = None
        """Seconds that ``await`` waits before it raises ``pykka.Timeout``; ``None`` is for ever."""

    def __repr__(self) -> str:
        return f"<TrioFuture {'pending' if self._outcome is None else self._outcome!r}>"

    @property
    def is_set(self) -> bool:
        """Whether a value or an exception is there."""
        return self._outcome is not None

    def get(self, *, timeout: float | None = None) -> T:
        """The value, at once; a value that is not there raises ``FutureNotReadyError``."""
        if self._get_hook is not None:
            return super().get(timeout=timeout)
        if self._outcome is None:
            raise FutureNotReadyError(self)
        if isinstance(self._outcome, outcome.Error):
            raise self._outcome.error
        value: T = self._outcome.value
        return value

    def set(self, value: T | None = None) -> None:
        """Give the value; a second one raises ``RuntimeError``."""
        self._finish(outcome.Value(value))  # type: ignore[arg-type]  # pykka's set() lets T be None as well

    def set_exception(self, exc_info: OptExcInfo | None = None) -> None:
        """Give an exception: a ``sys.exc_info()`` triple, or the one being handled."""
        error = (exc_info or sys.exc_info())[1]
        if error is None:
            msg = "set_exception() needs an exception"
            raise RuntimeError(msg)
        self._finish(outcome.Error(error))

    def set_get_hook(self, func: Callable[[float | None], T]) -> None:
        """Compute the value by ``func`` when it is asked for."""
        if self._outcome is not None:
            msg = "the future is already set"
            raise RuntimeError(msg)
        super().set_get_hook(func)

    def _finish(self, result: outcome.Value[T] | outcome.Error) -> None:
        if self._outcome is not None or self._get_hook is not None:
            msg = "the future is already set"
            raise RuntimeError(msg)
        self._outcome = result
        if self._lot is not None:
            self._lot.unpark_all()

    async def wait(self) -> T:
        """Wait for the value; raises ``pykka.Timeout`` after ``timeout`` seconds."""
        with trio.move_on_after(float("inf") if self.timeout is None else self.timeout):
            return await self._wait()
        msg = f"{self.timeout} seconds"
        raise pykka.Timeout(msg)

    async def _wait(self) -> T:
        # A hook may meet several futures that are not ready, one after the other.
        while True:
            try:
                value = self.get()
            except FutureNotReadyError as missing:
                lot = missing.future._park_here()
            else:
                await trio.lowlevel.checkpoint()
                return value
            await lot.park()

    def _park_here(self) -> trio.lowlevel.ParkingLot:
        if self._lot is None:
            self._lot = trio.lowlevel.ParkingLot()
        return self._lot

    def __await__(self) -> Generator[Any, Any, T]:
        return self.wait().__await__()

    __iter__ = __await__
