"""The files of a message, as its sender names them."""

from collections.abc import Sequence
from typing import Annotated, Any
from uuid import UUID

import msgspec

from sexton_actors.protocol.zombie import Accepted, AlreadyAccepted
from sexton_actors.refusal import Refusal
from sexton_http.answers import Problem
from sexton_http.bodies.file_names import MEDIA_TYPE_CHARS, NAME_BYTES, fault_of_names, is_media_type
from sexton_http.bodies.shapes import Body
from sexton_http.gateway.call import Call
from sexton_storage.records.event_files import FILES_OF_EVENT, WantedFile

FILE_CODES = ("UZ-FILE-001", "UZ-FILE-002", "UZ-FILE-003", "UZ-FILE-004", "UZ-FILE-006")
"""What is told whose message names a file that it cannot bring."""


class MessageFile(Body):
    """A file that a message brings: an upload of the sender's, or what a run of another event left."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_BYTES)]
    """Where it lies below the folder `in` of the run; of another event's file, its name there, too."""
    upload_id: UUID | None = None
    """A content that the same caller has sent whole to this workspace."""
    event_id: UUID | None = None
    """An event of this workspace that left a file of this name; of several attempts the last counts."""
    media_type: Annotated[str, msgspec.Meta(max_length=MEDIA_TYPE_CHARS)] | None = None
    """Null: that of the other event's file, else `application/octet-stream`."""


MessageFiles = Annotated[list[MessageFile], msgspec.Meta(max_length=FILES_OF_EVENT)]


def wanted_files(files: Sequence[MessageFile]) -> tuple[WantedFile, ...]:
    """Give them as they are asked for. Raises Problem UZ-REQ-001."""
    for place, file in enumerate(files):
        if (file.upload_id is None) == (file.event_id is None):
            raise _refused(place, "", "one of upload_id and event_id says where it comes from")
        if file.media_type is not None and not is_media_type(file.media_type):
            raise _refused(place, "/media_type", "no media type")
    fault = fault_of_names([file.name for file in files])
    if fault is not None:
        raise _refused(fault[0], "/name", fault[1])
    return tuple(WantedFile(file.name, file.media_type, file.upload_id, file.event_id) for file in files)


async def settle_files(
    call: Call[Any, Any], event_id: UUID, reply: Accepted | AlreadyAccepted | Refusal
) -> None:
    """Give up the files of an event that was not kept after all; it was refused, or is another's repeat."""
    if not isinstance(reply, Accepted):
        await call.ctx.world.storage.event_files.drop(event_id)


def _refused(place: int, below: str, why: str) -> Problem:
    pointer = f"/files/{place}{below}"
    return Problem("UZ-REQ-001", f"{pointer}: {why}", facts={"pointer": pointer})
