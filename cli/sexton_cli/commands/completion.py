"""``sexton completion``: the script that has a shell complete what is typed."""

from typing import Final

import click
from click.shell_completion import get_completion_class

from sexton_cli.commands.command import command

VARIABLE: Final = "_SEXTON_COMPLETE"


@command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, *, shell: str) -> None:
    """Print the script that has a shell complete commands, options and names.

    For this shell alone: eval "$(sexton completion bash)". Names of agents, workspaces, events, approvals and
    jobs come from the server that you are signed in to, if it answers within a second.
    """
    made = get_completion_class(shell)
    if made is None:
        raise click.UsageError(f"no completion for {shell}", ctx)
    # Not its own ``source``: that runs the shell for its version.
    told = made(ctx.find_root().command, {}, "sexton", VARIABLE)
    click.echo(told.source_template % told.source_vars(), nl=False)
