r"""Writes manual pages in the macros of man(7): one for the program, one for each noun.

>>> escaped(".so /etc/passwd"), escaped("a -b \\n 'c'")
('\\&.so /etc/passwd', 'a \\-b \\en \\(aqc\\(aq')
"""

from collections.abc import Iterator
from typing import Final

import click

from sexton_cli.commands.table import NOUNS, SHORT_FORMS
from sexton_cli.exits import MEANINGS

SECTION: Final = "1"


def man_pages(root: click.Command) -> dict[str, str]:
    """The pages of the program by their files' names."""
    context = click.Context(root, info_name="sexton")
    pages = {"sexton.1": _program(context)}
    for noun in NOUNS:
        command = root.get_command(context, noun) if isinstance(root, click.Group) else None
        if command is not None:
            pages[f"sexton-{noun}.1"] = _noun(click.Context(command, info_name=noun, parent=context))
    return pages


def _program(context: click.Context) -> str:
    lines = [*_head(context), ".SH NOUNS"]
    for noun, entry in NOUNS.items():
        lines += [".TP", rf"\fBsexton\-{escaped(noun)}\fR({SECTION})", escaped(entry.summary)]
    lines.append(".SH SHORT FORMS")
    for word, path in SHORT_FORMS.items():
        lines += [".TP", rf"\fBsexton {escaped(word)}\fR", escaped(f"sexton {' '.join(path)}")]
    lines += [".SH OPTIONS OF ALL COMMANDS THAT CALL A SERVER", *_options(context, frozenset())]
    lines.append(".SH EXIT STATUS")
    for status, meaning in MEANINGS.items():
        lines += [".TP", str(status), escaped(meaning)]
    return "\n".join(lines) + "\n"


def _noun(context: click.Context) -> str:
    lines = list(_head(context))
    for verb in _commands(context):
        lines += [f".SH {escaped(verb.command_path.removeprefix('sexton ').upper())}"]
        usage = " ".join(verb.command.collect_usage_pieces(verb))
        lines += [rf"\fB{escaped(verb.command_path)}\fR {escaped(usage)}", ".PP"]
        lines += [*_prose(verb.command), *_options(verb, _shared(verb))]
    lines += [".SH SEE ALSO", rf"\fBsexton\fR({SECTION})"]
    return "\n".join(lines) + "\n"


def _head(context: click.Context) -> Iterator[str]:
    name = context.command_path.replace(" ", "-")
    summary = context.command.get_short_help_str(1_000)
    yield f'.TH "{escaped(name.upper())}" {SECTION}'
    yield ".SH NAME"
    yield rf"{escaped(name)} \- {escaped(summary)}"
    yield ".SH SYNOPSIS"
    usage = " ".join(context.command.collect_usage_pieces(context))
    yield rf"\fB{escaped(context.command_path)}\fR {escaped(usage)}"
    yield ".SH DESCRIPTION"
    yield from _prose(context.command)


def _commands(context: click.Context) -> Iterator[click.Context]:
    command = context.command
    if not isinstance(command, click.Group):
        yield context
        return
    for name in command.list_commands(context):
        verb = command.get_command(context, name)
        if verb is not None:
            yield from _commands(click.Context(verb, info_name=name, parent=context))


def _prose(command: click.Command) -> Iterator[str]:
    for number, paragraph in enumerate((command.help or "").strip().split("\n\n")):
        if number:
            yield ".PP"
        yield escaped(" ".join(paragraph.split()))


def _shared(context: click.Context) -> frozenset[str]:
    return frozenset(param.name or "" for param in context.find_root().command.params)


def _options(context: click.Context, told: frozenset[str]) -> Iterator[str]:
    for param in context.command.params:
        record = param.get_help_record(context)
        if record is not None and param.name not in told and isinstance(param, click.Option):
            yield ".TP"
            yield rf"\fB{escaped(record[0])}\fR"
            yield escaped(" ".join(record[1].split()))


def escaped(text: str) -> str:
    """A line of text that is no request to the formatter, however it begins."""
    plain = text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq")
    return rf"\&{plain}" if plain.startswith(".") else plain
