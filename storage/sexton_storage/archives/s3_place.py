"""Keeps an archive in a bucket of an S3-compatible store."""

from collections.abc import AsyncIterator

from sexton_storage.archives.place import MOST_BYTES
from sexton_storage.objects.s3_address import S3Address
from sexton_storage.objects.s3_store import S3Store
from sexton_storage.objects.store import ObjectStoreFault
from sexton_storage.records.blobs import CHUNK_BYTES


class S3Place:
    """An object is there once the store has said so; whether it is the right one is found by reading it."""

    def __init__(self, store: S3Store, address: S3Address) -> None:
        self._store = store
        self.address = f"{address.base_url}/{address.prefix}"

    def __repr__(self) -> str:
        return f"<S3Place {self.address}>"

    async def put(self, name: str, content: bytes) -> None:
        await self._store.put(name, len(content), _pieces(content))

    async def read(self, name: str) -> bytes:
        size = await self._store.measure(name)
        if size > MOST_BYTES:
            raise ObjectStoreFault(f"{name} has {size} bytes, more than anything an archive has")
        if not size:
            return b""
        return b"".join([piece async for piece in self._store.read(name, 0, size)])

    async def delete(self, name: str) -> None:
        await self._store.delete(name)

    async def names(self, within: str) -> list[str]:
        found: list[str] = []
        after: str | None = ""
        while after is not None:
            page, after = await self._store.names(within, after)
            found += page
        return found


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(content), CHUNK_BYTES):
        yield content[start : start + CHUNK_BYTES]
