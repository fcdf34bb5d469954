"""What commands that call a server have in common, and what those that ask a person have."""

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from sexton_cli.caller import Caller, Given, ask_line
from sexton_cli.commands.shared_options import shared
from sexton_cli.exits import FAILED, USAGE, Fault
from sexton_cli.fault_report import explain
from sexton_cli.noted_options import noted


def calling(command: Callable[..., None]) -> Callable[..., None]:
    """Add the shared options, hand the command its Caller first, and tell what goes wrong."""

    @wraps(command)
    def run(**words: Any) -> None:
        ctx = click.get_current_context()
        given = Given(**noted(ctx))
        try:
            command(Caller(given, os.environ, sys.stdin), **words)
        except Fault as fault:
            ctx.exit(explain(fault, as_json=given.as_json))

    return shared(run)


def yes(command: click.decorators.FC) -> click.decorators.FC:
    """Add the option that answers for the person."""
    return click.option("--yes", "-y", is_flag=True, help="Do not ask.")(command)


def sure(caller: Caller, question: str, *, yes: bool) -> None:
    """Ask whether it is meant, for it cannot be undone. Raises Fault when it is not, or nobody is there."""
    if yes:
        return
    if not caller.interactive:
        raise Fault("there is nobody to ask", "Say --yes if you mean it.", status=USAGE)
    if (ask_line(sys.stdin, f"{question} (yes/no) ") or "").lower() not in {"y", "yes"}:
        raise Fault("nothing was done", status=FAILED)
