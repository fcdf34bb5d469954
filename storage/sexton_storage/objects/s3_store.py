"""Keeps contents in a bucket of an S3-compatible store: one object each, sent in parts where it is large."""

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from datetime import datetime
from http import HTTPStatus
from typing import Final
from uuid import UUID

import httpx2
import trio

from sexton_storage.objects.s3_address import S3Address
from sexton_storage.objects.s3_calls import CONNECT_S, PIECE_S, S3Calls, Sign, load_signer
from sexton_storage.objects.s3_xml import Document, parts_document, said
from sexton_storage.objects.store import ObjectPage, ObjectStoreFault
from sexton_storage.records.blobs import CHUNK_BYTES

PART_BYTES: Final = 8 << 20
"""The length of all parts but the last. S3 takes 10,000 parts of 5 MiB at least."""
PAGE: Final = 1_000
CONNECTIONS: Final = 32
OWNER: Final = "sexton-owner"
GIVE_UP_S: Final = 5.0
_GONE: Final = frozenset({HTTPStatus.NOT_FOUND.value})


@asynccontextmanager
async def open_s3_store(address: S3Address, sign: Sign | None = None) -> AsyncIterator["S3Store"]:
    """Open the store; nothing is asked yet. Raises SignerMissing."""
    signer = sign or await load_signer(address.region)
    limits = httpx2.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
    timeout = httpx2.Timeout(PIECE_S, connect=CONNECT_S)
    async with httpx2.AsyncClient(limits=limits, timeout=timeout, follow_redirects=False) as http:
        yield S3Store(S3Calls(http, address, signer), address.prefix)


ObjectName = UUID | str
"""A content's id; other users of a bucket give their objects names, with slashes between folders."""


class S3Store:
    """Under its prefix it has one object a content, and one that says whose they are."""

    def __init__(self, calls: S3Calls, prefix: str) -> None:
        self._calls = calls
        self._prefix = prefix

    async def settle_owner(self, owner: bytes) -> bytes:
        key = f"{self._prefix}{OWNER}"
        found = await self._calls.call("GET", key, allowed=_GONE)
        if found.status != HTTPStatus.NOT_FOUND:
            return found.body
        if said(found.body).startswith("NoSuchBucket"):
            raise ObjectStoreFault(f"the S3 store has no such bucket: {self._calls!r}")
        await self._calls.call("PUT", key, body=owner)
        return (await self._calls.call("GET", key)).body

    async def put(self, object_id: ObjectName, size: int, pieces: AsyncIterable[bytes]) -> None:
        key = self._key(object_id)
        if size <= PART_BYTES:
            body = b"".join([piece async for piece in pieces])
            await self._calls.call("PUT", key, body=body)
            return
        await self._abort(key)
        created = await self._calls.call("POST", key, [("uploads", "")])
        upload = Document(created.body).text("UploadId")
        if not upload:
            raise ObjectStoreFault(f"the S3 store began no upload of {key}")
        try:
            await self._send(key, upload, pieces)
        except BaseException:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + GIVE_UP_S):
                await self._give_up(key, upload)
            raise

    async def measure(self, object_id: ObjectName) -> int:
        key = self._key(object_id)
        length = (await self._calls.call("HEAD", key)).headers.get("content-length", "")
        if not length.isdecimal():
            raise ObjectStoreFault(f"the S3 store does not say how long {key} is")
        return int(length)

    async def read(self, object_id: ObjectName, start: int, end: int) -> AsyncGenerator[bytes, None]:
        async with aclosing(self._calls.read(self._key(object_id), start, end, CHUNK_BYTES)) as pieces:
            async for piece in pieces:
                yield piece

    async def delete(self, object_id: ObjectName) -> None:
        key = self._key(object_id)
        await self._abort(key)
        await self._calls.call("DELETE", key, allowed=_GONE)

    async def names(self, within: str, after: str) -> tuple[list[str], str | None]:
        """List what is whole, has a name that begins so, and comes after a name; and where to go on."""
        found, entries = await self._page(within, after)
        names = [key.removeprefix(self._prefix) for key, _ in entries]
        more = found.text("IsTruncated") == "true" and bool(names) and names[-1] > after
        return names, names[-1] if more else None

    async def listed(self, after: str) -> ObjectPage:
        found, entries = await self._page("", after)
        last = entries[-1][0].removeprefix(self._prefix) if entries else ""
        if not after:
            # Uploads that were never ended are in no list of objects.
            answer = await self._calls.call("GET", "", [("prefix", self._prefix), ("uploads", "")])
            entries += Document(answer.body).rows("Upload", "Key", "Initiated")
        objects = ((_id_of(key.removeprefix(self._prefix)), _unix_ms(at)) for key, at in entries)
        # A list that does not go on would have no end.
        more = found.text("IsTruncated") == "true" and last > after
        return ObjectPage(tuple((one, at) for one, at in objects if one is not None), last if more else None)

    async def _page(self, within: str, after: str) -> tuple[Document, list[tuple[str, str]]]:
        start = [("start-after", f"{self._prefix}{after}")] if after else []
        query = [("list-type", "2"), ("max-keys", str(PAGE)), ("prefix", f"{self._prefix}{within}"), *start]
        found = Document((await self._calls.call("GET", "", sorted(query))).body)
        return found, list(found.rows("Contents", "Key", "LastModified"))

    async def _send(self, key: str, upload: str, pieces: AsyncIterable[bytes]) -> None:
        etags: list[str] = []
        async for part in _parts(pieces):
            place = [("partNumber", str(len(etags) + 1)), ("uploadId", upload)]
            etag = (await self._calls.call("PUT", key, place, body=part)).headers.get("etag", "")
            if not etag:
                raise ObjectStoreFault(f"the S3 store took a part of {key} without an ETag")
            etags.append(etag)
        done = await self._calls.call("POST", key, [("uploadId", upload)], body=parts_document(etags))
        # It may say 200 first, and only then find out that it cannot.
        if Document(done.body).name != "CompleteMultipartUploadResult":
            raise ObjectStoreFault(f"the S3 store could not put {key} together: {said(done.body)}")

    async def _abort(self, key: str) -> None:
        answer = await self._calls.call("GET", "", [("prefix", key), ("uploads", "")])
        for found, upload in Document(answer.body).rows("Upload", "Key", "UploadId"):
            if found == key:
                await self._calls.call("DELETE", key, [("uploadId", upload)], allowed=_GONE)

    async def _give_up(self, key: str, upload: str) -> None:
        try:
            await self._calls.call("DELETE", key, [("uploadId", upload)], allowed=_GONE)
        except ObjectStoreFault:
            return  # The next one who sends or deletes this content finds it.

    def _key(self, object_id: ObjectName) -> str:
        return f"{self._prefix}{object_id}"


async def _parts(pieces: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Join pieces into parts; but for the end, at most one is in memory twice, while it is joined."""
    held: list[bytes] = []
    length = 0
    async for piece in pieces:
        while length + len(piece) >= PART_BYTES:
            cut = PART_BYTES - length
            held.append(piece[:cut])
            yield _joined(held)
            piece, length = piece[cut:], 0  # noqa: PLW2901 - what is left of it
        if piece:
            held.append(piece)
            length += len(piece)
    if held:
        yield _joined(held)


def _joined(held: list[bytes]) -> bytes:
    part = b"".join(held)
    held.clear()
    return part


def _id_of(name: str) -> UUID | None:
    """Give the content that an object of this name is, if it is one.

    >>> _id_of("019363b0-0000-7000-8000-00000000ffff"), _id_of("backup/notes.txt"), _id_of("1" * 32)
    (UUID('019363b0-0000-7000-8000-00000000ffff'), None, None)
    """
    try:
        found = UUID(name)
    except ValueError:
        return None
    return found if str(found) == name else None


def _unix_ms(text: str) -> int:
    """Read a time as S3 writes it.

    >>> _unix_ms("1970-01-01T00:00:01.500Z")
    1500
    """
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError as fault:
        raise ObjectStoreFault(f"the S3 store wrote a time that cannot be read: {text[:40]!r}") from fault
