"""``sexton sign-in-link``: lets the operator of this machine's server in with a browser."""

import secrets
from pathlib import Path

import click
import trio

from sexton_cli.addresses import DEFAULT_BASE_URL, read_base_url
from sexton_cli.caller import Caller
from sexton_cli.commands.command import command
from sexton_cli.commands.options import calling
from sexton_cli.data_folder import default_data, kept_address
from sexton_cli.exits import UNAVAILABLE, USAGE, Fault, StartupFault, first_of
from sexton_cli.node_storage import visit_storage
from sexton_cli.settings import DATABASE_VARIABLE
from sexton_http.identity.bootstrap import first_admin
from sexton_http.identity.browsers import offer_link

FOLDER = click.Path(file_okay=False, path_type=Path)


@command("sign-in-link")
@click.option("--data", type=FOLDER, envvar="SEXTON_DATA", help="Folder of the server's state.")
@click.option("--database-url", envvar=DATABASE_VARIABLE, help="The server's PostgreSQL, if it is your own.")
@click.option(
    "--server",
    "address",
    metavar="URL",
    help="The address that the link starts with. [default: the server's --public-url]",
)
@calling
def sign_in_link(caller: Caller, *, data: Path | None, database_url: str | None, address: str | None) -> None:
    """Print a link that signs the server's first admin in with a browser, once, within an hour.

    No token is asked for, and no route gives such a link: it takes the server's own database, which only who
    runs the server can reach.
    """
    folder = data or default_data()
    try:
        base_url = read_base_url(address or kept_address(folder) or DEFAULT_BASE_URL)
    except ValueError as fault:
        raise Fault(f"--server {address}: {fault}", status=USAGE) from fault
    try:
        link = trio.run(_offer, folder, database_url, base_url)
    except* StartupFault as group:
        raise first_of(group) from None
    if caller.output.as_json:
        caller.output.document({"sign_in_url": link})
        return
    caller.output.note("This signs one browser in, once, within an hour:")
    caller.output.say(link)


async def _offer(data: Path, database_url: str | None, base_url: str) -> str:
    async with visit_storage(data, database_url) as storage:
        user_id = await first_admin(storage)
        if user_id is None:
            way_out = "Start the server ('sexton up')"
            raise StartupFault("UZ-STARTUP-002", "no server has started here yet", way_out, UNAVAILABLE)
        return await offer_link(storage, base_url, user_id, secrets.token_hex)
