"""``sexton files``: lists, gets and deletes the files that the runs of an event left."""

import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Final

import click

from sexton_cli.caller import Caller
from sexton_cli.client import Client, Row
from sexton_cli.commands.late_group import noun
from sexton_cli.commands.options import calling
from sexton_cli.commands.words import EVENT_WORD
from sexton_cli.exits import CONFIG, FAILED, PROTOCOL, Fault
from sexton_cli.lookups import first_of, segment, workspace_path
from sexton_cli.output import Column, moment
from sexton_cli.short_ids import EVENT, id_in

FILE: Final = {"artefact_id": str, "name": str, "attempt": int, "size": int, "sha256": str}
MOST: Final = 10_000
COLUMNS: Final = (
    Column("name", "FILE", elastic=True),
    Column("attempt", "ATTEMPT"),
    Column("size", "BYTES"),
    Column("media_type", "TYPE", spare=True),
    Column("created", "CREATED", spare=True),
    Column("artefact_id", "ID", spare=True),
)


@noun()
def files() -> None:
    """List, get and delete the files that an event's runs left."""


@files.command(name="list")
@click.argument("event", type=EVENT_WORD)
@calling
def list_files(caller: Caller, *, event: str) -> None:
    """List the files that the runs of the EVENT of this id left."""
    with caller.client() as client:
        workspace = workspace_path(caller, client)
        found = _files(client, workspace, event)
    if caller.output.as_json:
        caller.output.document({"items": found})
        return
    caller.output.table(COLUMNS, [{**row, "created": moment(row.get("created_at"))} for row in found])


@files.command()
@click.argument("event", type=EVENT_WORD)
@click.argument("name")
@click.option(
    "--attempt", type=click.IntRange(1), help="The one of this attempt. [default: the last that has it]"
)
@click.option(
    "--to",
    metavar="FILE",
    help="Where to write it; - is standard output. [default: the last part of its name, in this folder]",
)
@calling
def get(caller: Caller, *, event: str, name: str, attempt: int | None, to: str | None) -> None:
    """Get the file NAME that a run of the EVENT left. It is written whole or not at all, and verified."""
    with caller.client() as client:
        workspace = workspace_path(caller, client)
        mine = [row for row in _files(client, workspace, event) if row["name"] == name]
        chosen = [row for row in mine if attempt in {None, row["attempt"]}]
        if not chosen:
            way_out = f"'sexton files list {event}' shows those that there are."
            raise Fault(f"no run of this event left a file {name!r}", way_out, status=FAILED)
        row = chosen[-1]
        path = f"{workspace}/artefacts/{segment(row['artefact_id'])}/content"
        target = to or PurePosixPath(name).name
        with _opened(target) as sink:
            _copy(client, path, row, sink)
    if target != "-":
        caller.output.note(f"{target}: {row['size']} bytes")


@files.command()
@click.argument("artefact")
@calling
def show(caller: Caller, *, artefact: str) -> None:
    """Show the file of this id: of which run it is, its size and its SHA-256."""
    with caller.client() as client:
        found = client.get(f"{workspace_path(caller, client)}/artefacts/{segment(artefact)}")
    caller.output.thing(
        found,
        {
            "file": found.get("name"),
            "type": found.get("media_type"),
            "bytes": found.get("size"),
            "sha256": found.get("sha256"),
            "event": found.get("event_id"),
            "attempt": found.get("attempt"),
            "created": moment(found.get("created_at")),
        },
    )


@files.command()
@click.argument("artefact")
@calling
def delete(caller: Caller, *, artefact: str) -> None:
    """Delete the file of this id before its time; for operators and above."""
    with caller.client() as client:
        client.delete(f"{workspace_path(caller, client)}/artefacts/{segment(artefact)}")
    caller.output.note("Deleted.")


def _files(client: Client, workspace: str, event: str) -> list[Row]:
    return first_of(
        client, f"{workspace}/events/{id_in(client, workspace, EVENT, event)}/artefacts", {}, FILE, MOST
    ).items


def _copy(client: Client, path: str, row: Row, sink: IO[bytes]) -> None:
    digest = hashlib.sha256()
    for piece in client.download(path):
        digest.update(piece)
        sink.write(piece)
    if digest.hexdigest() != row["sha256"]:
        way_out = "Try again; if it stays so, the file was deleted meanwhile."
        raise Fault("what came is not the file: it is cut short or changed", way_out, status=PROTOCOL)


@contextmanager
def _opened(target: str) -> Iterator[IO[bytes]]:
    """The file under another name, which becomes its own at the end; what fails leaves nothing."""
    if target == "-":
        yield sys.stdout.buffer
        return
    try:
        held, name = tempfile.mkstemp(prefix=".sexton-", dir=Path(target).parent)
    except OSError as fault:
        raise Fault(f"{target}: {fault.strerror}", "Name another place with --to.", status=CONFIG) from fault
    try:
        with os.fdopen(held, "wb") as file:
            yield file
        Path(name).replace(target)
    except OSError as fault:
        raise Fault(f"{target}: {fault.strerror}", "Name another place with --to.", status=CONFIG) from fault
    finally:
        Path(name).unlink(missing_ok=True)
