"""Takes a batch of rows to the archive, step by step, and lets the database drop it when it is there.

Every step may be the last one before a crash, and may be done again by another node: what it needs stands in
the batch's row, and what it leaves in the archive counts for nothing until the manifest says so.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Final, NamedTuple
from uuid import UUID

import msgspec
import trio

from sexton_storage.archives.lines import JSONL, PARQUET, Tally, pack
from sexton_storage.archives.manifest import (
    ArchivedRows,
    ArchiveManifest,
    ArchiveObject,
    Previous,
    Stem,
    decode_manifest,
    encode_manifest,
    sha256_of,
    stem_of,
)
from sexton_storage.archives.place import BATCHES, MANIFESTS, OWNER, ArchivePlace
from sexton_storage.decisions.archives import Step, next_step
from sexton_storage.objects.store import ObjectMissing, ObjectStoreFault
from sexton_storage.records.archives import (
    ArchiveBatch,
    ArchiveBounds,
    ArchiveKind,
    ArchiveStore,
    DroppedRows,
    RowsDiffer,
)

OBJECT_BYTES: Final = 16 << 20
"""The most lines of one object, before they are compressed; so much is in memory, and one read more."""
HOLD_MS: Final = 300_000
"""A node that was killed has its batch for so long; a living one tells every ``SIGN_S`` that it is at it."""
SIGN_S: Final = 30.0


PackParquet = Callable[[Sequence[bytes], Mapping[str, str]], bytes]


class Writer(NamedTuple):
    """Who writes, and what with."""

    installation: str
    release: str
    schema: int
    parquet: PackParquet | None
    """Makes a file of lines and the types of their columns; None: no Parquet is written."""


class Dropped(NamedTuple):
    """A batch that came to its end."""

    batch: ArchiveBatch
    rows: DroppedRows
    sha256: str | None
    """The hash of its manifest; None: there was nothing to write."""


class LostBatch(Exception):
    """Another node has taken the batch over."""


class Archiver:
    """Belongs to one node. What goes wrong at the place raises ObjectStoreFault; no row is dropped then."""

    def __init__(self, store: ArchiveStore, place: ArchivePlace, writer: Writer) -> None:
        self._store = store
        self._place = place
        self._writer = writer

    def __repr__(self) -> str:
        return f"<Archiver to {self._place.address}>"

    async def work(
        self,
        kind: ArchiveKind,
        bounds: Mapping[ArchiveKind, ArchiveBounds],
        *,
        batch_id: UUID,
        limits: Mapping[ArchiveKind, int],
    ) -> Dropped | None:
        """Finish the batch that is under way, or else take one of ``kind`` from its beginning to its end.

        None: nothing is due, or another node is at it. Raises ObjectStoreFault, and RowsDiffer where rows
        were changed meanwhile: the batch is collected again then.
        """
        await self._settle_owner()
        place = self._place.address
        batch = await self._store.claim(place=place, hold_ms=HOLD_MS)
        if batch is None:
            batch = await self._store.collect(
                kind, bounds[kind], batch_id=batch_id, place=place, limit=limits[kind], hold_ms=HOLD_MS
            )
        if batch is None:
            return None
        try:
            return await self._finish(batch, bounds[batch.kind], limits[batch.kind])
        except LostBatch:
            return None
        except RowsDiffer:
            await self._store.again(batch)
            raise
        except ObjectStoreFault:
            await self._store.hold(batch, hold_ms=0)
            raise

    async def _finish(self, batch: ArchiveBatch, bounds: ArchiveBounds, limit: int) -> Dropped | None:
        while True:
            match next_step(batch.status):
                case Step.WRITE:
                    batch = _kept(await self._signing(batch, self._write(batch)))
                case Step.READ_BACK:
                    batch = _kept(await self._signing(batch, self._read_back(batch)))
                case Step.DROP:
                    return await self._drop(batch, bounds, limit)
                case None:
                    return None

    async def _signing(
        self, batch: ArchiveBatch, work: AsyncGenerator[ArchiveBatch | None, None]
    ) -> ArchiveBatch | None:
        """Go through the pieces of a step, and tell the other nodes now and then that this one is at it."""
        signed, last = trio.current_time(), None
        async with aclosing(work):
            async for last in work:
                if last is None and trio.current_time() >= signed + SIGN_S:
                    signed = trio.current_time()
                    if not await self._store.hold(batch, hold_ms=HOLD_MS):
                        raise LostBatch
        return last

    # --- the steps; each yields None after every object, and in the end the batch as it is then ------------

    async def _write(self, batch: ArchiveBatch) -> AsyncGenerator[ArchiveBatch | None, None]:
        stem = Stem(batch.number, batch.id.hex[-12:], batch.fence)
        for name in await self._left_by_earlier_tries(stem):
            await self._place.delete(name)
            yield None
        objects: list[ArchiveObject] = []
        tables: dict[str, ArchivedRows] = {}
        first_at = last_at = None
        for table in self._store.tables(batch.kind):
            tally, number = Tally(table), 0
            async with aclosing(self._parts(batch, table, tally)) as parts:
                async for part in parts:
                    number += 1
                    objects += await self._send(stem, table, part, number)
                    yield None
            tables[table] = tally.total()
            if first_at is None:
                first_at, last_at = tally.first_at, tally.last_at
        if not objects:
            yield await self._store.verified(batch, None)
            return
        previous = await self._store.previous(batch.place)
        manifest = ArchiveManifest(
            installation=self._writer.installation,
            number=batch.number,
            id=batch.id,
            fence=batch.fence,
            kind=batch.kind,
            source=batch.source,
            workspace_id=batch.workspace_id,
            first_id=min(batch.ids),
            last_id=max(batch.ids),
            first_at=first_at,
            last_at=last_at,
            written_at=batch.updated_at,
            release=self._writer.release,
            schema=self._writer.schema,
            previous=None if previous is None else Previous(previous[0], previous[1].hex()),
            tables=tables,
            objects=objects,
        )
        yield await self._store.written(batch, encode_manifest(manifest))

    async def _read_back(self, batch: ArchiveBatch) -> AsyncGenerator[ArchiveBatch | None, None]:
        content, manifest = _manifest_of(batch)
        for one in manifest.objects:
            # What a store says of itself proves nothing: it has an object once it has given it back.
            try:
                found = await self._place.read(one.name)
            except ObjectMissing:
                found = b""
            if len(found) != one.size or sha256_of(found) != one.sha256:
                await self._store.again(batch)
                raise ObjectStoreFault(f"{one.name} is not what was written to {self._place.address}")
            yield None
        name = manifest.stem.manifest
        await self._place.put(name, content)
        await self._check_manifest(batch, name, content)
        yield await self._store.verified(batch, bytes.fromhex(sha256_of(content)))

    async def _drop(self, batch: ArchiveBatch, bounds: ArchiveBounds, limit: int) -> Dropped | None:
        sums = {}
        if batch.sha256 is not None:
            content, manifest = _manifest_of(batch)
            sums = manifest.sums
            await self._check_manifest(batch, manifest.stem.manifest, content)
        rows = await self._store.drop(batch, sums, bounds, limit=limit)
        if rows is None:
            await self._store.hold(batch, hold_ms=0)
            return None
        return Dropped(batch, rows, None if batch.sha256 is None else batch.sha256.hex())

    # --- pieces of them -------------------------------------------------------------------------------------

    async def _parts(
        self, batch: ArchiveBatch, table: str, tally: Tally
    ) -> AsyncGenerator[Sequence[bytes], None]:
        held: list[bytes] = []
        size = 0
        async with aclosing(self._store.lines(batch, table)) as pages:
            async for page in pages:
                lines = [line.encode() for line in page]
                await trio.to_thread.run_sync(_count, tally, lines)
                for line in lines:
                    held.append(line)
                    size += len(line)
                    if size >= OBJECT_BYTES:
                        yield held
                        held, size = [], 0
        if held:
            yield held

    async def _send(
        self, stem: Stem, table: str, lines: Sequence[bytes], number: int
    ) -> Sequence[ArchiveObject]:
        contents = {JSONL: await trio.to_thread.run_sync(pack, lines)}
        if self._writer.parquet is not None:
            types = await self._store.types(table)
            contents[PARQUET] = await trio.to_thread.run_sync(self._writer.parquet, lines, types)
        sent = []
        for form, content in contents.items():
            name = stem.object(table, number, form)
            await self._place.put(name, content)
            digest = sha256_of(content)
            sent.append(
                ArchiveObject(
                    name=name, table=table, format=form, rows=len(lines), size=len(content), sha256=digest
                )
            )
        return sent

    async def _left_by_earlier_tries(self, stem: Stem) -> Sequence[str]:
        found = []
        for folder in (MANIFESTS, BATCHES):
            found += await self._place.names(f"{folder}{stem.number:010d}-{stem.id_end}.")
        return [name for name in found if (of := stem_of(name)) is not None and of.fence < stem.fence]

    async def _check_manifest(self, batch: ArchiveBatch, name: str, content: bytes) -> None:
        try:
            found = await self._place.read(name)
        except ObjectMissing:
            found = b""
        if found != content:
            await self._store.again(batch)
            raise ObjectStoreFault(f"{name} is not what was written to {self._place.address}")

    async def _settle_owner(self) -> None:
        """Write down whose archive this is. Raises ObjectStoreFault where it is another's, or was swapped.

        It is asked for each batch: a disk may be unmounted at any time, and its folder stays.
        """
        mine = f'{{"format": 1, "installation": "{self._writer.installation}"}}\n'.encode()
        found = await self._owner()
        if not _names_somebody(found):
            if await self._store.previous(self._place.address) is not None:
                raise ObjectStoreFault(
                    f"{self._place.address} is empty, and batches were archived there before: "
                    "is another disk or bucket there now?"
                )
            await self._place.put(OWNER, mine)
            found = await self._owner()
        if not _names_somebody(found):
            raise ObjectStoreFault(f"{OWNER} is not what was written to {self._place.address}")
        if found != mine:
            raise ObjectStoreFault(
                f"{self._place.address} is the archive of another installation; give each a place of its own"
            )

    async def _owner(self) -> bytes:
        try:
            return await self._place.read(OWNER)
        except ObjectMissing:
            return b""


class _Owner(msgspec.Struct, frozen=True):
    installation: str


def _names_somebody(content: bytes) -> bool:
    """Whether this says whose an archive is; what was written by halves does not."""
    try:
        return bool(msgspec.json.decode(content, type=_Owner).installation)
    except msgspec.DecodeError:
        return False


def _kept(batch: ArchiveBatch | None) -> ArchiveBatch:
    if batch is None:
        raise LostBatch
    return batch


def _manifest_of(batch: ArchiveBatch) -> tuple[bytes, ArchiveManifest]:
    if batch.manifest is None:
        raise LookupError(f"batch {batch.number} was written without a manifest")
    return batch.manifest, decode_manifest(batch.manifest)


def _count(tally: Tally, lines: Sequence[bytes]) -> None:
    for line in lines:
        tally.add(line)
