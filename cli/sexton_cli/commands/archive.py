"""``sexton archive``: lists, verifies and reads what a server has archived, without the server."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar
from uuid import UUID

import click
import trio

from sexton_cli.archives import open_place
from sexton_cli.caller import Caller
from sexton_cli.commands.files_store_options import S3_OPTIONS, read_archive
from sexton_cli.commands.late_group import noun
from sexton_cli.commands.options import calling
from sexton_cli.exits import FAILED, USAGE, Fault
from sexton_cli.output import Column, moment
from sexton_storage.archives.manifest import BadManifest
from sexton_storage.archives.place import ArchivePlace
from sexton_storage.archives.verification import (
    Finding,
    Flaw,
    ManifestRead,
    NoArchive,
    read_manifests,
    rows_of_event,
    verify as verify_place,
)
from sexton_storage.objects.s3_calls import SignerMissing
from sexton_storage.objects.store import ObjectStoreFault

R = TypeVar("R")
COLUMNS: Final = (
    Column("number", "NUMBER"),
    Column("kind", "KIND"),
    Column("workspace_id", "WORKSPACE", spare=True),
    Column("from", "FROM"),
    Column("to", "TO"),
    Column("rows", "ROWS"),
    Column("charged_nanos", "CHARGED (NANOS)", spare=True),
    Column("manifest", "MANIFEST", elastic=True),
)
FLAWS: Final = {
    Flaw.MISSING: "missing",
    Flaw.ALTERED: "altered",
    Flaw.HALF_WRITTEN: "half written",
}


def archived_in(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what says where the archive is."""
    command = click.argument("archive", metavar="ARCHIVE", envvar="SEXTON_ARCHIVE")(command)
    for option in reversed(S3_OPTIONS):
        command = option(command)
    return command


@noun()
def archive() -> None:
    """List, verify and read an archive of what went by age; asks no server."""


@archive.command("list")
@archived_in
@click.option(
    "--of", "workspace_id", type=click.UUID, metavar="WORKSPACE_ID", help="Only what may have its rows."
)
@calling
def list_(
    caller: Caller,
    *,
    archive: str,
    s3_endpoint: str | None,
    s3_region: str | None,
    workspace_id: UUID | None,
) -> None:
    """List the manifests of ARCHIVE, a folder or s3://BUCKET/PREFIX, oldest first."""

    async def work(place: ArchivePlace) -> list[ManifestRead]:
        found, findings = await read_manifests(place)
        for finding in findings:
            _tell(caller, finding)
        return found

    found = _visit(archive, s3_endpoint, s3_region, work)
    rows = [
        _row(one)
        for one in found
        if workspace_id is None or one.manifest.workspace_id in (workspace_id, None)
    ]
    caller.output.listing({"items": rows}, COLUMNS, [_shown(row) for row in rows])


@archive.command()
@archived_in
@calling
def verify(caller: Caller, *, archive: str, s3_endpoint: str | None, s3_region: str | None) -> None:
    """Read all of ARCHIVE: tell what is missing, altered or half written; fails unless all is whole.

    Exit status 1: something is wrong with it. 2: there is no archive, or it cannot be read.
    """
    whole: list[ManifestRead] = []
    wrong: list[Finding] = []

    async def work(place: ArchivePlace) -> None:
        async for one in verify_place(place):
            if isinstance(one, Finding):
                wrong.append(one)
                _tell(caller, one)
            else:
                whole.append(one)

    _visit(archive, s3_endpoint, s3_region, work)
    if caller.output.as_json:
        findings = [{"flaw": str(one.flaw), "name": one.name, "detail": one.detail} for one in wrong]
        caller.output.document({"whole": [_row(one) for one in whole], "findings": findings})
    if wrong:
        raise Fault(
            f"{len(wrong)} things are wrong with {archive}; {len(whole)} batches are whole",
            "Take what is missing or altered from a copy. What is half written may be a batch on its way: "
            "verify again after the next round.",
            status=FAILED,
        )
    if not caller.output.as_json:
        last = f"; the newest manifest has the hash {whole[-1].sha256}" if whole else ""
        caller.output.say(f"{len(whole)} batches are whole{last}")


@archive.command()
@archived_in
@click.argument("event_id", metavar="EVENT_ID", type=click.UUID)
@calling
def show(
    caller: Caller, *, archive: str, s3_endpoint: str | None, s3_region: str | None, event_id: UUID
) -> None:
    """Show all rows that ARCHIVE has of an event: payload, answer, leases, gates, transcript, metering."""

    async def work(place: ArchivePlace) -> list[dict[str, Any]]:
        return [{"table": table, **row} async for table, row in rows_of_event(place, event_id)]

    rows = _visit(archive, s3_endpoint, s3_region, work)
    if not rows:
        raise Fault(
            f"{archive} has nothing of the event {event_id}", "See 'sexton event show'.", status=FAILED
        )
    caller.output.document({"items": rows})


def _visit(
    archive: str, endpoint: str | None, region: str | None, work: Callable[[ArchivePlace], Awaitable[R]]
) -> R:
    address = read_archive(archive, endpoint, region)

    async def visit() -> R:
        async with open_place(address) as place:
            return await work(place)

    try:
        return trio.run(visit)
    except (NoArchive, ObjectStoreFault, SignerMissing) as fault:
        raise Fault(
            str(fault), "See to the folder, or the store and its credentials.", status=USAGE
        ) from fault
    except BadManifest as fault:
        raise Fault(str(fault), "Take it from a copy.", status=FAILED) from fault


def _row(read: ManifestRead) -> dict[str, Any]:
    manifest = read.manifest
    own = next(iter(manifest.tables.values()))
    return {
        "number": manifest.number,
        "kind": str(manifest.kind),
        "workspace_id": None if manifest.workspace_id is None else str(manifest.workspace_id),
        "from": manifest.first_at,
        "to": manifest.last_at,
        "rows": own.rows,
        "charged_nanos": own.nanos.get("charged_nanos", 0),
        "objects": len(manifest.objects),
        "size": sum(one.size for one in manifest.objects),
        "manifest": read.name,
        "sha256": read.sha256,
    }


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "from": moment(row["from"]), "to": moment(row["to"])}


def _tell(caller: Caller, finding: Finding) -> None:
    if not caller.output.as_json:
        caller.output.say(f"{FLAWS[finding.flaw]}: {finding.name}: {finding.detail}")
