"""The pictures of a run: kept by their hashes beside the conversation, which holds references only."""

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from sexton_runner.redact import Redactor
from sexton_runner.wire import EventFile

MAX_BYTES: Final = 3_500_000
"""The largest that a model is shown: in base64 it is just below the 5 MB that providers take."""
MAX_SHOWN_BYTES: Final = 12 << 20
"""All pictures of one question together; providers take some 32 MB of base64 and JSON."""
MAX_KEPT: Final = 100
"""Pictures that one run may hold, beside those of its event."""
FOLDER: Final = "pictures"
SUFFIXES: Final[Mapping[str, str]] = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
}
_HEAD_BYTES: Final = 16
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class Picture(msgspec.Struct, frozen=True, tag="picture"):
    """A reference to a picture; ``path`` is where programs find it, below the folder of the run."""

    sha256: str
    media_type: str
    size: int
    path: str

    def __str__(self) -> str:
        return f"{self.path} ({self.media_type}, {self.size} bytes)"


def media_type_of(head: bytes) -> str | None:
    r"""Give the media type by the first bytes of a content; None where it is no picture that models read.

    >>> media_type_of(b"\x89PNG\r\n\x1a\n...."), media_type_of(b"\xff\xd8\xff\xe0")
    ('image/png', 'image/jpeg')
    >>> media_type_of(b"GIF89a.."), media_type_of(b"RIFF\x01\x00\x00\x00WEBPVP8 "), media_type_of(b"<svg>")
    ('image/gif', 'image/webp', None)
    """
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if head[:4] == b"RIFF" and head[8:12] == b"WEBP" else None


def latest(pictures: Sequence[Picture], most: int, most_bytes: int = MAX_SHOWN_BYTES) -> Sequence[Picture]:
    """Give the latest of different pictures that one question may show.

    The older ones go in steps of half: what a provider has cached of a conversation ends at the first place
    that is not as it was.

    >>> several = [Picture(str(n), "image/png", 10, "a") for n in range(9)]
    >>> [[one.sha256 for one in latest(several[:count], 4)] for count in (4, 5, 6, 7)]
    [['0', '1', '2', '3'], ['2', '3', '4'], ['2', '3', '4', '5'], ['4', '5', '6']]
    >>> len(latest(several, 9, 50)), len(latest(several, 0))
    (5, 0)
    """
    start, step = 0, max(1, most // 2)
    while len(pictures) - start > most or sum(one.size for one in pictures[start:]) > most_bytes:
        start += step
    return pictures[start:]


class Pictures:
    """What the model of one run may be shown, on the disk of its runner.

    ``folder`` is a new one of the runner's own; ``brought`` holds the files of the event, if it has any.
    """

    def __init__(
        self, folder: Path, redactor: Redactor, brought: Path | None, files: Iterable[EventFile]
    ) -> None:
        self._folder, self._redactor = folder, redactor
        self._places: dict[str, Path] = {}
        self.of_event = tuple(self._found(brought, files) if brought is not None else ())
        """Those that the event brings and that fit one question, in the order of its files."""
        self._kept = 0
        self.refused = ""
        """Why the model is shown none any more; empty: it is."""

    def __repr__(self) -> str:
        return f"<Pictures {len(self._places)}>"

    def fault_of(self, content: bytes) -> str | None:
        """Say why a content is not shown to a model; None: it is."""
        if media_type_of(content[:_HEAD_BYTES]) is None:
            return "it is no PNG, JPEG, GIF or WebP"
        if len(content) > MAX_BYTES:
            return f"it has {len(content)} bytes, and a picture may have {MAX_BYTES}"
        if self._redactor.is_in(content):
            return "it holds a secret that this run was lent"
        known = hashlib.sha256(content).hexdigest() in self._places
        return f"the run has {MAX_KEPT} pictures already" if self._kept >= MAX_KEPT and not known else None

    def keep(self, content: bytes, path: str) -> Picture:
        """Keep a content of which ``fault_of`` finds nothing. Raises ``OSError``."""
        sha256 = hashlib.sha256(content).hexdigest()
        if sha256 not in self._places:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            place = self._folder / sha256
            place.write_bytes(content)
            self._places[sha256] = place
            self._kept += 1
        return Picture(sha256, media_type_of(content[:_HEAD_BYTES]) or "", len(content), path)

    def is_here(self, picture: Picture) -> bool:
        """Tell whether it may be shown: one of an earlier attempt may have ended with its runner."""
        return not self.refused and picture.sha256 in self._places

    def contents(self, pictures: Iterable[Picture]) -> dict[str, bytes]:
        """Read them, by their hashes; what is not as it was is left out, and not shown from now on."""
        found: dict[str, bytes] = {}
        for picture in pictures:
            place = self._places.get(picture.sha256)
            content = None if place is None else _read(place)
            if content is not None and hashlib.sha256(content).hexdigest() == picture.sha256:
                found[picture.sha256] = content
            else:
                self._places.pop(picture.sha256, None)
        return found

    def _found(self, brought: Path, files: Iterable[EventFile]) -> Iterable[Picture]:
        left = MAX_SHOWN_BYTES
        for file in files:
            if not 0 < file.size <= min(MAX_BYTES, left):
                continue
            content = _read(brought / file.name)
            kind = None if content is None else media_type_of(content[:_HEAD_BYTES])
            if content is None or kind is None or self._redactor.is_in(content):
                continue
            if hashlib.sha256(content).hexdigest() == file.sha256:
                self._places[file.sha256] = brought / file.name
                left -= file.size
                yield Picture(file.sha256, kind, file.size, f"in/{file.name}")


def _read(place: Path) -> bytes | None:
    """Read a file of the runner's own; where a run shares its user it may have become something else."""
    try:
        with os.fdopen(os.open(place, _FILE), "rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError:
        return None
