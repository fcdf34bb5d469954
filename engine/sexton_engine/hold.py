"""The hold: what an actor that waits without a worker gives to the code that will resume it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

__all__ = ["Hold"]


class Hold(ABC):
    """The rest of a message: its actor takes no further one until ``finish`` or ``release``.

    Belongs to the thread that runs trio. A hold that is over ignores both and counts them as
    ``late_finish``.
    """

    __slots__ = ("early", "since", "then")

    since: float
    """When the handling of the message began, in seconds on the engine's clock."""
    early: tuple[Callable[..., Any], tuple[Any, ...]] | None
    """What it was finished with while the handler still ran."""
    then: Callable[[Any], Any]
    """The rest of the handler for ``give``."""

    @property
    @abstractmethod
    def is_over(self) -> bool:
        """Whether it was finished before, or its actor has crashed or ended meanwhile."""

    @abstractmethod
    def finish(self, callback: Callable[..., Any], *args: Any) -> None:
        """Call back as the rest of the handler.

        What the callback returns is the reply, unless it was taken over. It may also return a coroutine,
        which a worker then awaits, or hold again and return ``DEFERRED``. What it raises is as if the
        handler had raised it; nothing is raised here.
        """

    @abstractmethod
    def give(self, value: Any) -> None:
        """Finish with ``then``, which is given the value; as ``finish``, for one call and object less.

        Bound to the hold, it is what those are handed who only know that they have an answer.
        """

    @abstractmethod
    def release(self) -> None:
        """Finish with nothing more to do, after a reply that was taken over by ``context.defer()``."""

    @abstractmethod
    def cancel(self) -> None:
        """End the instance as is wished of it; the hold is over."""
