"""Says what a batch of the archive is made of, with hashes to hold it to, and which manifest came before."""

import hashlib
import re
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from sexton_storage.archives.place import BATCHES, MANIFESTS
from sexton_storage.records.archives import ArchiveKind, TableSum

FORMAT: Final = 1
_NAME: Final = re.compile(r"(\d{10,})-([0-9a-f]{12})\.(\d+)")


class BadManifest(ValueError):
    """A manifest that is not what was written; the text says how it differs."""


class ArchiveObject(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    name: str
    table: str
    format: str
    """``jsonl.gz`` or ``parquet``."""
    rows: int
    size: int
    sha256: str


class ArchivedRows(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What all lines of a table come to."""

    rows: int
    line_sum: str
    """Adds up the hashes of all lines, in whatever order; a number too long for many readers of JSON."""
    nanos: dict[str, int]
    """The sum of each column of money, in billionths of a US dollar."""

    @property
    def sum(self) -> TableSum:
        return TableSum(self.rows, int(self.line_sum))


class Previous(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    number: int
    sha256: str


class ArchiveManifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Times are Unix ms by the database's clock."""

    format: int = FORMAT
    installation: str
    number: int
    id: UUID
    fence: int
    """Which try this is; of several of one number and id the greatest counts."""
    kind: ArchiveKind
    source: str
    workspace_id: UUID | None
    """None: of all workspaces."""
    first_id: UUID
    last_id: UUID
    """No event or delivery of the batch is outside these two."""
    first_at: int | None
    last_at: int | None
    """When the oldest and the newest row of the kind's own table came to be; None: it has none."""
    written_at: int
    release: str
    schema: int
    """The number of the newest migration."""
    previous: Previous | None
    """None: it is the first at this place."""
    tables: dict[str, ArchivedRows]
    objects: list[ArchiveObject]

    @property
    def sums(self) -> dict[str, TableSum]:
        return {name: table.sum for name, table in self.tables.items()}

    @property
    def stem(self) -> "Stem":
        return Stem(self.number, self.id.hex[-12:], self.fence)


class Stem(NamedTuple):
    """What the names of a batch's manifest and objects have in common."""

    number: int
    id_end: str
    fence: int

    def __str__(self) -> str:
        return f"{self.number:010d}-{self.id_end}.{self.fence}"

    @property
    def manifest(self) -> str:
        return f"{MANIFESTS}{self}.json"

    def object(self, table: str, part: int, form: str) -> str:
        """Name an object.

        >>> Stem(7, "00000000abcd", 2).object("events", 1, "jsonl.gz")
        'batches/0000000007-00000000abcd.2/events.00001.jsonl.gz'
        """
        return f"{BATCHES}{self}/{table}.{part:05d}.{form}"


def stem_of(name: str) -> Stem | None:
    """Read the batch out of the name of a manifest or an object; None: it is neither.

    >>> stem_of("manifests/0000000007-00000000abcd.2.json")
    Stem(number=7, id_end='00000000abcd', fence=2)
    >>> stem_of("manifests/notes.txt"), stem_of("archive.json")
    (None, None)
    """
    folder, _, rest = name.partition("/")
    if f"{folder}/" == MANIFESTS and rest.endswith(".json"):
        rest = rest.removesuffix(".json")
    elif f"{folder}/" == BATCHES:
        rest = rest.partition("/")[0]
    else:
        return None
    found = _NAME.fullmatch(rest)
    return None if found is None else Stem(int(found[1]), found[2], int(found[3]))


def sha256_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class _Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sha256: str
    manifest: msgspec.Raw


class _Format(msgspec.Struct, frozen=True):
    format: int


def encode_manifest(manifest: ArchiveManifest) -> bytes:
    """Give the object's bytes, with a hash of the manifest itself."""
    raw = msgspec.json.encode(manifest)
    return msgspec.json.encode(_Kept(sha256_of(raw), msgspec.Raw(raw))) + b"\n"


def decode_manifest(content: bytes) -> ArchiveManifest:
    """Read a manifest that is whole. Raises BadManifest."""
    try:
        kept = msgspec.json.decode(content, type=_Kept)
        if sha256_of(bytes(kept.manifest)) != kept.sha256:
            raise BadManifest("it was altered: its own hash differs")
        form = msgspec.json.decode(kept.manifest, type=_Format).format
        if form != FORMAT:
            raise BadManifest(f"it has format {form}, and this release reads format {FORMAT}")
        return msgspec.json.decode(kept.manifest, type=ArchiveManifest)
    except msgspec.DecodeError as fault:
        raise BadManifest(f"it was written by halves or altered: {fault}") from fault
