"""A command of the program: the agent that it is about is its first word, or stands behind ``--agent``."""

from collections.abc import Callable
from typing import Any, Final

import click

from sexton_cli.commands.words import AGENT_WORD

OPTION: Final = "--agent"
HELP: Final = "The agent's name or id, in place of the word AGENT."


class Command(click.Command):
    """Where its first word is an AGENT, it takes ``--agent NAME`` in place of it."""

    def __init__(self, name: str | None, **rest: Any) -> None:
        super().__init__(name, **rest)
        words = [param for param in self.params if isinstance(param, click.Argument)]
        self._agent_is_a_word = bool(words) and words[0].type is AGENT_WORD
        if self._agent_is_a_word:
            said = click.Option(
                [OPTION, "agent_option"], metavar="NAME", type=AGENT_WORD, expose_value=False, help=HELP
            )
            self.params.append(said)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does, with the agent's name where its word stands."""
        return super().parse_args(ctx, self._with_the_word(ctx, args) if self._agent_is_a_word else args)

    def _with_the_word(self, ctx: click.Context, args: list[str]) -> list[str]:
        rest = list(args)
        place = _place_of_option(self.get_params(ctx), rest)
        if place is None:
            return rest
        _, equals, name = rest[place].partition("=")
        if not equals and place + 1 == len(rest):
            return rest  # Its value is missing, which click says.
        value = name if equals else rest[place + 1]
        del rest[place : place + (1 if equals else 2)]
        # A word that begins like an option would be taken for one, and no agent is named so.
        return [value, *rest] if not value.startswith("-") else [*rest, f"{OPTION}={value}"]


def _place_of_option(params: list[click.Parameter], args: list[str]) -> int | None:
    """Where ``--agent`` stands, and not as the value of another option."""
    valued = {
        name
        for param in params
        if isinstance(param, click.Option) and not param.is_flag and not param.count
        for name in param.opts
    }
    place = 0
    while place < len(args) and args[place] != "--":
        if args[place] == OPTION or args[place].startswith(f"{OPTION}="):
            return place
        place += 2 if args[place] in valued else 1
    return None


def command(name: str | None = None, **rest: Any) -> Callable[[Callable[..., Any]], Command]:
    """Make a command of a function; in place of ``click.command``."""
    return click.command(name, cls=Command, **rest)
