"""``sexton sign-ins``: where you are signed in."""

import click

from sexton_cli import short_ids
from sexton_cli.caller import Caller
from sexton_cli.client import rows
from sexton_cli.commands.late_group import noun
from sexton_cli.commands.options import calling
from sexton_cli.id_parts import is_part
from sexton_cli.output import Column, moment
from sexton_cli.saved_sign_in import SIGN_INS, end
from sexton_cli.short_ids import whole_id

COLUMNS = (
    Column("id", "ID"),
    Column("kind", "KIND"),
    Column("shown", "NAME", elastic=True),
    Column("created", "SINCE", spare=True),
    Column("used", "LAST USED", spare=True),
    Column("ends", "ENDS IF UNUSED", spare=True),
)
SIGN_IN = {"id": str, "kind": str, "name": str, "current": bool}


@noun("sign-ins")
def sign_ins() -> None:
    """List and end your sign-ins, in browsers and terminals."""


@sign_ins.command("list")
@calling
def list_(caller: Caller) -> None:
    """List where you are signed in, newest first."""
    with caller.client() as client:
        document = client.get(SIGN_INS)
    items = rows(document, SIGN_IN)
    if caller.output.as_json:
        caller.output.document(document)
        return
    caller.output.table(
        COLUMNS,
        [
            {
                **row,
                "shown": f"{row['name']} (here)" if row["current"] else row["name"],
                "created": moment(row.get("created_at")),
                "used": moment(row.get("last_used_at")),
                "ends": moment(row.get("expires_at")),
            }
            for row in items
        ],
    )


@sign_ins.command("end")
@click.argument("sign_in_id", metavar="ID")
@calling
def end_(caller: Caller, *, sign_in_id: str) -> None:
    """Sign out where this ID is: its tokens stop working at once."""
    with caller.client() as client:
        known = rows(client.get(SIGN_INS), SIGN_IN) if is_part(sign_in_id) else ()
        sign_in_id = whole_id(sign_in_id, short_ids.SIGN_IN, known)
        end(client, sign_in_id)
    if caller.output.as_json:
        caller.output.document({"id": sign_in_id, "ended": True})
        return
    caller.output.say(f"Ended the sign-in {sign_in_id}.")
