"""Rows of a table of options, from what click and argparse know of them."""

import argparse
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import click

from sexton_cli.settings_page.facts import Fact

_DEFAULT: Final = re.compile(r"\s*[\[(]default: ([^\])]*)[\])]")
HELP: Final = "help"


class Row(NamedTuple):
    name: str
    option: str
    variable: str
    default: str
    bounds: str
    unit: str
    does: str
    seen: tuple[str, ...]

    def line(self) -> str:
        """The row in Markdown."""
        cells = (
            self.option,
            self.variable,
            self.default,
            " ".join(filter(None, (self.bounds, self.unit))),
            self.does,
            ", ".join(f"`{name}`" for name in self.seen),
        )
        return f"| {' | '.join(cells)} |"


HEAD: Final = (
    "| Option | Environment | Default | Bounds and unit | What it does | Seen in |",
    "| --- | --- | --- | --- | --- | --- |",
)


def rows_of_click(command: click.Command, facts: Mapping[str, Fact]) -> Iterator[Row]:
    """The options of a command that are its own, and not those of all commands that call a server."""
    for option in command.params:
        if not isinstance(option, click.Option) or not option.expose_value:
            continue
        name = option.name or ""
        fact = facts.get(name, Fact())
        does, said = _without_default(option.help or "")
        variables = [option.envvar] if isinstance(option.envvar, str) else list(option.envvar or ())
        yield Row(
            name,
            "/".join(f"`{word}`" for word in (*option.opts, *option.secondary_opts)),
            ", ".join(f"`{variable}`" for variable in variables),
            fact.default or said or _spelled(_default(option)),
            fact.bounds or _bounds(option.type),
            fact.unit,
            does,
            fact.seen,
        )


def rows_of_parser(
    parser: argparse.ArgumentParser, facts: Mapping[str, Fact], variables: Mapping[str, str]
) -> Iterator[Row]:
    """The options of a program that reads its words with argparse; ``variables`` by the option's name."""
    for action in parser._actions:  # noqa: SLF001 - argparse shows them nowhere else
        if action.dest == HELP or not action.option_strings:
            continue
        fact = facts.get(action.dest, Fact())
        does, said = _without_default(action.help or "")
        variable = variables.get(action.dest, "")
        yield Row(
            action.dest,
            "/".join(f"`{word}`" for word in action.option_strings),
            f"`{variable}`" if variable else "",
            "required" if action.required else fact.default or said or _spelled(action.default),
            fact.bounds or _choices(action.choices),
            fact.unit,
            _sentence(does),
            fact.seen,
        )


def _default(option: click.Option) -> Any:
    # click has a sentinel of its own for "none was given", which is no value of any of ours.
    given = option.to_info_dict()["default"]
    return given if isinstance(given, str | int | float | bool | tuple | list) else None


def _without_default(text: str) -> tuple[str, str]:
    """A help text without its default, and the default.

    >>> _without_default("Plans, as TOML. [default: billing.toml in the data folder]")
    ('Plans, as TOML.', 'billing.toml in the data folder')
    """
    found = _DEFAULT.search(text)
    return " ".join(_DEFAULT.sub("", text).split()).replace("|", "\\|"), found[1] if found else ""


def _spelled(value: Any) -> str:
    match value:
        case None | () | [] | "":
            return ""
        case bool():
            return "yes" if value else "no"
        case float() | int():
            return f"{value:,.0f}" if value == int(value) else f"{value:g}"
        case _:
            return f"`{value}`"


def _bounds(kind: Any) -> str:
    if isinstance(kind, click.IntRange | click.FloatRange):
        if kind.max is None:
            return f"{kind.min:,} or more"
        return f"{kind.min:,} to {kind.max:,}"
    return _choices(kind.choices) if isinstance(kind, click.Choice) else ""


def _choices(choices: Iterable[Any] | None) -> str:
    return ", ".join(f"`{one}`" for one in choices or ())


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""
