"""Counts and packs the lines of a table, and says what they come to."""

import gzip
import hashlib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from sexton_storage.archives.manifest import ArchivedRows, BadManifest

JSONL: Final = "jsonl.gz"
PARQUET: Final = "parquet"
PIECE_BYTES: Final = 1 << 20
LONGEST_LINE: Final = 64 << 20
MONEY: Final[Mapping[str, tuple[str, ...]]] = {
    "events": ("charged_nanos",),
    "metering": ("charged_nanos", "run_fee_nanos", "token_cost_nanos"),
}
"""The columns whose sums a manifest has; what events were charged is also in the metering rows that stay."""
TIMES: Final[Mapping[str, str]] = {
    "events": "created_at",
    "transcripts": "began_at",
    "webhook_deliveries": "at",
    "metering": "created_at",
}


class Tally:
    """What all lines of one table come to. The sum is PostgreSQL's ``sexton_line_sum``, added up."""

    def __init__(self, table: str) -> None:
        self._money: tuple[str, ...] = MONEY.get(table, ())
        self._time = TIMES.get(table)
        self._rows = self._sum = 0
        self._nanos: dict[str, int] = dict.fromkeys(self._money, 0)
        self.first_at: int | None = None
        self.last_at: int | None = None

    def __repr__(self) -> str:
        return f"<Tally of {self._rows} lines>"

    def add(self, line: bytes) -> None:
        """Count a line, without its end. Raises msgspec.DecodeError where money or time cannot be read."""
        self._rows += 1
        self._sum += line_sum(line)
        if self._money or self._time is not None:
            self._look_at(msgspec.json.decode(line))

    def _look_at(self, row: Mapping[str, object]) -> None:
        for name in self._money:
            self._nanos[name] += _number(row, name)
        if self._time is not None:
            at = _number(row, self._time)
            self.first_at = at if self.first_at is None else min(self.first_at, at)
            self.last_at = at if self.last_at is None else max(self.last_at, at)

    def total(self) -> ArchivedRows:
        """All lines until now."""
        return ArchivedRows(rows=self._rows, line_sum=str(self._sum), nanos=dict(self._nanos))


def _number(row: Mapping[str, object], name: str) -> int:
    value = row.get(name)
    if not isinstance(value, int):
        raise msgspec.DecodeError(f"{name} is no number")
    return value


def line_sum(line: bytes) -> int:
    """Give a number for a line, as ``sexton_line_sum`` does.

    >>> line_sum(b"{}")
    90488421641866048750073685292303803550
    """
    digest = hashlib.sha256(line).digest()
    high, low = (int.from_bytes(digest[at : at + 8], "big", signed=True) for at in (0, 8))
    return (high << 64) + low


def pack(lines: Sequence[bytes]) -> bytes:
    """Compress lines; the same lines are the same bytes."""
    return gzip.compress(b"".join(line + b"\n" for line in lines), 6, mtime=0)


def unpack(content: bytes) -> Iterator[bytes]:
    """Give the lines again, with a few of them in memory. Raises BadManifest."""
    unzip = zlib.decompressobj(wbits=31)
    rest, held = content, b""
    try:
        while rest and not unzip.eof:
            held += unzip.decompress(rest, PIECE_BYTES)
            rest = unzip.unconsumed_tail
            *lines, held = held.split(b"\n")
            yield from lines
            if len(held) > LONGEST_LINE:
                raise BadManifest("it has a line without an end")
        held += unzip.flush()
    except zlib.error as fault:
        raise BadManifest(f"it cannot be unpacked: {fault}") from fault
    *lines, held = held.split(b"\n")
    yield from lines
    if held or not unzip.eof or unzip.unused_data:
        raise BadManifest("it ends in the middle of a line, or goes on behind its end")
