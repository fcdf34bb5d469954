"""Sends files from this machine to a workspace, part by part, for a message to bring."""

import hashlib
import mimetypes
import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Final

from sexton_cli.client import Client, Row, field
from sexton_cli.exits import CONFIG, PROTOCOL, USAGE, Fault
from sexton_cli.problems import Refused

READ_BYTES: Final = 1 << 20
OTHER_TYPE: Final = "application/octet-stream"
CHANGED: Final = "UZ-FILE-006"
_TYPES: Final = mimetypes.MimeTypes()  # Python's own: what a host adds does not change what is told.


def send_files(client: Client, workspace: str, paths: Sequence[Path]) -> list[dict[str, Any]]:
    """Send files whole, and give them as a message names them. Raises Fault."""
    names = [path.name for path in paths]
    if twice := next((name for place, name in enumerate(names) if name in names[:place]), None):
        raise Fault(f"two files are called {twice!r}", "Rename one of them.", status=USAGE)
    return [
        {
            "name": path.name,
            "upload_id": _send(client, workspace, path),
            "media_type": _TYPES.guess_type(path.name)[0] or OTHER_TYPE,
        }
        for path in paths
    ]


def _send(client: Client, workspace: str, path: Path) -> str:
    try:
        with path.open("rb") as file:
            return _send_open(client, workspace, path, file)
    except OSError as fault:
        raise Fault(f"{path}: {fault.strerror}", "Name a file that can be read.", status=CONFIG) from fault


def _send_open(client: Client, workspace: str, path: Path, file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while piece := file.read(READ_BYTES):
        digest.update(piece)
    size = file.tell()
    upload: Row = client.post(f"{workspace}/uploads", {"sha256": digest.hexdigest(), "size": size})
    upload_id: str = field(upload, "upload_id", str)
    while not field(upload, "complete", bool):
        received: int = field(upload, "received", int)
        part = os.pread(file.fileno(), field(upload, "part_bytes", int), received)
        if not part:
            raise _changed(path)
        try:
            upload = client.put_bytes(f"{workspace}/uploads/{upload_id}?offset={received}", part)
        except Refused as refusal:
            raise (_changed(path) if refusal.code == CHANGED else refusal) from None
        if not field(upload, "complete", bool) and field(upload, "received", int) <= received:
            raise Fault("the server did not take a part", "Check the server's version.", status=PROTOCOL)
    return upload_id


def _changed(path: Path) -> Fault:
    return Fault(f"{path} changed while it was sent", "Send it again.", status=CONFIG)
