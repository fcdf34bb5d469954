"""A noun that lists when it stands alone: what follows it, and is none of its verbs, is said to its list."""

import click

from sexton_cli.commands.late_group import LateGroup


class ListingGroup(LateGroup):
    """It has a command ``list``: ``sexton events AGENT`` is ``sexton events list AGENT``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does, with the word that may be left out."""
        asks_for_help = args[:1] in (["--help"], ["-h"])
        names_another = bool(args) and args[0] in self.list_commands(ctx)
        # A list that takes no word cannot mean this one, so it is a verb that is misspelled.
        is_misspelled = bool(args) and not args[0].startswith("-") and not self._takes_a_word(ctx)
        if not (asks_for_help or names_another or is_misspelled or ctx.resilient_parsing):
            args = ["list", *args]
        return super().parse_args(ctx, args)

    def _takes_a_word(self, ctx: click.Context) -> bool:
        listing = self.get_command(ctx, "list")
        return listing is not None and any(isinstance(param, click.Argument) for param in listing.params)
