"""``sexton vault``: the master keys that seal everybody's secrets."""

import time
from typing import Final

import click

from sexton_cli.caller import Caller
from sexton_cli.client import Row
from sexton_cli.commands.late_group import noun
from sexton_cli.commands.options import calling
from sexton_cli.output import Column

LOOK_AGAIN_S: Final = 0.5
COLUMNS: Final = (
    Column("version", "KEY"),
    Column("secrets", "SECRETS"),
    Column("seals", "SEALS"),
)


@noun()
def vault() -> None:
    """Look after the master keys; for platform admins."""


@vault.command()
@calling
def status(caller: Caller) -> None:
    """Show the master keys and how many secrets are under each."""
    with caller.client() as client:
        _show(caller, client.get("/v1/admin/vault"))


@vault.command()
@click.option("--wait/--no-wait", default=True, help="Wait until all secrets are under the new key.")
@calling
def rotate(caller: Caller, *, wait: bool) -> None:
    """Make a newer master key and put all secrets under it; goes on with a rotation that was interrupted."""
    with caller.client() as client:
        state = client.post("/v1/admin/vault/rotations", {})
        while wait and state["stale"]:
            time.sleep(LOOK_AGAIN_S)
            state = client.get("/v1/admin/vault")
    _show(caller, state)


def _show(caller: Caller, state: Row) -> None:
    if caller.output.as_json:
        caller.output.document(state)
        return
    rows = [{**row, "seals": "*" if row["seals"] else ""} for row in state["keys"]]
    caller.output.table(COLUMNS, rows)
    if state["stale"]:
        caller.output.say(f"{state['stale']} secrets wait to be put under the newest key.")
