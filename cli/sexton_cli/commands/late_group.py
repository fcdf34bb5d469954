"""A noun, with its verbs: some of them are found when they are called for, so that lists import none."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from sexton_cli.commands.command import Command
from sexton_cli.commands.table import Entry


class LateGroup(click.Group):
    """Whoever asks for help, or presses a key to complete a word, waits for no server to be imported."""

    command_class = Command
    group_class = type

    def __init__(
        self, name: str | None = None, *, late: Mapping[str, Entry] | None = None, **rest: Any
    ) -> None:
        """``late``: those that are imported when they are called, beside what the group has itself."""
        super().__init__(name, **rest)
        self.late: Mapping[str, Entry] = late or {}

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

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does; where there is no such command, it names those that are spelled alike."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as fault:
            raise click.NoSuchCommand(
                fault.command_name, possibilities=self.list_commands(ctx), ctx=ctx
            ) from fault

    def sections(self, ctx: click.Context) -> Sequence[tuple[str, Sequence[str]]]:
        """Give the headings of its help, and what stands under each."""
        return [("Commands", self.list_commands(ctx))]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """As click does it, from the table alone, and with whole sentences."""
        for title, names in self.sections(ctx):
            with formatter.section(title):
                formatter.write_dl([(name, self.summary(name)) for name in names])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """As click does it, from the table alone: a shell asks at every press of the key."""
        found = [
            CompletionItem(name, help=self.summary(name))
            for name in self.list_commands(ctx)
            if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def summary(self, name: str) -> str:
        """Give the first sentence of a command's help."""
        entry = self.late.get(name)
        return self.commands[name].get_short_help_str(1_000) if entry is None else entry.summary


def noun(
    name: str | None = None, *, cls: type[LateGroup] = LateGroup, **rest: Any
) -> Callable[[Callable[..., Any]], LateGroup]:
    """Make a noun of a function; in place of ``click.group``."""
    return click.group(name, cls=cls, **rest)
