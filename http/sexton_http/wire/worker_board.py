"""What the workers of one server know of one another without asking: who serves, and who is silent."""

import mmap
import os
import struct
import time
from enum import IntEnum
from typing import Final, NamedTuple

SILENT_S: Final = 2.0
"""A worker without a beat for this long is handed nothing by the others."""
BEAT_S: Final = 0.25
"""How often a worker says that it is there."""
_ROW: Final = struct.Struct("=qdqq")
_ROW_BYTES: Final = 64
"""A row has a line of the processor's cache for itself."""


class WorkerState(IntEnum):
    """Where a worker is in its life; the moves are in docs/reference/workers.md."""

    WAITING = 0
    """There is no process: the next one starts after a pause."""
    STARTING = 1
    SERVING = 2
    DRAINING = 3
    """It takes nothing new."""


class Row(NamedTuple):
    """One worker, as all see it."""

    state: WorkerState
    beat_at: float
    """When it last said that it is there, by the machine's monotonic clock."""
    pid: int
    restarts: int
    """Processes that this slot has had before."""


class WorkerBoard:
    """Memory that the parent and all workers share: one row a worker.

    A row is written by its worker while there is one, else by the parent; whoever reads it may read a mixture
    of two writes, which is as good as either: what is decided by it is an advantage, never a right.
    """

    def __init__(self, file: int, slots: int) -> None:
        """``file``: the descriptor of the memory."""
        self.file = file
        self.slots = slots
        self._memory = mmap.mmap(file, slots * _ROW_BYTES)

    def __repr__(self) -> str:
        return f"<WorkerBoard {', '.join(row.state.name.lower() for row in self.rows())}>"

    @classmethod
    def create(cls, slots: int) -> "WorkerBoard":
        file = os.memfd_create("sexton-workers")
        os.ftruncate(file, slots * _ROW_BYTES)
        return cls(file, slots)

    def put(self, slot: int, row: Row) -> None:
        _ROW.pack_into(self._memory, slot * _ROW_BYTES, *row)

    def row(self, slot: int) -> Row:
        state, beat_at, pid, restarts = _ROW.unpack_from(self._memory, slot * _ROW_BYTES)
        return Row(WorkerState(state), beat_at, pid, restarts)

    def rows(self) -> list[Row]:
        return [self.row(slot) for slot in range(self.slots)]

    def beat(self, slot: int, state: WorkerState) -> None:
        """Say that this worker is there. The rest of its row stays."""
        self.put(slot, self.row(slot)._replace(state=state, beat_at=time.monotonic(), pid=os.getpid()))

    def is_up(self, slot: int) -> bool:
        """Whether this worker takes what it is handed."""
        row = self.row(slot)
        return row.state is WorkerState.SERVING and time.monotonic() - row.beat_at < SILENT_S

    def up(self) -> list[int]:
        """The workers that are up, in order."""
        return [slot for slot in range(self.slots) if self.is_up(slot)]

    def close(self) -> None:
        self._memory.close()
        os.close(self.file)
