"""Unpacks an OCI image layout, layer by layer, believing nothing that it says of itself."""

import gzip
import hashlib
import io
import platform
import re
import tarfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, TypeVar, cast

import msgspec

from sexton_runner.images.tree import BadTree, Tree, parts_of

MAX_BYTES = 16 << 30
MAX_ENTRIES = 1_000_000
MAX_LAYERS = 256
MAX_DOCUMENT_BYTES = 4 << 20
MAX_HEADER_BYTES = 2 << 20
"""Names, links and attributes of one entry: a header that says it is larger would be read whole."""
INDEX = "application/vnd.oci.image.index.v1+json"
MANIFESTS = ("application/vnd.oci.image.manifest.v1+json",)
LAYERS = {
    "application/vnd.oci.image.layer.v1.tar": False,
    "application/vnd.oci.image.layer.v1.tar+gzip": True,
}
"""Kinds of layers, and whether they are compressed."""
WHITEOUT, OPAQUE = ".wh.", ".wh..wh..opq"
NAME = "org.opencontainers.image.ref.name"
_HEX = re.compile("[0-9a-f]{64}")
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


T = TypeVar("T")


class BadLayout(Exception):
    """The layout cannot be used; the text says what is wrong with it."""


class _Platform(msgspec.Struct, frozen=True):
    architecture: str = ""
    os: str = "linux"


class _Blob(msgspec.Struct, rename="camel"):
    digest: str
    size: int
    media_type: str = ""
    annotations: dict[str, str] = {}
    platform: _Platform | None = None


class _Index(msgspec.Struct):
    manifests: list[_Blob]


class _Manifest(msgspec.Struct):
    layers: list[_Blob]


@dataclass(slots=True)
class Unpacked:
    """What was made of a layout, and what of it was left out."""

    entries: int = 0
    bytes: int = 0
    left_out: list[str] = field(default_factory=list)

    def leave_out(self, name: str, why: str) -> None:
        """Note it; of very many the first."""
        if len(self.left_out) < MAX_LAYERS:
            self.left_out.append(f"{name[:200]}: {why}")


class _Counted(io.RawIOBase):
    """A stream that ends a reader which wants more than it may have."""

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__()
        self._stream = stream
        self.left = MAX_HEADER_BYTES

    def read(self, size: int = -1, /) -> bytes:
        piece = self._stream.read(size)
        self.left -= len(piece)
        if self.left < 0:
            raise BadLayout("a layer has an entry with a larger header than 2 MiB")
        return piece


def unpack(layout: Path, wanted: str, root: Path, *, max_bytes: int = MAX_BYTES) -> Unpacked:
    """Unpack the image of this name, or the only one; raises ``BadLayout``. ``root`` is an empty folder."""
    manifest = _read(_manifest_of(layout, wanted), layout, _Manifest)
    if len(manifest.layers) > MAX_LAYERS:
        raise BadLayout(f"the image has more than {MAX_LAYERS} layers")
    done, tree = Unpacked(), Tree(root)
    for blob in manifest.layers:
        if blob.media_type not in LAYERS:
            raise BadLayout(f"a layer is {blob.media_type[:100]!r}; uncompressed and gzip layers can be read")
        _verify(layout, blob)
        with _place(layout, blob).open("rb") as file:
            packed = LAYERS[blob.media_type]
            stream = cast(BinaryIO, gzip.GzipFile(fileobj=file)) if packed else file
            try:
                _unpack_layer(stream, tree, done, max_bytes)
            except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, UnicodeError) as fault:
                raise BadLayout(f"the layer {blob.digest[:19]} cannot be read: {fault}") from fault
            except (BadTree, ValueError, OSError) as fault:
                raise BadLayout(f"the layer {blob.digest[:19]}: {fault}") from fault
    return done


def _unpack_layer(stream: BinaryIO, tree: Tree, done: Unpacked, max_bytes: int) -> None:
    counted = _Counted(stream)
    with tarfile.open(fileobj=counted, mode="r|", errorlevel=2) as archive:
        while (member := archive.next()) is not None:
            done.entries += 1
            done.bytes += max(0, member.size)
            if done.entries > MAX_ENTRIES or done.bytes > max_bytes:
                raise BadLayout(f"the image has more than {MAX_ENTRIES} entries, or {max_bytes >> 20} MiB")
            # From here to the next header no more may come than the entry said.
            counted.left = max(0, member.size) + MAX_HEADER_BYTES
            _place_member(archive, member, tree, done)
            # It remembers every entry otherwise, of which there may be a million.
            vars(archive)["members"].clear()
            counted.left = MAX_HEADER_BYTES


def _place_member(archive: tarfile.TarFile, member: tarfile.TarInfo, tree: Tree, done: Unpacked) -> None:
    parts = parts_of(member.name)
    base = parts[-1] if parts else ""
    if base == OPAQUE:
        tree.empty(parts[:-1])
    elif base.startswith(WHITEOUT):
        tree.remove((*parts[:-1], *parts_of(base.removeprefix(WHITEOUT))))
    elif member.isdir():
        tree.make_folder(parts, member.mode)
    elif member.issym():
        tree.symlink(parts, member.linkname)
    elif member.islnk():
        tree.hardlink(parts, parts_of(member.linkname))
    elif member.isreg():
        content = archive.extractfile(member)
        if content is not None:
            tree.write(parts, content, member.mode)
    else:
        done.leave_out(member.name, "a device, pipe or socket")
        return
    if member.isreg() and member.mode & 0o6000:
        done.leave_out(member.name, "the right to take another user's or group's identity")


def _manifest_of(layout: Path, wanted: str) -> _Blob:
    try:
        content = (layout / "index.json").read_bytes()[: MAX_DOCUMENT_BYTES + 1]
        index = msgspec.json.decode(content, type=_Index)
    except (OSError, msgspec.MsgspecError) as fault:
        raise BadLayout(f"{layout} is no OCI image layout: {fault}") from fault
    named = [each for each in index.manifests if not wanted or each.annotations.get(NAME) == wanted]
    return _pick(named, layout, wanted)


def _pick(found: Sequence[_Blob], layout: Path, wanted: str) -> _Blob:
    mine = MACHINES.get(platform.machine(), platform.machine())
    fitting = [each for each in found if each.platform in (None, _Platform(mine))]
    if len(fitting) != 1:
        name = f"of the name {wanted!r} " if wanted else ""
        raise BadLayout(
            f"the layout has {len(fitting)} images {name}for linux/{mine}; name one: oci:DIR:NAME"
        )
    [blob] = fitting
    if blob.media_type == INDEX:
        inner = [each for each in _read(blob, layout, _Index).manifests if each.media_type != INDEX]
        return _pick(inner, layout, "")
    return blob


def _place(layout: Path, blob: _Blob) -> Path:
    kind, _, name = blob.digest.partition(":")
    if kind != "sha256" or not _HEX.fullmatch(name):
        raise BadLayout(f"{blob.digest[:100]!r} is no SHA-256")
    place = layout / "blobs" / "sha256" / name
    if place.is_symlink() or not place.is_file():
        raise BadLayout(f"{blob.digest} is missing")
    return place


def _verify(layout: Path, blob: _Blob) -> None:
    place = _place(layout, blob)
    with place.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if place.stat().st_size != blob.size or f"sha256:{found}" != blob.digest:
        raise BadLayout(f"{blob.digest} is not what it says: it was damaged or exchanged")


def _read(blob: _Blob, layout: Path, shape: type[T]) -> T:
    if blob.size > MAX_DOCUMENT_BYTES:
        raise BadLayout(f"{blob.digest[:19]} is larger than 4 MiB")
    _verify(layout, blob)
    try:
        return msgspec.json.decode(_place(layout, blob).read_bytes(), type=shape)
    except msgspec.MsgspecError as fault:
        raise BadLayout(f"{blob.digest[:19]} cannot be read: {fault}") from fault
