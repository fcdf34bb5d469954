"""``sexton keys``: the tenant's API keys."""

import time
from typing import Any, Final

import click

from sexton_cli.caller import Caller
from sexton_cli.client import Client, Row, field
from sexton_cli.commands.late_group import noun
from sexton_cli.commands.options import calling
from sexton_cli.id_parts import is_id
from sexton_cli.identity import KEYS, keys_of, pick
from sexton_cli.output import Column, moment

DAY_MS: Final = 24 * 3_600_000
COLUMNS = (
    Column("key_name", "NAME", elastic=True),
    Column("id", "ID"),
    Column("role", "ROLE", spare=True),
    Column("state", "STATE"),
    Column("created", "CREATED", spare=True),
    Column("used", "LAST USED", spare=True),
    Column("owner", "OWNER", spare=True),
)


@noun()
def keys() -> None:
    """List, make, revoke and delete API keys."""


@keys.command("list")
@calling
def list_(caller: Caller) -> None:
    """List the tenant's keys, newest first; their values are never shown."""
    with caller.client() as client:
        rows = list(keys_of(client))
    if caller.output.as_json:
        caller.output.document({"items": rows, "total": len(rows)})
        return
    caller.output.table(
        COLUMNS,
        [
            {
                **row,
                "role": f"{row['role']}, platform" if row.get("platform_admin") else row["role"],
                "state": _state(row),
                "owner": row.get("owner_id") or "tenant",
                "created": moment(row.get("created_at")),
                "used": moment(row.get("last_used_at")),
            }
            for row in rows
        ],
    )


@keys.command()
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(["viewer", "user", "operator", "admin"]),
    help="The key's role, at most your own. [default: operator]",
)
@click.option(
    "--platform-admin",
    is_flag=True,
    help="The key may act on the whole fleet; only a platform admin can make it.",
)
@click.option("--description", help="What it is for; at most 256 characters.")
@click.option(
    "--days",
    type=click.IntRange(1, 3650),
    help="The key ends by itself after this number of days. [default: it lasts until it is revoked]",
)
@calling
def create(
    caller: Caller,
    *,
    name: str,
    role: str | None,
    platform_admin: bool,
    description: str | None,
    days: int | None,
) -> None:
    """Make a key and show it: this once, never again."""
    body: dict[str, Any] = {"key_name": name}
    body |= {} if role is None else {"role": role}
    body |= {"platform_admin": True} if platform_admin else {}
    body |= {} if description is None else {"description": description}
    body |= {} if days is None else {"expires_at": (time.time_ns() // 10**6) + days * DAY_MS}
    with caller.client() as client:
        made = client.post(KEYS, body)
    value = field(made, "key", str)
    if caller.output.as_json:
        caller.output.document(made)
        return
    caller.output.note(f"Made key {name}. It is shown this once; keep it in a safe place.")
    caller.output.say(value)


@keys.command()
@click.argument("name")
@calling
def revoke(caller: Caller, *, name: str) -> None:
    """Revoke the key of this NAME or id; it stops working at once, for good."""
    with caller.client() as client:
        revoked = client.patch(f"{KEYS}/{_id_of(client, name)}", {"active": False})
    if caller.output.as_json:
        caller.output.document(revoked)
        return
    caller.output.say(f"Revoked key {name}.")


@keys.command()
@click.argument("name")
@calling
def delete(caller: Caller, *, name: str) -> None:
    """Delete the key of this NAME or id, which was revoked before."""
    with caller.client() as client:
        key_id = _id_of(client, name)
        client.delete(f"{KEYS}/{key_id}")
    if caller.output.as_json:
        caller.output.document({"id": key_id, "deleted": True})
        return
    caller.output.say(f"Deleted key {name}.")


def _state(row: Row) -> str:
    """As the list shows it; a key that is about to end says when."""
    if row.get("revoked_at") is not None or (not row["active"] and row.get("expires_at") is None):
        return "revoked"
    if not row["active"]:
        return "expired"
    return f"active, ends {moment(row.get('expires_at'))}" if row.get("expires_at") is not None else "active"


def _id_of(client: Client, wanted: str) -> str:
    """The server itself says what it thinks of an id; a name is looked up."""
    if is_id(wanted):
        return wanted
    rows = list(keys_of(client))
    return str(pick(rows, wanted, id_key="id", name_key="key_name", listing="sexton keys list")["id"])
