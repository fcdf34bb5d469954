"""Which files an event brings, and how long they are kept."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from sexton_storage.records.artefacts import Artefact
from sexton_storage.records.blobs import UNOWNED_KEEP_MS, Blob, BlobState
from sexton_storage.records.event_files import EventFile, Missing, NewFiles, NotBrought, WantedFile
from sexton_storage.records.events import Event

DEFAULT_MEDIA_TYPE = "application/octet-stream"


def bring(
    new: NewFiles,
    wanted: Sequence[WantedFile],
    artefacts: Sequence[Artefact | None],
    blobs: Mapping[UUID, Blob],
) -> Sequence[EventFile] | Missing:
    """Give all files as they are kept then, or the first that cannot be.

    ``artefacts`` has a place for each file that is wanted, ``blobs`` what those and the uploads name.

    >>> one, two, three = UUID(int=1), UUID(int=2), UUID(int=3)
    >>> new = NewFiles(one, one, two, three, max_bytes=9, now=7)
    >>> blob = Blob(one, two, three, bytes(32), 9, 9, BlobState.KEPT, 0, 0, 0)
    >>> upload = WantedFile("a", upload_id=one)
    >>> [(file.number, file.name, file.size) for file in bring(new, [upload], [None], {one: blob})]
    [(0, 'a', 9)]
    >>> bring(new, [upload, upload], [None, None], {one: blob})
    Missing(number=1, why=<NotBrought.TOO_LARGE: 'too_large'>)

    An upload is its sender's and nobody else's; an artefact is the workspace's.

    >>> from msgspec.structs import replace
    >>> bring(new, [upload], [None], {one: replace(blob, lease_id=two)})
    Missing(number=0, why=<NotBrought.NOT_SENT: 'not_sent'>)
    >>> bring(new, [WantedFile("a", event_id=three)], [None], {})
    Missing(number=0, why=<NotBrought.NOT_LEFT: 'not_left'>)
    >>> left = Artefact(one, two, two, three, two, 1, "a", "text/plain", one, bytes(32), 9, 0)
    >>> [file.media_type for file in bring(new, [WantedFile("a", event_id=three)], [left], {one: blob})]
    ['text/plain']
    """
    files: list[EventFile] = []
    left = new.max_bytes
    for number, (one, artefact) in enumerate(zip(wanted, artefacts, strict=True)):
        file = _file(new, number, one, artefact, blobs)
        if isinstance(file, NotBrought):
            return Missing(number, file)
        left -= file.size
        if left < 0:
            return Missing(number, NotBrought.TOO_LARGE)
        files.append(file)
    return files


def _file(
    new: NewFiles, number: int, wanted: WantedFile, artefact: Artefact | None, blobs: Mapping[UUID, Blob]
) -> EventFile | NotBrought:
    own = wanted.upload_id
    blob_id = own if own is not None else None if artefact is None else artefact.blob_id
    blob = None if blob_id is None else blobs.get(blob_id)
    if blob is None or blob.state is not BlobState.KEPT or blob.workspace_id != new.workspace_id:
        return NotBrought.NOT_LEFT if own is None else NotBrought.NOT_SENT
    if own is not None and blob.lease_id != new.sender_id:
        return NotBrought.NOT_SENT
    kind = DEFAULT_MEDIA_TYPE if artefact is None else artefact.media_type
    return EventFile(
        event_id=new.event_id,
        number=number,
        zombie_id=new.zombie_id,
        workspace_id=new.workspace_id,
        name=wanted.name,
        media_type=wanted.media_type or kind,
        blob_id=blob.id,
        sha256=blob.sha256,
        size=blob.size,
        created_at=new.now,
    )


def is_over(file: EventFile, event: Event | None, now: int, keep_ms: int) -> bool:
    """Whether the file goes: its event is over and its time is past, or the event never came.

    >>> file = EventFile(
    ...     UUID(int=1), 0, UUID(int=1), UUID(int=1), "a", "a/b", UUID(int=1), bytes(32), 1, created_at=0
    ... )
    >>> is_over(file, None, UNOWNED_KEEP_MS - 1, 0), is_over(file, None, UNOWNED_KEEP_MS, 0)
    (False, True)
    """
    if event is None:
        return file.created_at + UNOWNED_KEEP_MS <= now
    return event.completed_at is not None and file.created_at + keep_ms <= now
