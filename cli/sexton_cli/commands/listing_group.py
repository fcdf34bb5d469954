"""A group of commands whose name alone lists: what follows it, and is none of them, is said to its list."""

import click


class ListingGroup(click.Group):
    """It has a command ``list``: ``sexton events AGENT`` is ``sexton events list AGENT``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does, with the word that may be left out."""
        asks_for_help = args[:1] in (["--help"], ["-h"])
        names_another = bool(args) and args[0] in self.commands
        if not (asks_for_help or names_another or ctx.resilient_parsing):
            args = ["list", *args]
        return super().parse_args(ctx, args)
