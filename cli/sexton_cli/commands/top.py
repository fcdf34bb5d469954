"""``sexton top``: the queue, leases, runners and actors of a server, as they change."""

import time
from typing import Final

import click
from rich.console import Console
from rich.live import Live

from sexton_cli.caller import Caller
from sexton_cli.client import Client
from sexton_cli.commands.command import command
from sexton_cli.commands.options import calling
from sexton_cli.exits import UNAVAILABLE, Fault
from sexton_cli.output import PIPE_COLUMNS
from sexton_cli.top import Look, look, screen

INTERVAL_S: Final = 2.0


@command()
@click.option("--once", is_flag=True, help="Print it once and end; with --json as one document.")
@click.option(
    "--interval",
    "interval_s",
    type=click.FloatRange(0.2, 3600),
    default=INTERVAL_S,
    show_default=True,
    help="Seconds between two looks.",
)
@calling
def top(caller: Caller, *, once: bool, interval_s: float) -> None:
    """Show the queue, leases with the time they have left, runners and actors, until Ctrl-C.

    It needs the token of a platform admin. Without a terminal, or with --json, it looks once.
    """
    with caller.client() as client:
        seen = look(client)
        console = Console(highlight=False)
        if caller.output.as_json:
            caller.output.document(seen.document())
        elif once or not console.is_terminal:
            wide = console if console.is_terminal else Console(highlight=False, width=PIPE_COLUMNS)
            wide.print(screen(seen, caller.base_url))
        else:
            _live(client, console, seen, caller.base_url, interval_s)


def _live(client: Client, console: Console, seen: Look, base_url: str, interval_s: float) -> None:
    trouble = ""
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(screen(seen, base_url, height=console.height, trouble=trouble), refresh=True)
            time.sleep(interval_s)
            try:
                seen, trouble = look(client), ""
            except Fault as fault:
                # A server that is away comes back, and what was seen last stays on the screen.
                if fault.status != UNAVAILABLE:
                    raise
                trouble = fault.line()
