"""What the parts of a world need of one another."""

from collections.abc import Iterable
from typing import Any, Protocol

import trio

from tests.simulation.world.deviations import Windows
from tests.simulation.world.timeline import Timeline
from tests.simulation.world.trace import Trace


class OpenThings(Protocol):
    """The kernel, as far as a program's life and death concern it."""

    def close_all(self, process: Any, *, silent: bool = False) -> None: ...
    def put_back(self, tasks: Iterable[trio.lowlevel.Task]) -> None: ...


class Ground:
    """The world, as its parts see it."""

    timeline: Timeline
    trace: Trace
    kernel: OpenThings
    delays: Windows
    """How long things take: the network, the database, work in threads."""
    nursery: trio.Nursery
    """Where programs run."""
    is_over: bool
    """All is being cleared away."""
    standing: int
    """How many programs are frozen or dead."""

    def note(self, *words: object) -> None:
        """Add a line to the trace."""
        raise NotImplementedError
