"""The options that all commands share, on either side of the command's name."""

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import click

from sexton_cli.caller import BASE_URL_VARIABLE, TOKEN_VARIABLE, WORKSPACE_VARIABLE, Caller, Given, ask_line
from sexton_cli.exits import FAILED, USAGE, Fault, explain

PREFIX: Final = "sexton_cli."


def _note(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    # The group is read before its command, so what stands nearer to the command wins.
    if value not in {None, False}:
        ctx.meta[f"{PREFIX}{param.name}"] = value


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
        "--json",
        "as_json",
        is_flag=True,
        expose_value=False,
        callback=_note,
        help="One JSON document on standard output, and nothing else.",
    ),
)


def shared(command: click.decorators.FC) -> click.decorators.FC:
    """Add the shared options."""
    for option in reversed(_SHARED):
        command = option(command)
    return command


def calling(command: Callable[..., None]) -> Callable[..., None]:
    """Add the shared options, hand the command its Caller first, and tell what goes wrong."""

    @wraps(command)
    def run(**words: Any) -> None:
        ctx = click.get_current_context()
        noted = {
            name.removeprefix(PREFIX): value for name, value in ctx.meta.items() if name.startswith(PREFIX)
        }
        given = Given(**noted)
        try:
            command(Caller(given, os.environ, sys.stdin), **words)
        except Fault as fault:
            ctx.exit(explain(fault, as_json=given.as_json))

    return shared(run)


def yes(command: click.decorators.FC) -> click.decorators.FC:
    """Add the option that answers for the person."""
    return click.option("--yes", "-y", is_flag=True, help="Do not ask.")(command)


def sure(caller: Caller, question: str, *, yes: bool) -> None:
    """Ask whether it is meant, for it cannot be undone. Raises Fault when it is not, or nobody is there."""
    if yes:
        return
    if not caller.interactive:
        raise Fault("there is nobody to ask", "Say --yes if you mean it.", status=USAGE)
    if (ask_line(sys.stdin, f"{question} (yes/no) ") or "").lower() not in {"y", "yes"}:
        raise Fault("nothing was done", status=FAILED)
