"""Looks again, in the commit of an event, at what the event was made from."""

from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from sexton_storage.decisions.sources import stands
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.records.sources import Source, SourceKind
from sexton_storage.writes import AppendEvent

# The lock holds back whoever would change a row until the event is there to be found: an erasure that comes
# to the row later looks for the event in a later pass. Whoever is changing one at this moment is not waited
# for, since that is as good as changed: a page of an erasure would hold up all other writes of the batch.
_READ: Final[Mapping[SourceKind, str]] = {
    SourceKind.EVENT: """
SELECT id, sha256(convert_to(request_json || chr(10) || coalesce(source_event_id, ''), 'UTF8'))
  FROM events WHERE id = ANY($1) ORDER BY id FOR SHARE SKIP LOCKED
""",
    SourceKind.FOLLOW_UP: """
SELECT id, sha256(convert_to(message, 'UTF8')) FROM follow_ups
 WHERE id = ANY($1) ORDER BY id FOR SHARE SKIP LOCKED
""",
    SourceKind.DELIVERY: """
SELECT delivery_id, sha256(body) FROM webhook_bodies
 WHERE delivery_id = ANY($1) ORDER BY delivery_id FOR SHARE SKIP LOCKED
""",
}


async def which_stand(connection: Connection, writes: Sequence[AppendEvent]) -> list[bool]:
    """Whether each is made from what is still so; those that are, stay so until the commit."""
    ids: dict[SourceKind, set[UUID]] = {}
    for write in writes:
        if write.source is not None:
            ids.setdefault(write.source.kind, set()).add(write.source.id)
    now: dict[UUID, Source] = {}
    for kind, wanted in ids.items():
        for id_, sha256 in await connection.fetch(_READ[kind], list(wanted)):
            now[id_] = Source(kind, id_, sha256)
    return [stands(one.source, None if one.source is None else now.get(one.source.id)) for one in writes]
