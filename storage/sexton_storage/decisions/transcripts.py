"""Which entries of a transcript are taken, and which attempts make room."""

from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.documents import to_json
from sexton_storage.records.leases import Lease
from sexton_storage.records.transcripts import CUT, NewEntry, Transcript, TranscriptBounds, TranscriptEntry

RUN_ENTRIES: Final = 20_000
"""The most of one attempt, however short they are."""


class Taken(NamedTuple):
    """The attempt's row as it is now, and the entries that come to it."""

    transcript: Transcript
    entries: Sequence[TranscriptEntry]


def begun(lease: Lease) -> Transcript:
    """Give the empty transcript of a lease."""
    return Transcript(lease.zombie_id, lease.event_id, lease.attempt, lease.workspace_id, lease.granted_at)


def take(
    kept: Transcript, known: Collection[int], new: Iterable[NewEntry], bounds: TranscriptBounds, now: int
) -> Taken:
    """Take entries in the order of their numbers.

    What is there already stays as it is. The first entry beyond a bound becomes the mark that nothing
    follows.

    >>> kept = Transcript(UUID(int=1), UUID(int=2), 1, UUID(int=3), 100)
    >>> said = [NewEntry(number, "note", None, {"text": "x"}) for number in (1, 2, 2, 4)]
    >>> taken = take(kept, {1}, said, TranscriptBounds(), 500)
    >>> [entry.number for entry in taken.entries], taken.transcript.entries, taken.transcript.last_number
    ([2, 4], 2, 4)
    >>> [entry.kind for entry in take(kept, (), said, TranscriptBounds(run_bytes=15), 500).entries]
    ['note', 'cut']
    """
    entries: dict[int, TranscriptEntry] = {}
    for entry in sorted(new, key=lambda one: one.number):
        if kept.is_cut or kept.is_removed or bounds.days == 0:
            break
        if entry.number in known or entry.number in entries:
            continue
        made = _made(kept, entry, now)
        if kept.bytes + made.size > bounds.run_bytes or kept.entries >= RUN_ENTRIES:
            facts = {"kept_entries": kept.entries, "kept_bytes": kept.bytes, "max_bytes": bounds.run_bytes}
            made = _made(kept, NewEntry(entry.number, CUT, entry.at_ms, facts), now)
            kept = replace(kept, is_cut=True)
        entries[made.number] = made
        kept = replace(
            kept,
            entries=kept.entries + 1,
            bytes=kept.bytes + made.size,
            last_number=max(kept.last_number, made.number),
        )
    return Taken(kept, tuple(entries.values()))


def _made(kept: Transcript, entry: NewEntry, now: int) -> TranscriptEntry:
    text = to_json(entry.data)
    # A runner's clock may be wrong, but what it did lies between its grant and now.
    at_ms = now if entry.at_ms is None else max(kept.began_at, min(entry.at_ms, now))
    return TranscriptEntry(
        kept.zombie_id,
        kept.event_id,
        kept.attempt,
        entry.number,
        entry.kind,
        at_ms,
        entry.data,
        len(text.encode()),
    )


def over_bound(kept: Iterable[Transcript], max_bytes: int) -> list[Transcript]:
    """Give the attempts of one workspace that make room, so that the newest fit.

    >>> of = [Transcript(UUID(int=1), UUID(int=n), 1, UUID(int=3), n, bytes=10) for n in (1, 2, 3)]
    >>> [row.began_at for row in over_bound(of, 25)]
    [1]
    """
    total, over = 0, []
    newest_first = sorted(kept, key=lambda row: (row.began_at, row.event_id, row.attempt), reverse=True)
    for row in newest_first:
        if row.is_removed:
            continue
        total += row.bytes
        if total > max_bytes:
            over.append(row)
    return over


def of_workspaces(kept: Iterable[Transcript]) -> dict[UUID, list[Transcript]]:
    """Sort rows by their workspace."""
    found: dict[UUID, list[Transcript]] = {}
    for row in kept:
        found.setdefault(row.workspace_id, []).append(row)
    return found
