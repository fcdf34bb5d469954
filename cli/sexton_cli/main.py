"""The command ``sexton`` and its subcommands."""

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper

import click

from sexton_cli.commands.late_group import LateGroup
from sexton_cli.commands.shared_options import shared
from sexton_cli.commands.table import COMMANDS, NOUNS, SHORT_FORMS
from sexton_cli.exits import FAILED, INTERRUPTED, OK

PROGRAM = "sexton"
"""However it was started: shells know their completions by this name."""


class Commands(LateGroup):
    """All of them are found when they are called for; a noun is understood in singular and plural."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        other = _other_number(cmd_name)
        meant = other if other in NOUNS and cmd_name not in self.late else cmd_name
        return super().get_command(ctx, meant)

    def sections(self, ctx: click.Context) -> Sequence[tuple[str, Sequence[str]]]:
        del ctx
        return [("Nouns", list(NOUNS)), ("Short forms", list(SHORT_FORMS))]

    def summary(self, name: str) -> str:
        return f"sexton {' '.join(SHORT_FORMS[name])}" if name in SHORT_FORMS else super().summary(name)


def _other_number(name: str) -> str:
    """The singular of a plural, the plural of a singular.

    >>> _other_number("agents"), _other_number("key"), _other_number("memories")
    ('agent', 'keys', 'memory')
    """
    if name.endswith("ies"):
        return f"{name.removesuffix('ies')}y"
    return name.removesuffix("s") if name.endswith("s") else f"{name}s"


@click.group(cls=Commands, late=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="sexton", prog_name="sexton")
@shared
def cli() -> None:
    """Agents that sleep until an event wakes them.

    A command is a noun and a verb: sexton agent list, sexton event send. A noun with --help lists its verbs.

    Begin with 'sexton up', which starts a server here, or with 'sexton login', where there is one.
    'sexton doctor' says what does not work, and what to do about it.
    """


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
