"""Names of the files in which PostgreSQL keeps its write-ahead log."""

import re
from collections.abc import Iterable
from typing import Final

SEGMENT_BYTES: Final = 16 * 1024 * 1024
"""The size that initdb chooses, which our clusters keep."""
SEGMENTS_OF_ONE_LOG: Final = 2**32 // SEGMENT_BYTES
SEGMENT: Final = re.compile(r"[0-9A-F]{24}")


def segment_at(position: str, timeline: int) -> str:
    """Name the file that holds a position.

    >>> segment_at("0/3000028", 1), segment_at("2A/FF000000", 3)
    ('000000010000000000000003', '000000030000002A000000FF')
    """
    high, _, low = position.partition("/")
    number = ((int(high, 16) << 32) + int(low, 16)) // SEGMENT_BYTES
    return f"{timeline:08X}{number // SEGMENTS_OF_ONE_LOG:08X}{number % SEGMENTS_OF_ONE_LOG:08X}"


def older_than(names: Iterable[str], oldest: str) -> list[str]:
    """List the segments that come before one, whatever their timeline, as pg_archivecleanup does.

    >>> older_than(
    ...     ["000000010000000000000003", "000000020000000000000004", "00000002.history"],
    ...     "000000010000000000000004",
    ... )
    ['000000010000000000000003']
    """
    return [name for name in names if SEGMENT.fullmatch(name) and name[8:] < oldest[8:]]
