"""Reads an archive: what it has, whether all of it is what was written, and the rows of one event."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
import trio

from sexton_storage.archives.lines import JSONL, Tally, unpack
from sexton_storage.archives.manifest import (
    ArchivedRows,
    ArchiveManifest,
    ArchiveObject,
    BadManifest,
    Stem,
    decode_manifest,
    sha256_of,
    stem_of,
)
from sexton_storage.archives.place import BATCHES, MANIFESTS, OWNER, ArchivePlace
from sexton_storage.objects.store import ObjectMissing


class Flaw(StrEnum):
    MISSING = "missing"
    """A manifest names it, and it is not there."""
    ALTERED = "altered"
    """It is not what was written."""
    HALF_WRITTEN = "half_written"
    """Objects without a manifest: a batch that is being written, or was broken off, or lost its manifest."""


class Finding(NamedTuple):
    flaw: Flaw
    name: str
    """The object, or the folder of a batch."""
    detail: str


class ManifestRead(NamedTuple):
    """A manifest that reads, its name and the hash by which the next one names it."""

    name: str
    sha256: str
    manifest: ArchiveManifest


class NoArchive(Exception):
    """There is no archive at this place; the text says what is there."""


async def read_manifests(place: ArchivePlace) -> tuple[list[ManifestRead], list[Finding]]:
    """Give the manifests that count, oldest first, and what is wrong with others.

    Raises NoArchive, and ObjectStoreFault.
    """
    try:
        await place.read(OWNER)
    except ObjectMissing as fault:
        raise NoArchive(f"{place.address} is no archive: it has no {OWNER}") from fault
    found: list[ManifestRead] = []
    findings: list[Finding] = []
    for name in await place.names(MANIFESTS):
        try:
            content = await place.read(name)
        except ObjectMissing:
            continue  # It was superseded while we read.
        try:
            manifest = decode_manifest(content)
        except BadManifest as fault:
            findings.append(Finding(Flaw.ALTERED, name, str(fault)))
            continue
        if stem_of(name) != manifest.stem:
            findings.append(Finding(Flaw.ALTERED, name, f"it is the manifest {manifest.stem.manifest}"))
            continue
        found.append(ManifestRead(name, sha256_of(content), manifest))
    return counting(found), findings


def counting(found: Sequence[ManifestRead]) -> list[ManifestRead]:
    """Leave out manifests that a later try of the same batch has replaced."""
    last: dict[tuple[int, UUID], ManifestRead] = {}
    for one in found:
        key = one.manifest.number, one.manifest.id
        if key not in last or last[key].manifest.fence < one.manifest.fence:
            last[key] = one
    return sorted(last.values(), key=lambda one: one.manifest.stem)


def gaps(manifests: Sequence[ManifestRead]) -> list[Finding]:
    """Find the manifests that later ones name, and that are not there."""
    known = {one.sha256: one.manifest.number for one in manifests}
    findings: list[Finding] = []
    for one in manifests:
        previous = one.manifest.previous
        if previous is not None and known.get(previous.sha256) != previous.number:
            detail = f"{one.name} names the manifest {previous.number} with the hash {previous.sha256}"
            findings.append(Finding(Flaw.MISSING, f"{MANIFESTS}{previous.number:010d}-*", detail))
    return findings


async def verify(place: ArchivePlace) -> AsyncGenerator[ManifestRead | Finding, None]:
    """Give each manifest that is whole with all it names, and all that is wrong.

    Raises NoArchive, and ObjectStoreFault where the place does not answer.
    """
    names = await place.names(BATCHES)  # Before the manifests: a batch may be written meanwhile.
    manifests, findings = await read_manifests(place)
    for finding in (*findings, *gaps(manifests)):
        yield finding
    fences = {one.manifest.stem[:2]: one.manifest.fence for one in manifests}
    named = {one.name for read in manifests for one in read.manifest.objects}
    damaged = {stem_of(one.name) for one in findings}
    for read in manifests:
        wrong = await _check_objects(place, read.manifest)
        for finding in wrong:
            yield finding
        if not wrong:
            yield read
    extra: dict[Stem, int] = {}
    for name in names:
        stem = stem_of(name)
        if name in named or stem in damaged:
            continue
        fence = None if stem is None else fences.get(stem[:2])
        if stem is not None and fence is None:
            extra[stem] = extra.get(stem, 0) + 1
        elif stem is None or fence == stem.fence:
            yield Finding(Flaw.ALTERED, name, "no manifest names it")
        # What an earlier try of a batch has left is no part of the archive, and does no harm.
    for stem, count in extra.items():
        yield Finding(Flaw.HALF_WRITTEN, f"{BATCHES}{stem}/", f"{count} objects without a manifest")


async def _check_objects(place: ArchivePlace, manifest: ArchiveManifest) -> list[Finding]:
    findings: list[Finding] = []
    tallies = {name: Tally(name) for name in manifest.tables}
    for one in manifest.objects:
        try:
            content = await place.read(one.name)
        except ObjectMissing:
            findings.append(Finding(Flaw.MISSING, one.name, f"the manifest {manifest.number} names it"))
            continue
        detail = await trio.to_thread.run_sync(_detail, one, content, tallies.get(one.table))
        if detail is not None:
            findings.append(Finding(Flaw.ALTERED, one.name, detail))
    if findings:
        return findings
    for name, told in manifest.tables.items():
        if (read := tallies[name].total()) != told:
            findings.append(Finding(Flaw.ALTERED, manifest.stem.manifest, _difference(name, told, read)))
    return findings


def _detail(one: ArchiveObject, content: bytes, tally: Tally | None) -> str | None:
    if len(content) != one.size or sha256_of(content) != one.sha256:
        return f"it has {len(content)} bytes and another hash than the {one.size} that were written"
    if one.format != JSONL or tally is None:
        return None
    try:
        for line in unpack(content):
            tally.add(line)
    except (BadManifest, msgspec.DecodeError) as fault:
        return str(fault)
    return None


def _difference(name: str, told: ArchivedRows, read: ArchivedRows) -> str:
    return (
        f"{name}: it tells of {told.rows} rows and {told.nanos}, and there are {read.rows} and {read.nanos}"
    )


async def rows_of_event(
    place: ArchivePlace, event_id: UUID
) -> AsyncGenerator[tuple[str, Mapping[str, Any]], None]:
    """Give all archived rows of an event, each with its table. Raises as ``verify``, and BadManifest."""
    manifests, _ = await read_manifests(place)
    word = str(event_id).encode()
    for read in manifests:
        manifest = read.manifest
        if not manifest.first_id <= event_id <= manifest.last_id:
            continue
        for one in manifest.objects:
            if one.format != JSONL:
                continue
            content = await place.read(one.name)
            if sha256_of(content) != one.sha256:
                raise BadManifest(f"{one.name} is not what was written: see 'sexton archive verify'")
            for row in await trio.to_thread.run_sync(_of_event, content, word, event_id):
                yield one.table, row


def _of_event(content: bytes, word: bytes, event_id: UUID) -> list[Mapping[str, Any]]:
    rows = (msgspec.json.decode(line) for line in unpack(content) if word in line)
    wanted = str(event_id)
    return [row for row in rows if row.get("event_id", row.get("id")) == wanted]
