"""``sexton doctor``: what works from here, what does not, and what to do about it."""

import os
from typing import Final

import click

from sexton_cli.caller import Caller
from sexton_cli.commands.command import command
from sexton_cli.commands.options import calling
from sexton_cli.doctor_checks import Check, State, check_all, verdict
from sexton_cli.exits import OK

MARKS: Final = {State.OK: "ok", State.WARN: "warn", State.FAIL: "FAIL", State.SKIP: "-"}
NAME_COLUMNS: Final = 12


@command()
@calling
def doctor(caller: Caller) -> None:
    """Check server, clock, token, workspace, and this machine's sandbox and database.

    The exit status is that of the first check that failed.
    """
    checks = []
    for check in check_all(caller, os.environ):
        checks.append(check)
        if not caller.output.as_json:
            _show(caller, check)
    status = verdict(checks)
    if caller.output.as_json:
        caller.output.document({"ok": status == OK, "checks": [check.document() for check in checks]})
    click.get_current_context().exit(status)


def _show(caller: Caller, check: Check) -> None:
    caller.output.say(f"{MARKS[check.state]:<5} {check.name:<{NAME_COLUMNS}} {check.detail}")
    if check.way_out:
        caller.output.say(f"{'':<5} {'':<{NAME_COLUMNS}} -> {check.way_out}")
