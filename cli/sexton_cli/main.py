"""The command ``sexton`` and its subcommands."""

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from io import TextIOWrapper
from typing import Final

import click

from sexton_cli.commands.options import shared
from sexton_cli.exits import FAILED, INTERRUPTED, OK

COMMANDS: Final[Mapping[str, str]] = {
    "up": "server:up",
    "serve": "server:serve",
    "runner": "server:runner",
    "demo": "server:demo",
    "sign-in-link": "sign_in_link:sign_in_link",
    "login": "login:login",
    "logout": "whoami:logout",
    "whoami": "whoami:whoami",
    "sign-ins": "sign_ins:sign_ins",
    "workspace": "workspace:workspace",
    "keys": "keys:keys",
    "agent": "agent:agent",
    "steer": "events:steer",
    "events": "events:events",
    "watch": "events:watch",
    "replay": "events:replay",
    "cancel": "events:cancel",
    "approvals": "approvals:approvals",
    "grants": "grants:grants",
    "credentials": "credentials:credentials",
    "proposals": "proposals:proposals",
    "balance": "money:balance",
    "credit": "money:credit",
    "top": "top:top",
    "vault": "vault:vault",
    "doctor": "doctor:doctor",
}
"""Each by its module in ``commands``, and its name there."""


class Commands(click.Group):
    """Finds commands when they are called for: who lists keys does not wait for a server to be imported."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        place = COMMANDS.get(cmd_name)
        if place is None:
            return None
        module, _, name = place.partition(":")
        command: click.Command = getattr(import_module(f"sexton_cli.commands.{module}"), name)
        return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="sexton", prog_name="sexton")
@shared
def cli() -> None:
    """Agents that sleep until an event wakes them."""


def main() -> None:
    """Entry point of the command."""
    if isinstance(sys.stdout, TextIOWrapper):
        # A locale without a letter shows a question mark for it.
        sys.stdout.reconfigure(errors="replace")
    try:
        status = cli.main(standalone_mode=False)
    except click.ClickException as fault:
        fault.show()
        sys.exit(fault.exit_code)
    except click.Abort:
        # click has ended the line already.
        sys.exit(INTERRUPTED)
    sys.exit(_flushed(status if isinstance(status, int) else OK))


def _flushed(status: int) -> int:
    """What was said is out, or the command has failed: the reader may be gone, or the disk full."""
    try:
        sys.stdout.flush()
    except OSError as fault:
        # The interpreter flushes once more as it ends; that is to meet no fault.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(fault, BrokenPipeError):
            sys.stderr.write(f"sexton: standard output: {fault.strerror}\n")
        return FAILED
    return status


if __name__ == "__main__":
    main()
