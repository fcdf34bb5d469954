"""Where an archive is kept: objects with names, each of them whole or not there."""

from typing import Final, Protocol

MANIFESTS: Final = "manifests/"
BATCHES: Final = "batches/"
OWNER: Final = "archive.json"
MOST_BYTES: Final = 128 << 20
"""The longest object that is read: what is written is shorter by far."""


class ArchivePlace(Protocol):
    """All calls may raise ObjectStoreFault."""

    @property
    def address(self) -> str:
        """Name it as a person does."""
        ...

    async def put(self, name: str, content: bytes) -> None:
        """Keep an object, durably; one of this name that was there is replaced."""
        ...

    async def read(self, name: str) -> bytes:
        """Give the whole object. Raises ObjectMissing; one over MOST_BYTES is refused."""
        ...

    async def delete(self, name: str) -> None:
        """Delete an object; without one, nothing happens."""
        ...

    async def names(self, within: str) -> list[str]:
        """List all whose names begin so, in order."""
        ...
