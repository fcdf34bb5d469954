"""Runs the demo from an empty folder to its summary."""

import tempfile
from pathlib import Path

import httpx2
import trio
from rich.console import Console

from sexton_cli.demo.client import TIMEOUT_S, Client
from sexton_cli.demo.play import Play
from sexton_cli.demo.stage import NotReady, open_stage
from sexton_cli.demo.telling import Teller


async def demo(folder: Path, teller: Teller) -> bool:
    """Whether every claim held."""
    teller.act("Starting: the database is made, the server opens its doors")
    async with open_stage(folder) as stage:
        async with httpx2.AsyncClient(base_url=stage.base_url, timeout=TIMEOUT_S) as http:
            client = Client(http, str(stage.ready["api_key"]))
            admin = Client(http, str(stage.ready["admin_token"]))
            await Play(stage, client, admin, teller).run()
    return teller.summary()


def main() -> int:
    """The exit status: 0 only if all was as claimed."""
    console = Console(highlight=False)
    teller = Teller(console)
    with tempfile.TemporaryDirectory(prefix="sexton-demo-", ignore_cleanup_errors=True) as folder:
        try:
            return 0 if trio.run(demo, Path(folder), teller) else 1
        except* NotReady as group:
            console.print(f"[red]The server did not come up:[/red] {group.exceptions[0]}")
        except* trio.TooSlowError:
            console.print("[red]What was to happen did not happen in time.[/red]")
            teller.summary()
        for log in sorted(Path(folder).glob("*.log")):
            console.print(f"[dim]--- {log.name}\n{log.read_text(errors='replace')[-4000:]}[/dim]", markup=True)
    return 1
