"""``sexton session``: where the people of your tenant are signed in."""

from typing import Final

import click

from sexton_cli import short_ids
from sexton_cli.caller import Caller
from sexton_cli.client import Client, field, rows
from sexton_cli.commands.late_group import noun
from sexton_cli.commands.options import calling
from sexton_cli.exits import USAGE, Fault
from sexton_cli.id_parts import is_part
from sexton_cli.output import Column, moment
from sexton_cli.short_ids import whole_id

SESSIONS: Final = "/v1/sessions"
SESSION: Final = {"id": str, "member_id": str, "kind": str, "name": str, "current": bool}
COLUMNS: Final = (
    Column("id", "ID"),
    Column("member_id", "MEMBER"),
    Column("kind", "KIND"),
    Column("shown", "NAME", elastic=True),
    Column("used", "LAST USED", spare=True),
    Column("ends", "ENDS IF UNUSED", spare=True),
)
MEMBER_HELP: Final = "Of the member of this id, for admins; without it, your own."


@noun("session")
def session() -> None:
    """List and end sessions in browsers and terminals: your own, and as an admin anybody's."""


@session.command("list")
@click.option("--member", "member_id", metavar="ID", help=MEMBER_HELP)
@click.option("--all", "everybody", is_flag=True, help="Of the whole tenant; for admins.")
@calling
def list_(caller: Caller, *, member_id: str | None, everybody: bool) -> None:
    """List sessions, newest first."""
    query = "?whose=all" if everybody else "" if member_id is None else f"?member_id={member_id}"
    with caller.client() as client:
        document = client.get(f"{SESSIONS}{query}")
    items = rows(document, SESSION)
    if caller.output.as_json:
        caller.output.document(document)
        return
    caller.output.table(
        COLUMNS,
        [
            {
                **row,
                "shown": f"{row['name']} (here)" if row["current"] else row["name"],
                "used": moment(row.get("last_used_at")),
                "ends": moment(row.get("expires_at")),
            }
            for row in items
        ],
    )


@session.command("end")
@click.argument("session_id", metavar="[ID]", required=False)
@click.option("--member", "member_id", metavar="ID", help="All of the member of this id, for admins.")
@click.option("--all", "everywhere", is_flag=True, help="All of your own, this one too.")
@calling
def end_(caller: Caller, *, session_id: str | None, member_id: str | None, everywhere: bool) -> None:
    """End the session of this ID, or all of a person: tokens and streams end at once, on every server."""
    if sum((session_id is not None, member_id is not None, everywhere)) != 1:
        raise Fault("say which: an ID, --member ID, or --all", "See 'sexton session list'.", status=USAGE)
    query = "" if member_id is None else f"?member_id={member_id}"
    with caller.client() as client:
        one = "" if session_id is None else f"/{_whole(client, session_id)}"
        done = client.delete(f"{SESSIONS}{one}{query}")
    if caller.output.as_json:
        caller.output.document({"id": session_id, "ended": True} if session_id is not None else done)
        return
    ended = 1 if session_id is not None else field(done, "ended", int)
    caller.output.say(f"Ended {ended} session{'' if ended == 1 else 's'}.")


def _whole(client: Client, wanted: str) -> str:
    """The id of which this is a part, among one's own sessions."""
    known = rows(client.get(SESSIONS), SESSION) if is_part(wanted) else ()
    return whole_id(wanted, short_ids.SESSION, known)
