"""Follows where the frames of HTTP/2 begin and end, to see whether a client leaves one unfinished."""

import struct
from collections.abc import Callable
from typing import Final

_HEAD: Final = 9
_DATA, _HEADERS, _CONTINUATION, _END_HEADERS = 0, 1, 9, 4
_begin: Final = struct.Struct(">IB").unpack_from
"""The length of a frame in three bytes, its kind, its flags."""
_OF_HEADS: Final = frozenset({_HEADERS, _CONTINUATION})


class FrameBorders:
    """Fed with all bytes after the preface. Understands nothing else of them.

    >>> borders = FrameBorders(preface=0)
    >>> ping = bytes.fromhex("000008060000000000") + bytes(8)
    >>> borders.feed(ping), borders.feed(ping + ping[:5]), borders.feed(ping[5:])
    (True, False, True)
    >>> data = bytes.fromhex("000003000000000007") + b"abc"
    >>> borders.feed(data[:-1]), borders.data_under_way(), borders.left
    (False, 7, 1)
    >>> borders.feed(data[-1:] + data, lambda *stream_and_size: print(*stream_and_size))
    7 1
    7 3
    True
    """

    __slots__ = ("_head", "_in_block", "_present", "left", "passed")

    def __init__(self, preface: int) -> None:
        """``preface``: how many bytes come before the first frame."""
        self.left = preface
        """Bytes of the present frame that are still to come."""
        self._head = b""
        """What has come of the next frame's head."""
        self._present = b""
        """The head of the frame that has ``left``; that of an earlier one, or none, if nothing is left."""
        self._in_block = False
        """A request's head goes on in the next frame."""
        self.passed = False
        """The last bytes brought something to its end."""

    def data_under_way(self) -> int:
        """The stream of the frame under way, if that is DATA; 0 if not."""
        is_data = self.left and self._present and self._present[3] == _DATA
        return _stream_of(self._present) if is_data else 0

    def feed(self, data: bytes, when_data: Callable[[int, int], None] | None = None) -> bool:
        """Whether nothing is unfinished after these bytes. ``when_data`` is told of DATA: stream, size."""
        at, size = 0, len(data)
        if when_data is None and not (self.left or self._head or self._in_block):
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
            if self.left:
                taken = min(self.left, size - at)
                self.left -= taken
                at += taken
                if when_data is not None and self._present and self._present[3] == _DATA:
                    when_data(_stream_of(self._present), taken)
            else:
                part = data[at : at + _HEAD - len(self._head)]
                at += len(part)
                self._head += part
                if len(self._head) == _HEAD:
                    self.left = int.from_bytes(self._head[:3], "big")
                    if self._head[3] in _OF_HEADS:
                        self._in_block = not self._head[4] & _END_HEADERS
                    self._present, self._head = self._head, b""
            if not (self.left or self._head or self._in_block):
                self.passed = True
        return not (self.left or self._head or self._in_block)


def _stream_of(head: bytes) -> int:
    """The highest bit is reserved, and to be ignored."""
    return int.from_bytes(head[5:], "big") & 0x7FFF_FFFF
