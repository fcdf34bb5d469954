"""Takes secrets out of the answers of servers, whatever pieces and codings they come in."""

import zlib
from collections.abc import Iterator
from typing import Final

from sexton_runner.redact import Redactor

MAX_PIECE_BYTES: Final = 1 << 16
_GZIP: Final = 16 + zlib.MAX_WBITS
_PLAIN: Final = frozenset({"", "identity"})


class Unreadable(ValueError):
    """The body is in a coding that cannot be searched, or is broken."""


class BodyMask:
    """Masks one body. What may be the beginning of a secret is held back until more has come.

    A plain body keeps its length. One in gzip or deflate comes out unpacked, in pieces of 64 KiB at most,
    so that a bomb costs no memory; how much may come is for the caller to count.
    """

    def __init__(self, redactor: Redactor, coding: str) -> None:
        """Raises ``Unreadable``."""
        self._redactor = redactor
        self._held = b""
        self.has_masked = False
        """Whether a secret was found so far."""
        self._unpacker: _Unpacker | None = None
        if (name := coding.strip().lower()) not in _PLAIN:
            self._unpacker = _Unpacker(name)

    @property
    def unpacks(self) -> bool:
        """Tell whether what comes out is longer than what comes in."""
        return self._unpacker is not None

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Give what is certain by now. Raises ``Unreadable``."""
        pieces = iter((data,)) if self._unpacker is None else self._unpacker.feed(data)
        for piece in pieces:
            if done := self._begin(self._held + piece, more=True):
                yield done

    def end(self) -> bytes:
        """Give the rest. Raises ``Unreadable`` when the packed body is cut short."""
        if self._unpacker is not None:
            self._unpacker.end()
        return self._begin(self._held, more=False)

    def _begin(self, data: bytes, *, more: bool) -> bytes:
        done, self._held = self._redactor.begin_bytes(data, more=more)
        # A mask is as long as what it covers.
        self.has_masked = self.has_masked or not data.startswith(done)
        return done


class _Unpacker:
    def __init__(self, coding: str) -> None:
        match coding:
            case "gzip" | "x-gzip":
                self._bits = _GZIP
            case "deflate":
                self._bits = zlib.MAX_WBITS
            case _:
                raise Unreadable(f"the answer is in the coding {coding[:40]}, which is not read here")
        self._unpack = zlib.decompressobj(self._bits)
        self._began = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._unpack.eof:
                # A gzip file may have several members; after zlib's end nothing may follow.
                if self._bits != _GZIP:
                    raise Unreadable("something follows the end of the packed answer")
                self._unpack = zlib.decompressobj(self._bits)
            self._began = True
            piece = self._next_piece(data)
            while piece:
                yield piece
                # With a full piece, more may be ready without further input.
                data = self._unpack.unconsumed_tail
                piece = self._next_piece(data) if len(piece) == MAX_PIECE_BYTES else b""
            data = self._unpack.unconsumed_tail or self._unpack.unused_data

    def _next_piece(self, data: bytes) -> bytes:
        try:
            return self._unpack.decompress(data, MAX_PIECE_BYTES)
        except zlib.error as fault:
            raise Unreadable("the packed answer cannot be unpacked") from fault

    def end(self) -> None:
        if self._began and not self._unpack.eof:
            raise Unreadable("the packed answer is cut short")
