"""A group of commands that finds some of them when they are called for, so that lists import none."""

from collections.abc import Mapping
from importlib import import_module

import click
from click.shell_completion import CompletionItem

from sexton_cli.commands.table import Entry


class LateGroup(click.Group):
    """Whoever asks for help, or presses a key to complete a word, waits for no server to be imported."""

    late: Mapping[str, Entry] = {}
    """Those that are imported when they are called, beside what the group has itself."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return sorted({*self.late, *self.commands}) if self.commands else list(self.late)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.late.get(cmd_name)
        if entry is None:
            return super().get_command(ctx, cmd_name)
        module, _, name = entry.place.partition(":")
        command: click.Command = getattr(import_module(f"sexton_cli.commands.{module}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """As click does it, from the table alone."""
        names = self.list_commands(ctx)
        room = formatter.width - 6 - max(map(len, names))
        with formatter.section("Commands"):
            formatter.write_dl([(name, _short(self._summary(name), room)) for name in names])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """As click does it, from the table alone: a shell asks at every press of the key."""
        found = [
            CompletionItem(name, help=self._summary(name))
            for name in self.list_commands(ctx)
            if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def _summary(self, name: str) -> str:
        entry = self.late.get(name)
        return self.commands[name].get_short_help_str(1_000) if entry is None else entry.summary


def _short(summary: str, room: int) -> str:
    return click.Command(None, help=summary).get_short_help_str(room)
