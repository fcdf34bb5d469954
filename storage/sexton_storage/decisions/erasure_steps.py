"""How an erasure goes from surface to surface, and when it is over."""

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec.structs import replace

from sexton_storage.records.erasures import OVER, Erasure, ErasureStatus

REST_MS: Final = 5_000
"""How long an erasure rests before it looks again: what was on its way has come to the database by then."""
REST_MOST_MS: Final = 300_000
REST_PART: Final = 10
"""While it waits for events it rests for one part in this many of its age: a gate may wait for days."""
SURFACES: Final = (
    "events",
    "transcripts",
    "gates",
    "follow_ups",
    "memories",
    "files",
    "event_files",
    "webhook_deliveries",
    "failure_groups",
    "bulk_jobs",
    "proposals",
    "saved_answers",
    "frames",
    "agent_versions",
    "workspace_snapshots",
    "audit_log",
)
"""In this order: what belongs to an event comes after the events, and frames after all that may name one."""
COUNTED: Final = frozenset({"agent_versions", "workspace_snapshots", "audit_log"})
"""Nothing goes from these; a pass that confirms ends before them."""
TAKEN_ALL: Final = frozenset({"saved_answers"})
"""What goes from these says nothing of the value: others write there all the time."""


_CONFIRMED: Final = len(SURFACES) - len(COUNTED)
"""How many surfaces a pass looks through that confirms."""


class Found(NamedTuple):
    """What came of one page."""

    last: tuple[str, ...] | None
    """The key of its last row; None: the surface has no more."""
    erased: Mapping[str, int]
    kept: Mapping[str, int]
    waits: int = 0


def moved(erasure: Erasure, found: Found, now: int) -> Erasure:
    """The erasure after a page.

    >>> from uuid import UUID
    >>> it = UUID(int=1)
    >>> one = Erasure(
    ...     it,
    ...     it,
    ...     it,
    ...     "a",
    ...     b"",
    ...     3,
    ...     False,
    ...     False,
    ...     ErasureStatus.RUNNING,
    ...     "",
    ...     "",
    ...     0,
    ...     0,
    ...     surface=len(SURFACES) - 1,
    ... )
    >>> moved(one, Found(("7",), {"audit_log": 1}, {}), 5).after
    ('7',)
    >>> over = moved(one, Found(None, {}, {"audit_log": 2}), 5)
    >>> over.status, over.kept, over.ended_at, over.passes
    (<ErasureStatus.DONE: 'done'>, {'audit_log': 2}, 5, 1)
    >>> moved(one, Found(None, {}, {}, waits=1), 5).status
    <ErasureStatus.WAITING: 'waiting'>
    >>> moved(replace(one, dry_run=True), Found(None, {}, {}, waits=1), 5).status
    <ErasureStatus.DONE: 'done'>

    Whatever went may have been read before by somebody who writes it again, so another pass looks for that.

    >>> again = moved(replace(one, found=1), Found(None, {}, {}), 5)
    >>> again.status, again.confirms
    (<ErasureStatus.WAITING: 'waiting'>, True)
    >>> last = replace(again, surface=SURFACES.index("frames"), found=0)
    >>> moved(last, Found(None, {"frames": 1}, {}), 9).status, moved(last, Found(None, {}, {}), 9).status
    (<ErasureStatus.WAITING: 'waiting'>, <ErasureStatus.DONE: 'done'>)
    """
    if is_new_pass(erasure):
        # What stays and what waits is counted again. What is gone is not found twice.
        kept = erasure.kept if erasure.confirms else {}
        erasure = replace(erasure, kept=kept, waits=0, found=0)
    erasure = replace(
        erasure,
        status=ErasureStatus.RUNNING,
        updated_at=now,
        erased=_sum(erasure.erased, found.erased),
        # A pass that confirms has not seen all that stays.
        kept=erasure.kept if erasure.confirms else _sum(erasure.kept, found.kept),
        waits=erasure.waits + found.waits,
        found=erasure.found + sum(rows for name, rows in found.erased.items() if name not in TAKEN_ALL),
    )
    if found.last is not None:
        return replace(erasure, after=found.last)
    if erasure.surface + 1 < (_CONFIRMED if erasure.confirms else len(SURFACES)):
        return replace(erasure, surface=erasure.surface + 1, after=())
    ended = replace(erasure, surface=0, after=(), passes=erasure.passes + 1)
    if erasure.dry_run or not (erasure.waits or erasure.found):
        return replace(ended, status=ErasureStatus.DONE, ended_at=now)
    return replace(ended, status=ErasureStatus.WAITING, confirms=erasure.confirms or settles(erasure))


def is_new_pass(erasure: Erasure) -> bool:
    """Whether the next page is the first of a pass."""
    return erasure.surface == 0 and not erasure.after


def settles(ended: Erasure) -> bool:
    """Whether what was written before this pass, which has ended, need not be looked at again.

    What a row has in it changes only as it is written, and what had the value is gone by now, unless it was
    waited for. A row of an event that a later pass finds is looked at all the same.
    """
    return not ended.waits


def takes_over(erasure: Erasure) -> bool:
    """Whether it looks before its next page for events that a stopped one of the same value had come to.

    One that only counts leaves them where they are, so it looks once.
    """
    return not erasure.dry_run or is_new_pass(erasure)


def joined(erasure: Erasure, events: int) -> Erasure:
    """The erasure once it has taken over this many events that a stopped one of the same value had come to.

    What belongs to them may lie behind it in this pass, so another pass looks for it.

    >>> from uuid import UUID
    >>> it = UUID(int=1)
    >>> one = Erasure(it, it, it, "a", b"", 3, False, False, ErasureStatus.RUNNING, "", "", 0, 0)
    >>> joined(one, 2).found, joined(replace(one, surface=2), 2).found
    (0, 2)
    """
    return erasure if is_new_pass(erasure) else replace(erasure, found=erasure.found + events)


def keeps_events(ended: Erasure) -> bool:
    """Whether the events that it has come to stay noted, for another of the same value to go on with.

    Of an event whose request is gone nobody could say later whose it was.
    """
    return ended.status is ErasureStatus.STOPPED and not ended.dry_run


def is_due(erasure: Erasure, now: int) -> bool:
    """Whether the next page may be looked at.

    >>> from uuid import UUID
    >>> it = UUID(int=1)
    >>> one = Erasure(it, it, it, "a", b"", 3, False, False, ErasureStatus.WAITING, "", "", 0, 0)
    >>> is_due(one, 4_999), is_due(one, 5_000)
    (False, True)
    """
    if erasure.status is ErasureStatus.WAITING:
        return erasure.updated_at + rest_ms(erasure) <= now
    return erasure.status is ErasureStatus.RUNNING


def rest_ms(erasure: Erasure) -> int:
    """How long it rests between two passes.

    >>> from uuid import UUID
    >>> it = UUID(int=1)
    >>> one = Erasure(it, it, it, "a", b"", 3, False, False, ErasureStatus.WAITING, "", "", 0, 9_000_000)
    >>> rest_ms(one)
    5000
    >>> [rest_ms(replace(one, waits=1, updated_at=age)) for age in (30_000, 120_000, 9_000_000)]
    [5000, 12000, 300000]
    """
    if not erasure.waits:
        return REST_MS
    return min(REST_MOST_MS, max(REST_MS, (erasure.updated_at - erasure.created_at) // REST_PART))


def stopped(erasure: Erasure, now: int) -> Erasure:
    """The erasure after somebody has stopped it; one that is over stays as it is."""
    if erasure.status in OVER:
        return erasure
    return replace(erasure, status=ErasureStatus.STOPPED, updated_at=now, ended_at=now)


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> Mapping[str, int]:
    return dict(Counter(one) + Counter(other))
