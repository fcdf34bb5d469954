"""Asks at the same time what a page shows, where one question does not need the answer of another."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, Generic, ParamSpec, TypeVar

import trio

AT_ONCE: Final = 4
"""Questions of one page that are asked at the same time; each may hold a connection to the database."""

P = ParamSpec("P")
T = TypeVar("T")


class Asked(Generic[T]):
    """A question under way; its answer is there when the ``async with`` is over."""

    __slots__ = ("_answers",)

    def __init__(self) -> None:
        self._answers: list[T] = []

    def __repr__(self) -> str:
        return f"<Asked, {'answered' if self._answers else 'under way'}>"

    def put(self, answer: T) -> None:
        self._answers.append(answer)

    @property
    def answer(self) -> T:
        """What came of it."""
        return self._answers[0]


class Asking:
    """Begins questions, a few at a time."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._places = trio.Semaphore(AT_ONCE)

    def __call__(self, question: Callable[P, Awaitable[T]], *args: P.args, **options: P.kwargs) -> Asked[T]:
        asked = Asked[T]()

        async def ask() -> None:
            async with self._places:
                asked.put(await question(*args, **options))

        self._nursery.start_soon(ask)
        return asked


@asynccontextmanager
async def side_by_side() -> AsyncIterator[Asking]:
    """Ask side by side, until all is answered. What went wrong first is raised as if it were asked alone."""
    try:
        async with trio.open_nursery() as nursery:
            yield Asking(nursery)
    except BaseExceptionGroup as group:
        faults = group.subgroup(Exception)
        if faults is None:
            raise
        raise first_of(faults) from None


def first_of(group: BaseExceptionGroup[Any]) -> BaseException:
    """The first of what went wrong, however deep it lies.

    >>> first_of(ExceptionGroup("all", [ExceptionGroup("some", [ValueError("this")]), KeyError()]))
    ValueError('this')
    """
    first = group.exceptions[0]
    return first_of(first) if isinstance(first, BaseExceptionGroup) else first
