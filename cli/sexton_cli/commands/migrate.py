"""``sexton migrate``: brings the database's schema up to date, and starts nothing."""

from pathlib import Path

import click
import trio

from sexton_cli.caller import Caller
from sexton_cli.commands.command import command
from sexton_cli.commands.options import calling
from sexton_cli.data_folder import default_data
from sexton_cli.exits import StartupFault, first_of
from sexton_cli.node_storage import migrate_schema, plan_schema
from sexton_cli.schema_plan_text import document_of, lines_of
from sexton_cli.settings import DATABASE_VARIABLE, DEFAULT_DATABASE_WAIT_S, NodeSettings

FOLDER = click.Path(file_okay=False, path_type=Path)


@command()
@click.option("--data", type=FOLDER, envvar="SEXTON_DATA", help="Folder of the server's state.")
@click.option(
    "--database-url",
    envvar=DATABASE_VARIABLE,
    help="Your PostgreSQL, with a role that owns the schema. [default: the embedded one; no server may run]",
)
@click.option(
    "--database-wait",
    "wait_s",
    type=click.FloatRange(0),
    default=DEFAULT_DATABASE_WAIT_S,
    show_default=True,
    help="Seconds to wait for it to answer.",
)
@click.option(
    "--dry-run", is_flag=True, help="Show each step with the tables that it locks, and change nothing."
)
@calling
def migrate(
    caller: Caller, *, data: Path | None, database_url: str | None, wait_s: float, dry_run: bool
) -> None:
    """Bring the database's schema up to date, and start nothing.

    Servers do so themselves when they start, unless they are told not to (--no-migrate) or may not. A step
    that was cut off is begun again by the next run.
    """
    settings = NodeSettings(data=data or default_data(), database_url=database_url, database_wait_s=wait_s)
    try:
        if dry_run:
            found = trio.run(plan_schema, settings, caller.output.note)
            if caller.output.as_json:
                caller.output.document(document_of(found))
                return
            for line in lines_of(found):
                caller.output.say(line)
            return
        ran = trio.run(migrate_schema, settings, caller.output.note)
    except* StartupFault as group:
        raise first_of(group) from None
    if caller.output.as_json:
        caller.output.document({"ran": list(ran)})
        return
    for name in ran:
        caller.output.say(name)
    if not ran:
        caller.output.note("The schema is up to date.")
