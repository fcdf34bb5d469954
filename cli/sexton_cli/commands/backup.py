"""``sexton backup``: makes backups, and looks after a folder of them."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import click
import trio

from sexton_cli.backups import refusing, row_of
from sexton_cli.caller import Caller
from sexton_cli.commands.late_group import LateGroup, noun
from sexton_cli.commands.options import calling
from sexton_cli.commands.table import BACKUP
from sexton_cli.data_folder import default_data
from sexton_cli.exits import FAILED, USAGE, Fault, StartupFault, first_of
from sexton_cli.node_storage import visit_storage
from sexton_cli.output import Column
from sexton_cli.settings import DATABASE_VARIABLE
from sexton_storage.backups.repository import Repository
from sexton_storage.backups.sealed_keys import make_key
from sexton_storage.terms import LAST_BACKUP

FOLDER: Final = click.Path(file_okay=False, path_type=Path)
COLUMNS: Final = (
    Column("id", "BACKUP", elastic=True),
    Column("kind", "KIND"),
    Column("ended_at", "UP TO"),
    Column("size", "BYTES"),
    Column("release", "RELEASE", spare=True),
    Column("schema", "SCHEMA", spare=True),
    Column("keys", "KEYS", spare=True),
    Column("damage", "DAMAGE"),
)


class BackupGroup(LateGroup):
    """Options without a verb are those of ``create``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does, with the verb that may be left out."""
        begins = {name for param in self.get_params(ctx) for name in param.opts}
        if args and args[0].startswith("-") and args[0].partition("=")[0] not in begins | {"-h", "--help"}:
            args = ["create", *args]
        return super().parse_args(ctx, args)


def kept_in(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option that names the folder of backups."""
    return click.option(
        "--from", "folder", type=FOLDER, required=True, envvar="SEXTON_BACKUPS", help="Folder of the backups."
    )(command)


@noun(cls=BackupGroup, late=BACKUP)
def backup() -> None:
    """Back a serving database and its keys up; verify, list, prune and restore backups.

    Without a verb it is 'create'.
    """


@backup.command()
@click.option(
    "--to", "path", type=click.Path(path_type=Path), required=True, help="New file for the private key."
)
@calling
def keygen(caller: Caller, *, path: Path) -> None:
    """Make a key pair for the keys in backups: the private key goes to a file, the public key is printed.

    Keep the private key away from the server and from the backups. It is needed to restore.
    """
    with refusing():
        public = make_key(path)
    caller.output.thing({"recipient": public, "key_file": str(path)}, public)


@backup.command("list")
@kept_in
@calling
def list_(caller: Caller, *, folder: Path) -> None:
    """List backups, newest first, with what is wrong with those that do not count."""
    with refusing():
        rows = [row_of(one) for one in Repository(folder).list_all()]
    caller.output.listing({"items": rows}, COLUMNS, rows)


@backup.command()
@kept_in
@click.option("--backup", "backup_id", metavar="ID", help="The one backup to verify. [default: all]")
@calling
def verify(caller: Caller, *, folder: Path, backup_id: str | None) -> None:
    """Compare all files of backups with their hashes; fails unless there is one and all are whole."""
    repository = Repository(folder)
    with refusing():
        names = [one.id for one in repository.list_all()] if backup_id is None else [backup_id]
        for name in names:
            repository.check(repository.get(name))
            if not caller.output.as_json:
                caller.output.say(f"{name} is whole")
    if not names:
        raise Fault(
            f"{folder} has no backup", "Make one with 'sexton backup create --to FOLDER'.", status=FAILED
        )
    if caller.output.as_json:
        caller.output.document({"items": [{"id": name, "whole": True} for name in names]})


@backup.command()
@kept_in
@click.option(
    "--keep", type=click.IntRange(1), required=True, metavar="N", help="How many whole backups stay."
)
@calling
def prune(caller: Caller, *, folder: Path, keep: int) -> None:
    """Remove all but the newest N whole backups, and the write-ahead log that only the others needed."""
    repository = Repository(folder)
    with refusing(), repository.locked():
        gone = list(repository.prune(keep))
    if caller.output.as_json:
        caller.output.document({"removed": gone})
    for name in gone if not caller.output.as_json else ():
        caller.output.say(f"{name} is removed")


@backup.command()
@click.option("--data", type=FOLDER, envvar="SEXTON_DATA", help="Folder of the server's state.")
@click.option(
    "--database-url", envvar=DATABASE_VARIABLE, help="Your PostgreSQL. [default: the embedded one of --data]"
)
@click.option("--at", metavar="TIME", help="When it was made, such as 2026-03-01T02:00:00Z. [default: now]")
@calling
def record(caller: Caller, *, data: Path | None, database_url: str | None, at: str | None) -> None:
    """Tell the servers that another tool has made a backup, so that SextonBackupOld knows of it."""
    given = None if at is None else read_time(at, "--at")

    async def work() -> int:
        async with visit_storage(data or default_data(), database_url) as storage:
            now = (await storage.fleet.census()).at
            if given is not None and given > now:
                raise Fault("--at is in the future", "Give the time at which it was made.", status=USAGE)
            await storage.instance.put_setting(LAST_BACKUP, str(given or now).encode())
            return given or now

    try:
        made_at = trio.run(work)
    except* StartupFault as group:
        raise first_of(group) from None
    caller.output.thing({"recorded_at": made_at}, "recorded")


def read_time(text: str, option: str) -> int:
    """Read a time with its offset; Unix ms. Raises Fault.

    >>> read_time("2024-11-20T01:00:00+01:00", "--until")
    1732060800000
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise Fault(
            f"{option} {text!r} is no time with an offset from UTC",
            "Such as 2026-03-01T02:00:00Z.",
            status=USAGE,
        )
    return round(found.timestamp() * 1000)
