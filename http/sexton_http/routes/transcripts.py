"""Transcripts: what each attempt at an event said and did, written by its run and read by people."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec

from sexton_actors.lease.transitions.state import STALE, UNKNOWN, fenced
from sexton_actors.refusal import Refusal
from sexton_http.answers import Problem
from sexton_http.bodies.cursors import EntryCursor, decode_entry, encode, fingerprint
from sexton_http.bodies.fencing_token import FENCED, TAG, Token
from sexton_http.bodies.shapes import Body, Cursor, Moment, Query, Shape
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import KIB, MAX_BODY_BYTES, Auth, NoBody, NoQuery, operation
from sexton_http.routes.shared.event_lookup import find_event
from sexton_storage.documents import to_json
from sexton_storage.records.leases import LeaseToken
from sexton_storage.records.transcripts import (
    WHOLE_BYTES,
    EntryPlace,
    EntryQuery,
    NewEntry,
    Transcript,
    TranscriptEntry,
)
from sexton_storage.records.users import Role

EVENTS: Final = "Events"
MAX_ENTRIES: Final = 256
MAX_ENTRY_BYTES: Final = 256 * KIB
MAX_NUMBER: Final = 1_000_000
MAX_ATTEMPTS: Final = 200
PAGE_BYTES: Final = 4 * 1024 * KIB
"""Bound of a page; what is beyond it begins the next one."""


class EntryKind(StrEnum):
    """What an entry tells."""

    PROMPT = "prompt"
    """What a model was given to read: its instructions, the event, or a word of the platform."""
    MODEL = "model"
    """What a model answered."""
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    GATE = "gate"
    """A question to a person, and later its answer."""
    STEP = "step"
    """A step of a program, or a check, begins or ends."""
    OUTPUT = "output"
    """What a program wrote to one of its streams."""
    NOTE = "note"
    END = "end"


class EntryIn(Body):
    number: Annotated[int, msgspec.Meta(ge=1, le=MAX_NUMBER)]
    """From 1 within the lease, each once: the same number again changes nothing."""
    kind: EntryKind
    data: dict[str, Any]
    """Redacted by the runner; at most 256 KiB as JSON."""
    at_ms: Moment | None = None


class Entries(Body):
    entries: Annotated[tuple[EntryIn, ...], msgspec.Meta(min_length=1, max_length=MAX_ENTRIES)]
    fencing_token: Token = None


class EntriesTaken(Shape):
    accepted: int
    """As many as were sent, those that were there already included."""
    more: bool
    """False: nothing further of this lease will be kept."""


class TranscriptQuery(Query):
    attempt: Annotated[int, msgspec.Meta(ge=1, le=MAX_NUMBER)] | None = None
    """Only this attempt; without it all of them, the first one first."""
    number: Annotated[int, msgspec.Meta(ge=1, le=MAX_NUMBER)] | None = None
    """Begin with this entry; needs the attempt, and not beside a cursor."""
    whole: bool = False
    """With the data of long entries, which is left out otherwise."""
    cursor: Cursor | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50


class TranscriptItem(Shape):
    attempt: int
    number: int
    """Counts from 1 within the attempt; a number that is not there was lost on its way."""
    kind: str
    at_ms: int
    data: Any
    """Null where it was left out."""
    bytes: int
    """How long the data is as JSON."""
    truncated: bool
    """Whether the data was left out, as lists do with what is over 4,096 bytes."""


class AttemptItem(Shape):
    attempt: int
    began_at: int
    entries: int
    missing: int
    """Entries that were numbered and never came."""
    bytes: int
    cut: bool
    """The bound of a run was reached; the last entry says so."""
    removed: bool
    """The entries made room for newer transcripts of the workspace."""


class TranscriptPage(Shape):
    items: list[TranscriptItem]
    attempts: list[AttemptItem]
    """Those that have a transcript, the newest 200."""
    next_cursor: str | None


@operation(
    "POST",
    "/v1/runners/me/leases/{lease_id}/transcript",
    tag=TAG,
    auth=Auth.RUNNER,
    status=202,
    codes=FENCED,
    max_body=MAX_BODY_BYTES,
)
async def append_transcript(call: Call[Entries, NoQuery]) -> EntriesTaken | Refusal:
    """Add entries to the transcript of a live lease."""
    world, body = call.ctx.world, call.body
    entries = tuple(_entry(place, entry) for place, entry in enumerate(body.entries))
    lease = await world.storage.leases.load(call.id("lease_id"))
    if lease is None:
        return Refusal(UNKNOWN, f"There is no lease {call.id('lease_id')} of this runner.")
    refusal = fenced(lease, call.host.runner.id, body.fencing_token, world.now_ms(), STALE)
    if refusal is None:
        held = LeaseToken(lease.id, lease.fencing_token)
        kept = await world.storage.transcripts.append(lease.zombie_id, held, entries, world.transcripts)
        if kept is not None:
            return _taken(call, entries, kept)
        refusal = Refusal(STALE, f"Lease {lease.id} is not held any more.")
    world.meters.refused("transcript", refusal)
    return refusal


def _taken(call: Call[Any, Any], entries: Sequence[NewEntry], kept: Transcript) -> EntriesTaken:
    counts = call.ctx.world.meters.transcripts
    counts["bytes"] += sum(len(to_json(entry.data)) for entry in entries)
    # The mark takes the place of one of these entries, and of none when they come again.
    counts["cut"] += kept.is_cut and kept.last_number in {entry.number for entry in entries}
    more = not kept.is_cut and not kept.is_removed and call.ctx.world.transcripts.days > 0
    return EntriesTaken(len(entries), more)


def _entry(place: int, entry: EntryIn) -> NewEntry:
    if len(to_json(entry.data)) > MAX_ENTRY_BYTES:
        pointer = f"/entries/{place}/data"
        raise Problem("UZ-REQ-001", f"{pointer}: at most {MAX_ENTRY_BYTES} bytes", facts={"pointer": pointer})
    return NewEntry(entry.number, entry.kind, entry.at_ms, entry.data)


@operation(
    "GET",
    "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/events/{event_id}/transcript",
    tag=EVENTS,
    role=Role.USER,
    codes=("UZ-ZMB-009", "UZ-EVENT-001"),
    agents="UZ-AUTH-001",
)
async def get_zombie_transcript(call: Call[NoBody, TranscriptQuery]) -> TranscriptPage:
    """Show what the attempts at an agent's event said and did, in order."""
    zombie_id = call.id("zombie_id")
    await call.services.scopes.require_zombie(call.id("workspace_id"), zombie_id)
    return await _page(call, zombie_id)


@operation(
    "GET",
    "/v1/workspaces/{workspace_id}/events/{event_id}/transcript",
    tag=EVENTS,
    role=Role.USER,
    codes=("UZ-EVENT-001",),
)
async def get_workspace_transcript(call: Call[NoBody, TranscriptQuery]) -> TranscriptPage:
    """Show what the attempts at an event of a workspace said and did, in order."""
    return await _page(call, None)


async def _page(call: Call[NoBody, TranscriptQuery], zombie_id: UUID | None) -> TranscriptPage:
    query, event_id, storage = call.query, call.id("event_id"), call.ctx.world.storage
    filters = fingerprint("transcript", event_id, query.attempt, query.whole)
    after = _begin(query, filters)
    event = await find_event(call, zombie_id)
    longest = MAX_ENTRY_BYTES if query.whole else WHOLE_BYTES
    await call.reserve(min(PAGE_BYTES, query.limit * longest))
    asked = EntryQuery(
        attempt=query.attempt,
        after=after,
        limit=query.limit + 1,
        max_bytes=PAGE_BYTES,
        whole=query.whole,
    )
    entries = await storage.transcripts.read(event.zombie_id, event_id, asked)
    attempts = await storage.transcripts.attempts(event.zombie_id, event_id, limit=MAX_ATTEMPTS)
    shown = _within(entries[: query.limit], whole=query.whole)
    return TranscriptPage(
        [_item(entry, whole=query.whole) for entry in shown],
        [_attempt(row) for row in attempts],
        _following(shown, attempts, query, filters),
    )


def _begin(query: TranscriptQuery, filters: str) -> EntryPlace:
    if query.cursor is not None:
        if query.number is not None:
            raise Problem("UZ-REQ-001", "cursor and number exclude each other")
        place = decode_entry(query.cursor, filters)
        return EntryPlace(place.attempt, place.number)
    if query.number is None:
        return EntryPlace()
    if query.attempt is None:
        raise Problem("UZ-REQ-001", "number: say of which attempt", facts={"parameter": "number"})
    return EntryPlace(query.attempt, query.number - 1)


def _within(entries: Sequence[TranscriptEntry], *, whole: bool) -> Sequence[TranscriptEntry]:
    """As many entries as a page may have in bytes, and at least one."""
    left = PAGE_BYTES
    for count, entry in enumerate(entries):
        left -= entry.size if whole or entry.size <= WHOLE_BYTES else 0
        if left < 0 and count:
            return entries[:count]
    return entries


def _following(
    shown: Sequence[TranscriptEntry], attempts: Sequence[Transcript], query: TranscriptQuery, filters: str
) -> str | None:
    """Where to go on; None at the end. A run that goes on may add more later."""
    if not shown:
        return None
    last = shown[-1]
    rows = [row for row in attempts if query.attempt in {None, row.attempt} and not row.is_removed]
    end = max(((row.attempt, row.last_number) for row in rows), default=(0, 0))
    if (last.attempt, last.number) >= end:
        return None
    return encode(EntryCursor(last.attempt, last.number, filters))


def _item(entry: TranscriptEntry, *, whole: bool) -> TranscriptItem:
    cut = not whole and entry.size > WHOLE_BYTES
    data = None if cut else entry.data
    return TranscriptItem(entry.attempt, entry.number, entry.kind, entry.at_ms, data, entry.size, cut)


def _attempt(row: Transcript) -> AttemptItem:
    return AttemptItem(
        row.attempt, row.began_at, row.entries, row.missing, row.bytes, row.is_cut, row.is_removed
    )
