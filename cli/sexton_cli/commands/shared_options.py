"""The options that all commands share, on either side of the command's name; it imports no client."""

from typing import Any, Final

import click

from sexton_cli.commands.words import WORKSPACE_WORD
from sexton_cli.noted_options import note
from sexton_cli.variables import BASE_URL_VARIABLE, TOKEN_VARIABLE, WORKSPACE_VARIABLE

FORMATS: Final = ("table", "json", "yaml", "name")
"""What ``--output`` takes; the first is the default."""


def _note(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if value not in {None, False} and param.name is not None:
        note(ctx, param.name, value)


def _note_json(ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's way
    del param
    if value:
        note(ctx, "output", "json")


_SHARED = (
    click.option(
        "--base-url",
        metavar="URL",
        expose_value=False,
        callback=_note,
        help=f"Address of the server. [env: {BASE_URL_VARIABLE}; default: the one last signed in to]",
    ),
    click.option(
        "--workspace",
        metavar="NAME",
        type=WORKSPACE_WORD,
        expose_value=False,
        callback=_note,
        help=f"Name or id of the workspace. [env: {WORKSPACE_VARIABLE}; default: the one in use]",
    ),
    click.option(
        "--token",
        metavar="TOKEN",
        expose_value=False,
        callback=_note,
        help=f"Token to call with; others on this machine can see it there. [env: {TOKEN_VARIABLE}]",
    ),
    click.option(
        "--token-stdin",
        is_flag=True,
        expose_value=False,
        callback=_note,
        help="Read the token from standard input.",
    ),
    click.option(
        "--output",
        "-o",
        type=click.Choice(FORMATS),
        expose_value=False,
        callback=_note,
        help="How to write the answer; 'name': only the name or id of each thing. [default: table]",
    ),
    click.option(
        "--json",
        "as_json",
        is_flag=True,
        expose_value=False,
        callback=_note_json,
        help="One JSON document on standard output, and nothing else: --output json.",
    ),
)


def shared(command: click.decorators.FC) -> click.decorators.FC:
    """Add the shared options."""
    for option in reversed(_SHARED):
        command = option(command)
    return command
