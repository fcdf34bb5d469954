"""The shared options that stood on a command line, kept in click's context until a command asks for them."""

from typing import Any, Final

import click

PREFIX: Final = "sexton_cli."


def note(ctx: click.Context, name: str, value: Any) -> None:
    """Keep a value. The group is read before its command, so what stands nearer to the command wins."""
    ctx.meta[f"{PREFIX}{name}"] = value


def noted(ctx: click.Context) -> dict[str, Any]:
    """What stood on the command line of the shared options, by their names."""
    return {name.removeprefix(PREFIX): value for name, value in ctx.meta.items() if name.startswith(PREFIX)}
