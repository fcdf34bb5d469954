"""``sexton restore``: makes a data folder or a database of a backup."""

from pathlib import Path

import click
import trio

from sexton_cli.backups import facts_of, refusing
from sexton_cli.caller import Caller
from sexton_cli.commands.backup import FOLDER, kept_in, read_time
from sexton_cli.commands.command import command
from sexton_cli.commands.options import calling
from sexton_cli.data_folder import default_data
from sexton_cli.exits import USAGE, Fault
from sexton_http.identity.context import VERSION
from sexton_storage.backups.manifest import Kind
from sexton_storage.backups.repository import Repository
from sexton_storage.backups.restores import Wanted, check_empty, check_wanted, restore_cluster
from sexton_storage.backups.row_restores import restore_rows
from sexton_storage.schema_number import schema_number

DUMPED = "the backup is a dump of a PostgreSQL of yours"


@command()
@kept_in
@click.option(
    "--backup", "backup_id", metavar="ID", help="The backup. [default: the newest that fits --until]"
)
@click.option("--data", type=FOLDER, envvar="SEXTON_DATA", help="Folder to restore into; it has to be empty.")
@click.option(
    "--database-url", help="For a dump: the PostgreSQL to restore into; its database has to be empty."
)
@click.option(
    "--until",
    metavar="TIME",
    help="The last moment to restore, such as 2026-03-01T09:30:00Z; needs the archive of --wal-archive.",
)
@click.option(
    "--timeline",
    type=click.IntRange(1),
    help="The history to follow, where restores of before made several. [default: the newest]",
)
@click.option(
    "--key",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The private key of 'sexton backup keygen'.",
)
@click.option("--without-keys", is_flag=True, help="Restore the database alone.")
@calling
def restore(  # noqa: PLR0913 - each is an option
    caller: Caller,
    *,
    folder: Path,
    backup_id: str | None,
    data: Path | None,
    database_url: str | None,
    until: str | None,
    timeline: int | None,
    key: Path | None,
    without_keys: bool,
) -> None:
    """Restore a backup into an empty folder or an empty database.

    Nothing is touched when it is refused, and a restore that is interrupted leaves nothing that a server
    starts on.
    """
    repository, home = Repository(folder), data or default_data()
    moment = None if until is None else read_time(until, "--until")
    with refusing():
        manifest = repository.newest(moment) if backup_id is None else repository.get(backup_id)
        if (manifest.kind is Kind.DUMP) is (database_url is None):
            what = DUMPED if database_url is None else "the backup is of an embedded database"
            way_out = "Give --database-url." if database_url is None else "Leave --database-url out."
            raise Fault(what, way_out, status=USAGE)
        check_empty(home)
        wanted = Wanted(manifest, moment, timeline, key, without_keys=without_keys)
        keys = check_wanted(repository, wanted, schema_number(), VERSION)
        if database_url is None:
            trio.run(restore_cluster, repository, wanted, home, keys, caller.output.note)
        else:
            trio.run(restore_rows, repository, manifest, database_url, home, keys)
    facts = facts_of(manifest) | {"data": str(home), "files": sorted(keys)}
    caller.output.thing(facts, f"{manifest.id} is restored")
