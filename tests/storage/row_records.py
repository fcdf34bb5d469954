"""Rows beside those that the journal writes: what an erasure looks through as well, and bulk jobs."""

from typing import Final
from uuid import UUID

from sexton_storage.documents import to_json
from sexton_storage.memory.tables import Tables
from sexton_storage.records.deliveries import DeliveryAddress, DeliveryVerdict, WebhookDelivery
from sexton_storage.records.events import Event
from sexton_storage.records.failures import FailureGroup
from sexton_storage.records.key_uses import KeyUse
from sexton_storage.records.transcripts import Transcript, TranscriptEntry
from tests.storage.row_texts import document_of, request_of, text_of

TRANSCRIBED: Final = 2
DELIVERED: Final = 3
FAILED: Final = 5
"""One event in this number has a transcript, came by a delivery, is the sample of a group of failures."""


def put_beside_event(tables: Tables, event: Event) -> None:
    """What one event brings along, by its id."""
    number = event.id.int >> 8
    if number % TRANSCRIBED == 0:
        _transcript(tables, event, entries=1 + number % 3)
    if number % DELIVERED == 0:
        _delivery(tables, event, has_body=number % 2 == 0)
    if number % FAILED == 0:
        _failure_group(tables, event)


def put_beside_tenant(tables: Tables, tenant_id: UUID, now: int) -> None:
    """Answers that were saved under idempotency keys: one that is there, one of a request that goes on."""
    for number, status in enumerate((200, None)):
        key, sealed = bytes([number]), b"sealed"
        use = KeyUse(tenant_id, key, b"d", tenant_id, now, now, resumable=True, sealed=sealed, status=status)
        tables.key_uses[tenant_id, key] = use


def _transcript(tables: Tables, event: Event, *, entries: int) -> None:
    key = event.zombie_id, event.id, 1
    made = {}
    for number in range(1, entries + 1):
        data = document_of(UUID(int=event.id.int + number), {"text": "fine", "n": number})
        size = len(to_json(data).encode())
        made[number] = TranscriptEntry(*key, number, "note", event.created_at, data, size)
    total = sum(entry.size for entry in made.values())
    tables.transcript_entries[key] = made
    tables.transcripts[key] = Transcript(*key, event.workspace_id, event.created_at, entries, total, entries)


def _delivery(tables: Tables, event: Event, *, has_body: bool) -> None:
    delivery_id = UUID(int=event.id.int ^ 1)
    body = request_of(delivery_id).encode() if has_body else None
    tables.deliveries[delivery_id] = WebhookDelivery(
        id=delivery_id,
        zombie_id=event.zombie_id,
        workspace_id=event.workspace_id,
        tenant_id=event.tenant_id,
        at=event.created_at,
        address=DeliveryAddress.SOURCE,
        source="github",
        segment_hash=None,
        verdict=DeliveryVerdict.ACCEPTED,
        code=None,
        reason="",
        detail=text_of(delivery_id, "taken"),
        event_id=None if has_body else event.id,
        headers=document_of(delivery_id, {"x-from": {"value": "somebody", "is_secret": False}}),
        size=40,
        body_bytes=0 if body is None else len(body),
    )
    if body is not None:
        tables.delivery_bodies[delivery_id] = body


def _failure_group(tables: Tables, event: Event) -> None:
    group = FailureGroup(
        id=UUID(int=event.id.int ^ 2),
        tenant_id=event.tenant_id,
        workspace_id=event.workspace_id,
        zombie_id=event.zombie_id,
        digest=event.id.bytes,
        failure_label="odd",
        error_code=None,
        message=text_of(UUID(int=event.id.int ^ 2), "it did not work"),
        sample_event_id=event.id,
        first_seen_at=event.created_at,
        last_seen_at=event.created_at,
        count=1,
    )
    tables.failure_groups[group.id] = group
