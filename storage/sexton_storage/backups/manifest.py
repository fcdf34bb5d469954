"""Says what a backup is made of, with hashes to hold it to."""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec

from sexton_storage.backups.faults import BackupFault

FORMAT: Final = 1
MANIFEST_FILE: Final = "backup.json"
PIECE_BYTES: Final = 1 << 20
_DAMAGED: Final = "Use another backup ('sexton backup list'), and find out what happened to this one"


class Kind(StrEnum):
    """CLUSTER: the files of the embedded database, with its log of writes. DUMP: rows, made by pg_dump."""

    CLUSTER = "cluster"
    DUMP = "dump"


class Wal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The write-ahead log that a copy of a cluster needs to be consistent."""

    system: str
    """The identifier that PostgreSQL gave the cluster when it was made."""
    timeline: int
    start: str
    """Positions as PostgreSQL writes them, such as ``0/3000028``."""
    stop: str


class PackedFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    size: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Times are Unix ms by the database's clock."""

    format: int = FORMAT
    id: str
    kind: Kind
    release: str
    schema: int
    """The number of the newest migration."""
    began_at: int
    ended_at: int
    """A cluster can be restored to this moment and to later ones, a dump to this moment alone."""
    wal: Wal | None = None
    recipient: str | None = None
    """The public key that the keys of the data folder are sealed to; None: they are not in the backup."""
    files: dict[str, PackedFile]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files.values())


class _Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sha256: str
    manifest: msgspec.Raw


def encode(manifest: Manifest) -> bytes:
    """Give the file's bytes, with a hash of the manifest itself."""
    raw = msgspec.json.encode(manifest)
    kept = _Kept(hashlib.sha256(raw).hexdigest(), msgspec.Raw(raw))
    return msgspec.json.encode(kept) + b"\n"


def decode(raw: bytes, place: str) -> Manifest:
    """Read a manifest that is whole and of a format that this release knows. Raises BackupFault."""
    try:
        kept = msgspec.json.decode(raw, type=_Kept)
        if hashlib.sha256(kept.manifest).hexdigest() != kept.sha256:
            raise BackupFault(f"{place} is not what was written: its hash differs", _DAMAGED)
        found = msgspec.json.decode(kept.manifest, type=msgspec.json.decode(kept.manifest, type=_Format).type)
    except msgspec.DecodeError as fault:
        raise BackupFault(f"{place} is damaged: {fault}", _DAMAGED) from fault
    return found


class _Format(msgspec.Struct, frozen=True):
    format: int

    @property
    def type(self) -> type[Manifest]:
        """The type of a manifest of this format. Raises BackupFault."""
        if self.format != FORMAT:
            raise BackupFault(
                f"the backup has format {self.format}, and this release reads format {FORMAT}",
                "Use the release that made the backup, or a newer one",
            )
        return Manifest


def read(folder: Path) -> Manifest:
    """Read the manifest of a backup's folder. Raises BackupFault."""
    path = folder / MANIFEST_FILE
    try:
        found = decode(path.read_bytes(), str(path))
    except OSError as fault:
        raise BackupFault(f"{path} cannot be read: {fault.strerror}", _DAMAGED) from fault
    if found.id != folder.name:
        raise BackupFault(
            f"{folder} holds the backup {found.id}", f"Give the folder its name {found.id} back"
        )
    return found


def pack(path: Path) -> PackedFile:
    """Hash a file."""
    digest, size = hashlib.sha256(), 0
    for piece in _pieces(path):
        digest.update(piece)
        size += len(piece)
    return PackedFile(size, digest.hexdigest())


def check_files(folder: Path, manifest: Manifest) -> None:
    """Compare each file with its hash. Raises BackupFault for the first that differs."""
    for name, packed in manifest.files.items():
        if "/" in name or name.startswith("."):
            raise BackupFault(f"{folder} names the file {name!r}, which no backup has", _DAMAGED)
        try:
            found = pack(folder / name)
        except OSError as fault:
            raise BackupFault(f"{folder / name} cannot be read: {fault.strerror}", _DAMAGED) from fault
        if found != packed:
            raise BackupFault(f"{folder / name} is not what was written: its hash differs", _DAMAGED)


def shown_time(at_ms: int) -> str:
    """Write a time as a person gives it.

    >>> shown_time(1_732_060_800_250)
    '2024-11-20T00:00:00.250Z'
    """
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            yield piece
