"""Reads what the sender inside a sandbox says of a run's files. It is trusted as little as the run is."""

from typing import Annotated, Protocol

import msgspec

HEAD_BYTES = 5
MAX_HEAD_BYTES = 16_384
MAX_NAME_BYTES = 1_024
WHY_CHARS = 256
READ_BYTES = 65_536


class Source(Protocol):
    """Where the frames come from: empty at its end."""

    async def receive_some(self, max_bytes: int | None = None, /) -> bytes | bytearray:
        """Wait for the next piece."""
        ...


class Garbled(Exception):
    """What comes is not what the sender says, or it ended in the middle."""


class SentFile(msgspec.Struct, frozen=True):
    """A file whose ``size`` bytes follow."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME_BYTES)]
    size: Annotated[int, msgspec.Meta(ge=0, lt=2**53)]
    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class LeftOut(msgspec.Struct, frozen=True):
    """A file, or all further ones, that the sender left out."""

    name: Annotated[str, msgspec.Meta(max_length=MAX_NAME_BYTES)]
    why: Annotated[str, msgspec.Meta(max_length=WHY_CHARS)]


class SentFiles:
    """The frames of one sender; each file is to be read to its end before the next is asked for."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._held = bytearray()

    async def begun(self) -> bool:
        """Tell whether anything comes at all: a run without such a folder sends nothing."""
        return await self._fill(1)

    async def next(self) -> SentFile | LeftOut | None:
        """Give what comes next, None at the end. Raises ``Garbled``."""
        head = await self.read(HEAD_BYTES)
        length = int.from_bytes(head[1:], "big")
        if length > MAX_HEAD_BYTES:
            raise Garbled("a frame is too long")
        content = await self.read(length)
        try:
            match head[:1]:
                case b"F":
                    return msgspec.json.decode(content, type=SentFile)
                case b"N":
                    return msgspec.json.decode(content, type=LeftOut)
                case b"E":
                    return None
                case _:
                    raise Garbled("a frame is of no known kind")
        except (msgspec.DecodeError, msgspec.ValidationError) as fault:
            raise Garbled(f"a frame cannot be read: {fault}") from fault

    async def read(self, length: int) -> bytes:
        """Give exactly that number of bytes. Raises ``Garbled``."""
        if not await self._fill(length):
            raise Garbled("it ended too early")
        content = bytes(self._held[:length])
        del self._held[:length]
        return content

    async def _fill(self, length: int) -> bool:
        while len(self._held) < length:
            piece = await self._source.receive_some(READ_BYTES)
            if not piece:
                return False
            self._held += piece
        return True
