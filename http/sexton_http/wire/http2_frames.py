"""Follows where the frames of HTTP/2 begin and end, to see whether a client leaves one unfinished."""

import struct
from typing import Final

_HEAD: Final = 9
_HEADERS, _CONTINUATION, _END_HEADERS = 1, 9, 4
_begin: Final = struct.Struct(">IB").unpack_from
"""The length of a frame in three bytes, its kind, its flags."""
_OF_HEADS: Final = frozenset({_HEADERS, _CONTINUATION})


class FrameBorders:
    """Fed with all bytes after the preface. Understands nothing else of them.

    >>> borders = FrameBorders(preface=0)
    >>> ping = bytes.fromhex("000008060000000000") + bytes(8)
    >>> borders.feed(ping), borders.feed(ping + ping[:5]), borders.feed(ping[5:])
    (True, False, True)
    """

    __slots__ = ("_head", "_in_block", "_left", "passed")

    def __init__(self, preface: int) -> None:
        """``preface``: how many bytes come before the first frame."""
        self._left = preface
        """Bytes of the present frame that are still to come."""
        self._head = b""
        self._in_block = False
        """A request's head goes on in the next frame."""
        self.passed = False
        """The last bytes brought something to its end."""

    def feed(self, data: bytes) -> bool:
        """Whether nothing is unfinished after these bytes."""
        at, size = 0, len(data)
        if not (self._left or self._head or self._in_block):
            # What comes is nearly always whole frames.
            while size - at >= _HEAD:
                length_and_kind, flags = _begin(data, at)
                end = at + _HEAD + (length_and_kind >> 8)
                if end > size or not (flags & _END_HEADERS or length_and_kind & 255 not in _OF_HEADS):
                    break
                at = end
            if at == size:
                self.passed = True
                return True
        self.passed = at > 0
        while at < size:
            if self._left:
                taken = min(self._left, size - at)
                self._left -= taken
                at += taken
            else:
                part = data[at : at + _HEAD - len(self._head)]
                at += len(part)
                self._head += part
                if len(self._head) == _HEAD:
                    self._left = int.from_bytes(self._head[:3], "big")
                    if self._head[3] in _OF_HEADS:
                        self._in_block = not self._head[4] & _END_HEADERS
                    self._head = b""
            if not (self._left or self._head or self._in_block):
                self.passed = True
        return not (self._left or self._head or self._in_block)
