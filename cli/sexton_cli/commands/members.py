"""``sexton member``: the members of your tenant."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import click

from sexton_cli.caller import Caller
from sexton_cli.client import Client, Row, field, rows
from sexton_cli.commands.late_group import noun
from sexton_cli.commands.options import calling
from sexton_cli.id_parts import is_id
from sexton_cli.identity import MAX_PAGES, PAGE_SIZE, pick
from sexton_cli.output import Column, moment

MEMBERS: Final = "/v1/members"
MEMBER: Final[Mapping[str, type]] = {"id": str, "name": str, "subject": str, "role": str, "status": str}
ROLES: Final = click.Choice(["viewer", "user", "operator", "admin"])
COLUMNS: Final = (
    Column("shown", "NAME", elastic=True),
    Column("id", "ID"),
    Column("role", "ROLE"),
    Column("status", "STATUS"),
    Column("subject", "KNOWN AS", spare=True),
    Column("since", "SINCE", spare=True),
)


@noun("member")
def member() -> None:
    """List, invite, promote, suspend and remove the members of your tenant."""


@member.command("list")
@calling
def list_(caller: Caller) -> None:
    """List the members of your tenant, removed ones too, oldest first."""
    with caller.client() as client:
        items = list(members_of(client))
    if caller.output.as_json:
        caller.output.document({"items": items, "total": len(items)})
        return
    caller.output.table(
        COLUMNS,
        [
            {
                **row,
                "shown": row["name"] or row["subject"],
                "role": f"{row['role']}, platform" if row.get("platform_admin") else row["role"],
                "since": moment(row.get("created_at")),
            }
            for row in items
        ],
    )


@member.command()
@click.argument("name")
@click.option("--role", type=ROLES, help="The role, at most your own. [default: user]")
@click.option(
    "--subject",
    metavar="ISSUER#SUBJECT",
    help="How a provider names this person; without it, the link is the only way in.",
)
@calling
def invite(caller: Caller, *, name: str, role: str | None, subject: str | None) -> None:
    """Add a member, or let a removed one in again, and show a link that signs one browser in, once.

    NAME is the name or id of a member, or the name of a new one.
    """
    with caller.client() as client:
        known = next((row for row in members_of(client) if name in {row["id"], row["name"]}), None)
        body: dict[str, Any] = {} if role is None else {"role": role}
        if known is not None:
            made = client.post(f"{MEMBERS}/{known['id']}/invitation", body)
        else:
            body |= {"name": name} if subject is None else {"name": name, "subject": subject}
            made = client.post(MEMBERS, body)
    if caller.output.as_json:
        caller.output.document(made)
        return
    caller.output.note(f"This signs one browser in as {name}, once, within an hour:")
    caller.output.say(field(made, "sign_in_url", str))


@member.command()
@click.argument("who", metavar="MEMBER")
@click.argument("role", type=ROLES)
@calling
def role(caller: Caller, *, who: str, role: str) -> None:
    """Give a MEMBER another role, at most your own; it counts at once, for tokens and keys too."""
    _change(caller, who, {"role": role}, f"{who} is {role} now.")


@member.command()
@click.argument("who", metavar="MEMBER")
@calling
def suspend(caller: Caller, *, who: str) -> None:
    """Suspend a MEMBER: sign-ins end, and tokens and keys are refused at once, until 'resume'."""
    _change(caller, who, {"status": "suspended"}, f"Suspended {who}.")


@member.command()
@click.argument("who", metavar="MEMBER")
@calling
def resume(caller: Caller, *, who: str) -> None:
    """Let a suspended MEMBER in again; the member's keys work as before."""
    _change(caller, who, {"status": "active"}, f"Resumed {who}.")


@member.command()
@click.argument("who", metavar="MEMBER")
@click.option(
    "--hand-over-to", "heir", metavar="MEMBER", help="The member who gets the keys; without it, they end."
)
@calling
def remove(caller: Caller, *, who: str, heir: str | None) -> None:
    """Remove a MEMBER: sign-ins, tokens and keys end at once, on every server.

    A removed member does not come back by signing in; 'sexton member invite' lets one in again.
    """
    with caller.client() as client:
        path = f"{MEMBERS}/{_id_of(client, who)}"
        heir_id = None if heir is None else _id_of(client, heir)
        done = client.delete(path if heir_id is None else f"{path}?keys=hand_over&to={heir_id}")
    if caller.output.as_json:
        caller.output.document(done)
        return
    ended, given = field(done, "keys_ended", int), field(done, "keys_handed_over", int)
    keys = f"{ended} keys ended" if heir is None else f"{given} keys are {heir}'s now"
    caller.output.say(f"Removed {who}: {field(done, 'sign_ins_ended', int)} sign-ins ended, {keys}.")


def members_of(client: Client) -> Iterator[Row]:
    """All members of the tenant, oldest first."""
    for page in range(1, MAX_PAGES + 1):
        answer = client.get(f"{MEMBERS}?page={page}&page_size={PAGE_SIZE}")
        yield from rows(answer, MEMBER)
        if page * PAGE_SIZE >= field(answer, "total", int):
            return


def _change(caller: Caller, who: str, body: Mapping[str, Any], said: str) -> None:
    with caller.client() as client:
        changed = client.patch(f"{MEMBERS}/{_id_of(client, who)}", body)
    if caller.output.as_json:
        caller.output.document(changed)
        return
    caller.output.say(said)


def _id_of(client: Client, wanted: str) -> str:
    """The server itself says what it thinks of an id; a name or a subject is looked up."""
    if is_id(wanted):
        return wanted
    found = list(members_of(client))
    by_subject = next((row for row in found if row["subject"] == wanted), None)
    if by_subject is not None:
        return str(by_subject["id"])
    return str(pick(found, wanted, id_key="id", name_key="name", listing="sexton member list")["id"])
