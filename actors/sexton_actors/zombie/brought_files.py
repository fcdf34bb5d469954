"""Keeps the files that an event brings before the event itself, so that no run begins without them."""

from collections.abc import Sequence
from typing import assert_never
from uuid import UUID

import msgspec

from sexton_actors.event_files import names_files
from sexton_actors.protocol.zombie import Steer
from sexton_actors.refusal import Refusal
from sexton_actors.world import World
from sexton_storage.records.event_files import EventFile, Missing, NewFiles, NotBrought
from sexton_storage.records.events import Event
from sexton_storage.records.zombies import Zombie
from sexton_storage.senders import sender_of


async def bring(world: World, zombie: Zombie, message: Steer) -> Sequence[EventFile] | Refusal:
    """Keep the files of a message for the event that it will be. Raises StorageUnavailable."""
    if message.event_id is None or not message.files:
        return ()
    new = NewFiles(
        event_id=message.event_id,
        zombie_id=zombie.id,
        workspace_id=zombie.workspace_id,
        sender_id=sender_of(zombie.workspace_id, message.sender),
        max_bytes=world.files.file_bytes,
        now=world.now_ms(),
    )
    files = await world.storage.event_files.bring(new, message.files)
    return _refusal(files, message, new.max_bytes) if isinstance(files, Missing) else files


async def copy(world: World, source: Event, event_id: UUID) -> Refusal | None:
    """Keep the files of an event for its replay, all of them. Raises StorageUnavailable."""
    if not names_files(source):
        return None
    files = await world.storage.event_files.copy(source.id, event_id)
    if len(files) == len(msgspec.json.decode(source.request_json)["files"]):
        return None
    return Refusal("UZ-FILE-014", f"The files that event {source.id} brought are not kept any more.")


def _refusal(missing: Missing, message: Steer, max_bytes: int) -> Refusal:
    pointer, name = f"/files/{missing.number}", message.files[missing.number].name
    facts = {"pointer": pointer}
    match missing.why:
        case NotBrought.NOT_SENT:
            return Refusal("UZ-FILE-006", f"{pointer}: the upload of {name!r} is not complete.", facts)
        case NotBrought.NOT_LEFT:
            detail = f"{pointer}: the workspace has no event of this id that left a file {name!r}."
            return Refusal("UZ-FILE-001", detail, facts)
        case NotBrought.TOO_LARGE:
            detail = f"{pointer}: the files of one message may have {max_bytes} bytes together."
            return Refusal("UZ-FILE-004", detail, facts)
        case _:
            assert_never(missing.why)
