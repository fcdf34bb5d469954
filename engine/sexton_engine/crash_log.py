"""Keeps the latest crashes to look at, as text: the exceptions themselves would hold what they were about."""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Hashable
from typing import Final

from sexton_engine.statistics import CrashRecord

__all__ = ["CRASH_RING", "TRACEBACK_CHARS", "CrashLog"]

CRASH_RING: Final = 64
"""How many crashes are kept; older ones are only counted."""
TRACEBACK_CHARS: Final = 16_384
"""The end of a longer one is kept: it says what went wrong."""
ERROR_CHARS: Final = 1_024


class CrashLog:
    """The crashes of one system, the latest in a ring."""

    __slots__ = ("_ring",)

    def __init__(self, ring: int = CRASH_RING) -> None:
        self._ring: deque[CrashRecord] = deque(maxlen=ring)

    def __repr__(self) -> str:
        return f"<CrashLog, {len(self._ring)} kept>"

    def add(self, kind: str, key: Hashable, exc: BaseException, message: str | None, at: float) -> None:
        """Note a crash; ``message`` is the type of what was handled then, if anything was."""
        told = "".join(traceback.format_exception(exc))[-TRACEBACK_CHARS:]
        self._ring.append(CrashRecord(kind, str(key), message, repr(exc)[:ERROR_CHARS], told, at))

    def latest(self, kind: str | None = None, key: str | None = None) -> tuple[CrashRecord, ...]:
        """Newest first: all, those of a kind, or those of one actor."""
        return tuple(
            crash for crash in reversed(self._ring) if kind in {None, crash.kind} and key in {None, crash.key}
        )
