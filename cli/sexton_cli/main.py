"""The command ``sexton`` and its subcommands."""

import os
import sys
from importlib import import_module
from io import TextIOWrapper

import click
from click.shell_completion import CompletionItem

from sexton_cli.commands.options import shared
from sexton_cli.commands.table import COMMANDS
from sexton_cli.exits import FAILED, INTERRUPTED, OK

PROGRAM = "sexton"
"""However it was started: shells know their completions by this name."""


class Commands(click.Group):
    """Finds commands when they are called for: whoever asks for help waits for no server to be imported."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module, _, name = entry.place.partition(":")
        command: click.Command = getattr(import_module(f"sexton_cli.commands.{module}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """As click does it, from the table alone."""
        del ctx
        room = formatter.width - 6 - max(map(len, COMMANDS))
        with formatter.section("Commands"):
            formatter.write_dl([(name, _short(entry.summary, room)) for name, entry in COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """As click does it, from the table alone: a shell asks at every press of the key."""
        found = [
            CompletionItem(name, help=entry.summary)
            for name, entry in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]


def _short(summary: str, room: int) -> str:
    return click.Command(None, help=summary).get_short_help_str(room)


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
        status = cli.main(prog_name=PROGRAM, standalone_mode=False)
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
