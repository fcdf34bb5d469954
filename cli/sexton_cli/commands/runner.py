"""``sexton runner``: starts a runner here; lists, enrols, cordons, drains and revokes those of the fleet."""

import shlex
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final
from urllib.parse import urlsplit

import click
import orjson

from sexton_cli.addresses import is_loopback, read_base_url
from sexton_cli.caller import Caller
from sexton_cli.client import Client, Row, field, rows
from sexton_cli.commands.late_group import LateGroup, noun
from sexton_cli.commands.options import calling
from sexton_cli.commands.table import Entry
from sexton_cli.exits import FAILED, USAGE, Fault
from sexton_cli.id_parts import is_id, is_part, meant
from sexton_cli.lookups import first_of, segment
from sexton_cli.output import Column, moment
from sexton_cli.short_ids import RUNNER as RUNNER_ID, whole_id

RUNNERS: Final = "/v1/fleet/runners"
RUNNER: Final[Mapping[str, type]] = {"id": str, "host_id": str, "liveness": str, "admin_state": str}
PAGE: Final = 100
STATE_DIR: Final = "~/.local/state/sexton-runner"
COLUMNS: Final = (
    Column("id", "RUNNER"),
    Column("host_id", "HOST", elastic=True),
    Column("liveness", "LIVENESS"),
    Column("admin_state", "STANDING"),
    Column("held", "SLOTS"),
    Column("release", "RELEASE", spare=True),
    Column("labelled", "LABELS", elastic=True, spare=True),
    Column("seen", "LAST SEEN", spare=True),
)


HISTORY: Final = (
    Column("when", "WHEN"),
    Column("kind", "WHAT"),
    Column("about", "ABOUT", elastic=True),
)
LATE: Final[Mapping[str, Entry]] = {
    "start": Entry(
        "server:runner", "Start a runner on this machine; 'sexton runner --help' tells its options."
    )
}


class _RunnerGroup(LateGroup):
    """What is none of its commands is for the runner that is started here."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does, with the word that may be left out."""
        known = bool(args) and args[0] in {*self.late, *self.commands}
        return super().parse_args(ctx, args if known or ctx.resilient_parsing else ["start", *args])


@noun("runner", cls=_RunnerGroup, late=LATE, add_help_option=False)
def runner() -> None:
    """Start a runner on this machine; list, enrol, cordon, drain and revoke those of the fleet."""


@runner.command("list")
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, help="Runners at most."
)
@calling
def list_(caller: Caller, *, limit: int) -> None:
    """List the runners of the fleet, newest first; for platform admins."""
    with caller.client() as client:
        found = [*islice(_all(client), limit)]
    if caller.output.as_json:
        caller.output.document({"items": found})
        return
    caller.output.table(
        COLUMNS,
        [
            {
                **row,
                "held": f"{row.get('active_leases')}/{row.get('slots')}",
                "labelled": ", ".join(row.get("labels") or ()),
                "seen": moment(row.get("last_seen_at")),
            }
            for row in found
        ],
    )


@runner.command()
@click.option(
    "--label", "labels", multiple=True, help="A label reserved:… that it may carry; may be repeated."
)
@click.option("--tenant", "tenant_id", metavar="ID", help="It is given this tenant's events only, for ever.")
@click.option(
    "--only", "workspace_id", metavar="ID", help="It is given this workspace's events only, for ever."
)
@click.option(
    "--server",
    metavar="URL",
    help="The address by which the new runner reaches the server. [default: that of this command]",
)
@calling
def enrol(
    caller: Caller,
    *,
    labels: tuple[str, ...],
    tenant_id: str | None,
    workspace_id: str | None,
    server: str | None,
) -> None:
    """Print the command that starts a new runner of this server, once, within the hour."""
    scope = {"tenant_id": tenant_id, "workspace_id": workspace_id}
    body: dict[str, Any] = {name: value for name, value in scope.items() if value is not None}
    if labels:
        body["labels"] = list(labels)
    address = caller.base_url if server is None else _address(server)
    with caller.client() as client:
        made = client.post("/v1/fleet/enrolment-tokens", body)
    token = field(made, "token", str)
    words = [*(word for label in labels for word in ("--label", label))]
    command = (
        f"SEXTON_ENROLMENT_TOKEN={shlex.quote(token)} sexton runner "
        f"{shlex.join(['--base-url', address, *words])} --state-dir {STATE_DIR}"
    )
    if caller.output.as_json:
        caller.output.document({**made, "command": command})
        return
    caller.output.say(command)
    caller.output.note(f"The token in it works once, until {moment(made.get('expires_at'))}.")
    if is_loopback(urlsplit(address).hostname or ""):
        caller.output.note("That address is this machine's own; for another machine, say --server URL.")


def _address(text: str) -> str:
    try:
        return read_base_url(text)
    except ValueError as fault:
        raise Fault(f"--server: {fault}", status=USAGE) from fault


@runner.command()
@click.argument("runner_name", metavar="RUNNER")
@calling
def cordon(caller: Caller, *, runner_name: str) -> None:
    """Give the RUNNER of this id or host no more work; what it works on goes on."""
    _change(caller, runner_name, "cordoned")


@runner.command()
@click.argument("runner_name", metavar="RUNNER")
@calling
def drain(caller: Caller, *, runner_name: str) -> None:
    """Have the RUNNER of this id or host finish what it works on, and then stop."""
    _change(caller, runner_name, "draining")


@runner.command()
@click.argument("runner_name", metavar="RUNNER")
@calling
def activate(caller: Caller, *, runner_name: str) -> None:
    """Give the RUNNER of this id or host work again."""
    _change(caller, runner_name, "active")


@runner.command()
@click.argument("runner_name", metavar="RUNNER")
@calling
def revoke(caller: Caller, *, runner_name: str) -> None:
    """Take the token of the RUNNER of this id or host for good; its events go to others at once."""
    _change(caller, runner_name, "revoked")


@runner.command()
@click.argument("runner_name", metavar="RUNNER")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Lines at most.")
@calling
def history(caller: Caller, *, runner_name: str, limit: int) -> None:
    """List what the RUNNER of this id or host went through, newest first; for platform admins."""
    with caller.client() as client:
        path = f"{RUNNERS}/{segment(_id_of(client, runner_name))}/events"
        found = first_of(client, path, {}, {"id": str, "kind": str}, limit)
    lines = [
        {**row, "when": moment(row.get("at")), "about": orjson.dumps(row.get("data")).decode()}
        for row in found.items
    ]
    caller.output.listing({"items": found.items, "next_cursor": found.next_cursor}, HISTORY, lines)


def _change(caller: Caller, wanted: str, state: str) -> None:
    with caller.client() as client:
        runner_id = _id_of(client, wanted)
        changed = client.patch(f"{RUNNERS}/{segment(runner_id)}", {"admin_state": state})
    if caller.output.as_json:
        caller.output.document(changed)
        return
    caller.output.note(
        f"{field(changed, 'host_id', str)} ({runner_id}) is {field(changed, 'admin_state', str)}."
    )


def _id_of(client: Client, wanted: str) -> str:
    """The id of the one runner of this host. Raises Fault."""
    if is_id(wanted):
        return wanted
    known = list(_all(client))
    found = [row["id"] for row in known if row["host_id"] == wanted and row["admin_state"] != "revoked"]
    if len(found) == 1:
        return str(found[0])
    if not found and is_part(wanted):
        return whole_id(wanted, RUNNER_ID, known)
    what = (
        f"there is no runner on a host {wanted!r}" if not found else f"there are {len(found)} runners there"
    )
    asked = meant(wanted, (str(row["host_id"]) for row in known)) if not found else ""
    way_out = f"{asked}'sexton runner list' shows all of them; name one by its id."
    raise Fault(what, way_out, status=FAILED)


def _all(client: Client) -> Iterator[Row]:
    number = 1
    while True:
        found = rows(client.get(f"{RUNNERS}?page={number}&page_size={PAGE}"), RUNNER)
        yield from found
        if len(found) < PAGE:
            return
        number += 1
