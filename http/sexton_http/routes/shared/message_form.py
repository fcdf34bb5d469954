"""A message and its files in one form, as ``curl -F`` sends them."""

import hashlib
from typing import Any, Final
from uuid import UUID

import msgspec
import trio

from sexton_http.answers import Problem
from sexton_http.bodies.file_names import DEFAULT_MEDIA_TYPE, MEDIA_TYPE_CHARS, fault_of_names, is_media_type
from sexton_http.bodies.multipart import Part
from sexton_http.gateway.incoming_form import IncomingForm, Intake
from sexton_http.routes.shared.upload_room import no_room
from sexton_storage.records.blobs import PART_BYTES, Blob, Misplaced, NoRoom
from sexton_storage.records.event_files import FILES_OF_EVENT
from sexton_storage.senders import sender_of

MESSAGE_BYTES: Final = 8192
FIELD: Final = "message"
NAME_CHARS: Final = 64
"""As much of an unknown field's name is repeated to its sender."""
GIVE_UP_S: Final = 5.0
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "required": [FIELD],
    "properties": {
        FIELD: {"type": "string", "minLength": 1, "maxLength": MESSAGE_BYTES},
        "file": {
            "type": "array",
            "maxItems": FILES_OF_EVENT,
            "items": {"type": "string", "format": "binary"},
            "description": "Each part with a file name, whatever the part is called.",
        },
    },
}


async def read_message_form(form: IncomingForm) -> bytes:
    """Keep the files as uploads of the sender's, and give the message that names them. Raises Problem."""
    # Before all else: of an agent that is not there nothing is kept.
    await form.services.scopes.require_zombie(form.params["workspace_id"], form.params["zombie_id"])
    message: str | None = None
    names: list[str] = []
    files: list[dict[str, Any]] = []
    left = form.services.ctx.world.files.file_bytes
    while (part := await form.parts.part()) is not None:
        if part.filename is None:
            if part.name != FIELD or message is not None:
                fault = "it stands there twice" if part.name == FIELD else "a message has no such field"
                raise _refused(f"/{part.name[:NAME_CHARS]}", fault)
            message = await _text(form)
            continue
        names.append(part.filename)
        _check_names(names)
        blob = await _keep(form, left)
        left -= blob.size
        files.append({"name": part.filename, "upload_id": blob.id, "media_type": _media_type(part)})
    if message is None:
        raise _refused(f"/{FIELD}", "the form has no field of this name")
    return msgspec.json.encode({FIELD: message, "files": files})


MESSAGE_FORM: Final = Intake(read_message_form, max_parts=FILES_OF_EVENT + 2, schema=SCHEMA)
"""One more than may be, so that it can be said what is wrong with it."""


def _check_names(names: list[str]) -> None:
    """Before a byte of the file comes. Raises Problem UZ-REQ-001."""
    place = len(names) - 1
    fault = fault_of_names(names)
    if place >= FILES_OF_EVENT:
        raise _refused("/files", f"a message brings {FILES_OF_EVENT} files at most")
    if fault is not None:
        raise _refused(f"/files/{place}/name", fault[1])


def _media_type(part: Part) -> str:
    kind = part.media_type
    return kind if len(kind) <= MEDIA_TYPE_CHARS and is_media_type(kind) else DEFAULT_MEDIA_TYPE


async def _text(form: IncomingForm) -> str:
    content = bytearray()
    while piece := await form.parts.read():
        content += piece
        if len(content) > MESSAGE_BYTES:
            raise _refused(f"/{FIELD}", f"over {MESSAGE_BYTES} bytes")
    try:
        return content.decode()
    except UnicodeDecodeError as fault:
        raise _refused(f"/{FIELD}", "not UTF-8") from fault


async def _keep(form: IncomingForm, left: int) -> Blob:
    """Keep one file, of ``left`` bytes at most. What is not whole is given up at once. Raises Problem."""
    world, workspace_id = form.services.ctx.world, form.params["workspace_id"]
    blobs, blob_id = world.storage.blobs, world.new_id()
    opened = await blobs.open(
        blob_id,
        workspace_id,
        sender_of(workspace_id, form.member.by),
        sha256=hashlib.sha256(blob_id.bytes).digest(),
        # No more than can come, so that the room that is taken meanwhile is no more than is needed.
        size=min(left, form.body.left + form.parts.held),
        quota=world.files.quota_bytes,
    )
    if isinstance(opened, NoRoom):
        raise no_room(form.services, opened)
    try:
        return await _take(form, opened)
    except BaseException:
        with trio.move_on_after(GIVE_UP_S, shield=True):
            await blobs.give_up(blob_id)
        raise


async def _take(form: IncomingForm, blob: Blob) -> Blob:
    blobs, most = form.services.ctx.world.storage.blobs, form.services.ctx.world.files.file_bytes
    digest, held, kept = hashlib.sha256(), bytearray(), 0
    while piece := await form.parts.read():
        digest.update(piece)
        held += piece
        if kept + len(held) > blob.size:
            raise Problem("UZ-FILE-004", f"the files of one message may have {most} bytes together")
        if len(held) >= PART_BYTES:
            part = bytes(held[:PART_BYTES])
            del held[:PART_BYTES]
            if isinstance(await blobs.append(blob.id, kept, part), Misplaced):
                raise _lost(blob.id)
            kept += PART_BYTES
    whole = await blobs.close(blob.id, tail=bytes(held), sha256=digest.digest())
    if whole is None:
        raise _lost(blob.id)
    form.services.metrics.file_bytes.labels("in").inc(whole.size)
    return whole


def _refused(pointer: str, why: str) -> Problem:
    return Problem("UZ-REQ-001", f"{pointer}: {why}", facts={"pointer": pointer})


def _lost(blob_id: UUID) -> Problem:
    return Problem("UZ-FILE-006", f"the upload {blob_id} was given up while it came; send the form again")
