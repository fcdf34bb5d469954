"""``sexton practice``: what an agent can be tried on where there is neither an account nor a model."""

from pathlib import Path

import click

from sexton_cli.caller import Caller
from sexton_cli.commands.command import command
from sexton_cli.commands.options import calling
from sexton_cli.demo.practice import practise
from sexton_cli.model_script import read_script

DEFAULT_PORT = 8399
FILE = click.Path(dir_okay=False, path_type=Path)


@command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="Port to listen on, at 127.0.0.2 only; 0 takes any that is free.",
)
@click.option(
    "--token-file",
    type=FILE,
    default=Path("practice-token"),
    show_default=True,
    help="The token that the git host asks for; it is made when there is no such file.",
)
@click.option(
    "--model-script",
    "script",
    type=FILE,
    help="Answer as a model, too: each run is told the turns of this file, from the first on.",
)
@calling
def practice(caller: Caller, *, port: int, token_file: Path, script: Path | None) -> None:
    """Be a git host, and a model that follows a script, for agents to practise with on this machine.

    The host has one repository, acme/shop, with a fault in it, and takes pull requests by GitHub's call.
    Nothing is kept after Ctrl-C but the token.
    """
    turns = () if script is None else read_script(script)
    practise(port, token_file, script, turns, caller.output.say)
