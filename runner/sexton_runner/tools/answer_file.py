"""Writes the body of an answer to a file, in place of a model's reading it."""

import hashlib
from collections.abc import Mapping
from typing import IO, Final

from sexton_runner.body_masks import BodyMask, Unreadable
from sexton_runner.redact import Redactor
from sexton_runner.run_files.file_names import DEFAULT_TYPE
from sexton_runner.tools.fetch import NotFetched

MEDIA_TYPE_CHARS: Final = 127


class AnswerFile:
    """The body of one answer on its way into a file: bounded, masked, and with its hash reckoned."""

    def __init__(self, file: IO[bytes], redactor: Redactor, max_bytes: int) -> None:
        self._file, self._redactor, self._max_bytes = file, redactor, max_bytes
        self._mask = BodyMask(redactor, "")
        self._digest = hashlib.sha256()
        self._status = 0
        self.is_whole = False
        self.size = 0
        self.media_type = DEFAULT_TYPE

    @property
    def sha256(self) -> str:
        """Give the hash of what was written."""
        return self._digest.hexdigest()

    @property
    def changes(self) -> str:
        """Say in what it is not what the server sent, if in anything."""
        unpacked = "unpacked as it came" if self._mask.unpacks else ""
        masked = "a secret of this run stood in it and is masked" if self._mask.has_masked else ""
        return "; ".join(filter(None, (unpacked, masked)))

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Look at the answer before its body comes. Raises ``NotFetched``."""
        self._status = status
        named = headers.get("content-type", "").partition(";")[0].strip()
        self.media_type = named[:MEDIA_TYPE_CHARS] or DEFAULT_TYPE
        try:
            self._mask = BodyMask(self._redactor, headers.get("content-encoding", ""))
        except Unreadable as fault:
            raise self._refusal(str(fault)) from fault
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length) > self._max_bytes:
            raise self._refusal(self._too_large())

    def write(self, piece: bytes) -> None:
        """Take the next bytes. Raises ``NotFetched``."""
        try:
            for part in self._mask.feed(piece):
                self._put(part)
        except Unreadable as fault:
            raise self._refusal(str(fault)) from fault

    def end(self) -> None:
        """Write what was held back. Raises ``NotFetched``."""
        try:
            self._put(self._mask.end())
            self._file.flush()
            self.is_whole = True
        except Unreadable as fault:
            raise self._refusal(str(fault)) from fault
        except OSError as fault:
            raise self._refusal(f"the runner cannot keep it: {fault.strerror}") from fault

    def _put(self, part: bytes) -> None:
        self.size += len(part)
        if self.size > self._max_bytes:
            raise self._refusal(self._too_large())
        self._digest.update(part)
        try:
            self._file.write(part)
        except OSError as fault:
            raise self._refusal(f"the runner cannot keep it: {fault.strerror}") from fault

    def _too_large(self) -> str:
        most = f"{self._max_bytes >> 20} MiB"
        return f"it is larger than a file may be ({most}); ask for a part of it, by a range header"

    def _refusal(self, why: str) -> NotFetched:
        return NotFetched(f"the server answered HTTP {self._status}, but nothing was saved: {why}")
