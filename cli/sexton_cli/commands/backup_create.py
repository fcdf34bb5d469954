"""``sexton backup create``: copies a database while it serves."""

import os
from functools import partial
from pathlib import Path

import click
import trio

from sexton_cli.backups import facts_of, keys_of, refusing
from sexton_cli.caller import Caller
from sexton_cli.commands.backup import FOLDER
from sexton_cli.commands.command import command
from sexton_cli.commands.options import calling
from sexton_cli.data_folder import default_data
from sexton_cli.exits import StartupFault, first_of
from sexton_cli.node_storage import visit_storage
from sexton_cli.settings import DATABASE_VARIABLE
from sexton_http.identity.context import VERSION
from sexton_storage.backups.copies import Sealing, Source, make_backup
from sexton_storage.backups.manifest import Kind, Manifest
from sexton_storage.backups.repository import Repository
from sexton_storage.backups.sealed_keys import read_recipient
from sexton_storage.embedded import embedded_dsn
from sexton_storage.schema_number import schema_number
from sexton_storage.terms import LAST_BACKUP


@command()
@click.option("--data", type=FOLDER, envvar="SEXTON_DATA", help="Folder of the server's state.")
@click.option(
    "--database-url",
    envvar=DATABASE_VARIABLE,
    help="Your PostgreSQL, of which a dump is made. [default: the embedded one of --data]",
)
@click.option(
    "--to",
    "folder",
    type=FOLDER,
    required=True,
    envvar="SEXTON_BACKUPS",
    help="Folder of the backups, best on another disk.",
)
@click.option(
    "--recipient",
    metavar="KEY",
    envvar="SEXTON_BACKUP_RECIPIENT",
    help="The public key of 'sexton backup keygen', to which the keys of the data folder are sealed.",
)
@click.option(
    "--secret",
    "secrets",
    type=click.Path(path_type=Path, dir_okay=False),
    multiple=True,
    help="Another file to seal, such as the key of --tls-key; may be repeated.",
)
@click.option(
    "--without-keys", is_flag=True, help="Leave the keys out; without them no secret can be read again."
)
@calling
def create(
    caller: Caller,
    *,
    data: Path | None,
    database_url: str | None,
    folder: Path,
    recipient: str | None,
    secrets: tuple[Path, ...],
    without_keys: bool,
) -> None:
    """Back up the database of a data folder, or your own, while it serves.

    The backup appears in the folder when it is whole and on disk.
    """
    if (recipient is None) is not without_keys:
        raise click.UsageError("give --recipient (see 'sexton backup keygen'), or --without-keys")
    home = data or default_data()
    with refusing():
        sealing = (
            None
            if recipient is None
            else Sealing(read_recipient(recipient), partial(keys_of, home, os.environ, secrets))
        )
        if sealing is not None:
            sealing.keys()
        try:
            made = trio.run(_create, home, database_url, Repository(folder), sealing)
        except* StartupFault as group:
            raise first_of(group) from None
    caller.output.thing(facts_of(made), facts_of(made))


async def _create(
    home: Path, database_url: str | None, repository: Repository, sealing: Sealing | None
) -> Manifest:
    async with visit_storage(home, database_url) as storage:

        async def now() -> int:
            return (await storage.fleet.census()).at

        kind = Kind.CLUSTER if database_url is None else Kind.DUMP
        dsn = embedded_dsn(home) if database_url is None else database_url
        made = await make_backup(repository, Source(dsn, kind, VERSION, schema_number(), now), sealing)
        await storage.instance.put_setting(LAST_BACKUP, str(made.ended_at).encode())
        return made
