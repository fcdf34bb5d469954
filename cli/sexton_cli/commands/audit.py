"""``sexton audit``: who changed what and from where; lists it, exports it, and verifies that it is whole."""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Final
from uuid import UUID

import click
import msgspec

from sexton_cli.caller import Caller
from sexton_cli.client import Row
from sexton_cli.commands.late_group import noun
from sexton_cli.commands.listing_group import ListingGroup
from sexton_cli.commands.options import calling
from sexton_cli.exits import CONFIG, FAILED, PROTOCOL, USAGE, Fault
from sexton_cli.lookups import first_of, workspace_path
from sexton_cli.output import Column, moment
from sexton_storage.decisions.audit import body_of, first_break
from sexton_storage.records.audit import PLATFORM_LOG, AuditEntry, AuditHead, AuditLine

LINE: Final = {"seq": int, "at": int, "actor": str, "name": str, "action": str, "target": str}
DAYS: Final = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"])
MAX_LINE_BYTES: Final = 1024 * 1024
COLUMNS: Final = (
    Column("seq", "LINE"),
    Column("when", "WHEN"),
    Column("who", "WHO", elastic=True),
    Column("action", "ACTION"),
    Column("target", "TARGET", elastic=True),
    Column("address", "FROM", spare=True),
)


class _Exported(msgspec.Struct, frozen=True):
    """One line of an export."""

    seq: int
    at: int
    entry_id: UUID
    actor: str
    name: str
    address: str
    action: str
    target: str
    workspace_id: UUID | None
    facts: dict[str, Any]
    request_id: str
    previous_hash: str
    hash: str


@noun("audit", cls=ListingGroup)
def audit() -> None:
    """Show, export and verify the log of who changed what; for admins."""


@audit.command(name="list")
@click.option("--actor", metavar="WHO", help="Only of this actor, as user:ID or api:ID.")
@click.option("--action", metavar="GLOB", help="Only these actions, as 'api_key.*'.")
@click.option("--target", metavar="ID", help="Only about the thing of this id or name.")
@click.option("--since", type=DAYS, help="Not before this day or time, in UTC.")
@click.option("--until", type=DAYS, help="Before this day or time, in UTC.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Lines at most.")
@click.option("--here", is_flag=True, help="Only what was changed in the workspace.")
@click.option("--platform", is_flag=True, help="The platform's log, as of its runners; for platform admins.")
@calling
def list_lines(  # noqa: PLR0913 - an option each
    caller: Caller,
    *,
    actor: str | None,
    action: str | None,
    target: str | None,
    since: datetime | None,
    until: datetime | None,
    limit: int,
    here: bool,
    platform: bool,
) -> None:
    """List the newest lines first. The word ``list`` may be left out."""
    if here and platform:
        raise Fault("--here and --platform are two logs", "Give one of them.", status=USAGE)
    query = {"actor": actor, "action": action, "target": target, "since": _ms(since), "until": _ms(until)}
    with caller.client() as client:
        path = f"{workspace_path(caller, client)}/audit" if here else _path(platform=platform)
        found = first_of(client, path, query, LINE, limit)
    if caller.output.as_json:
        caller.output.document({"items": found.items, "next_cursor": found.next_cursor})
        return
    shown = [{**row, "when": moment(row["at"]), "who": _who(row)} for row in found.items]
    caller.output.table(COLUMNS, shown)


@audit.command()
@click.option("--platform", is_flag=True, help="The platform's log; for platform admins.")
@calling
def export(caller: Caller, *, platform: bool) -> None:
    """Write all lines to standard output, oldest first, a JSON object each."""
    with caller.client() as client:
        sys.stdout.flush()
        for piece in client.download(f"{_path(platform=platform)}/export"):
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()


@audit.command()
@click.option("--file", "file", metavar="FILE", help="An export, in place of the server's log; - is input.")
@click.option("--platform", is_flag=True, help="The platform's log; for platform admins.")
@click.option(
    "--expect",
    metavar="LINE:HASH",
    multiple=True,
    help="The number and hash of a line that you have kept; as often as you have some.",
)
@calling
def verify(caller: Caller, *, file: str | None, platform: bool, expect: tuple[str, ...]) -> None:
    """Check that no line was changed, moved or taken out; prints the last line's number and hash to keep."""
    known = [_head(text) for text in expect]
    if file is None:
        with caller.client() as client:
            outcome = first_break(_lines(client.download(f"{_path(platform=platform)}/export")), known)
    else:
        with _opened(file) as source:
            outcome = first_break(_lines(iter(lambda: source.read(65536), b"")), known)
    if not isinstance(outcome, AuditHead):
        seq, wrong = outcome
        way_out = "Compare the log with an export that was kept elsewhere, and with the database's backups."
        raise Fault(f"the log is not whole at line {seq}: {wrong.value}", way_out, status=FAILED)
    if caller.output.as_json:
        caller.output.document({"lines": outcome.seq, "head": f"{outcome.seq}:{outcome.hash.hex()}"})
        return
    caller.output.say(f"{outcome.seq} lines, whole. Keep this elsewhere: {outcome.seq}:{outcome.hash.hex()}")


def _path(*, platform: bool) -> str:
    return "/v1/admin/audit" if platform else "/v1/audit"


def _ms(when: datetime | None) -> int | None:
    return None if when is None else round(when.replace(tzinfo=UTC).timestamp() * 1000)


def _who(row: Row) -> str:
    name, actor = str(row["name"]), str(row["actor"])
    return actor if name in actor else f"{name} ({actor})"


def _head(text: str) -> AuditHead:
    seq, _, hashed = text.partition(":")
    try:
        return AuditHead(int(seq), bytes.fromhex(hashed))
    except ValueError as fault:
        raise Fault(
            f"--expect {text}: not a number and a hash", "Give it as LINE:HASH.", status=USAGE
        ) from fault


def _opened(file: str) -> BinaryIO:
    try:
        return sys.stdin.buffer if file == "-" else Path(file).open("rb")
    except OSError as fault:
        raise Fault(f"{file}: {fault.strerror}", "Name an export with --file.", status=CONFIG) from fault


def _lines(pieces: Iterator[bytes]) -> Iterator[AuditLine]:
    rest, decode = b"", msgspec.json.Decoder(_Exported).decode
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        if len(rest) > MAX_LINE_BYTES:
            raise Fault("a line of the export has no end", status=PROTOCOL)
        for line in whole:
            try:
                yield _line(decode(line))
            except (msgspec.DecodeError, ValueError) as fault:
                raise Fault(f"what came is no export of an audit log: {fault}", status=PROTOCOL) from fault
    if rest:
        raise Fault("the export is cut short", "Export it again.", status=PROTOCOL)


def _line(told: _Exported) -> AuditLine:
    entry = AuditEntry(
        id=told.entry_id,
        log_id=PLATFORM_LOG,  # Of which log it is does not show in a line.
        action=told.action,
        actor=told.actor,
        name=told.name,
        address=told.address,
        request_id=told.request_id,
        workspace_id=told.workspace_id,
        facts=told.facts,
    )
    previous, hashed = bytes.fromhex(told.previous_hash), bytes.fromhex(told.hash)
    return AuditLine(entry.log_id, told.seq, told.at, told.target, body_of(entry), previous, hashed)
