"""Runs the demo from an empty folder to its summary."""

import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import trio
from rich.console import Console

from sexton_cli.demo.client import TIMEOUT_S, Client
from sexton_cli.demo.environment import NotReady, open_demo_server
from sexton_cli.demo.issue_triage import script_for
from sexton_cli.demo.model import find_model
from sexton_cli.demo.narration import Narrator
from sexton_cli.demo.outside import open_outside
from sexton_cli.demo.scenario import Scenario
from sexton_cli.exits import StartupFault
from sexton_cli.fault_report import explain
from sexton_cli.model_script import open_scripted_model
from sexton_cli.sandbox_check import establish
from sexton_runner.settings import SandboxTier

LOG_CHARS = 4000


async def demo(folder: Path, narrator: Narrator) -> bool:
    """Whether every claim held."""
    async with open_scenario(folder, narrator) as scenario:
        await scenario.run()
    return narrator.summary()


@asynccontextmanager
async def open_scenario(folder: Path, narrator: Narrator) -> AsyncIterator[Scenario]:
    """Start a server in an empty folder, and what its agents talk to; none of the acts is played yet."""
    narrator.act("Starting: the database is made, the server opens its doors")
    model = find_model(os.environ)
    async with (
        open_demo_server(folder) as server,
        open_outside(folder / "outside") as outside,
        open_scripted_model(None if model else script_for(outside.api)) as addresses,
        httpx2.AsyncClient(base_url=server.base_url, timeout=TIMEOUT_S) as http,
    ):
        server.environment |= addresses
        server.environment |= outside.environment
        client = Client(http, str(server.ready["api_key"]))
        admin = Client(http, str(server.ready["admin_token"]))
        yield Scenario(server, client, admin, narrator, model=model, outside=outside)


def main() -> int:
    """The exit status: 0 only if all was as claimed."""
    console = Console(highlight=False)
    narrator = Narrator(console)
    try:
        trio.run(establish, SandboxTier.BUBBLEWRAP)
    except StartupFault as fault:
        # Its runners would not start, and the demo would wait for them.
        return explain(fault)
    with tempfile.TemporaryDirectory(prefix="sexton-demo-", ignore_cleanup_errors=True) as folder:
        held = False
        try:
            held = trio.run(demo, Path(folder), narrator)
        except* NotReady as group:
            how = group.exceptions[0]
            console.print(f"[red]The server did not come up:[/red] {how}. Its log follows.", soft_wrap=True)
        except* trio.TooSlowError:
            console.print("[red]The demo did not finish in time; its logs follow.[/red]")
            narrator.summary()
        if not held:
            _show_logs(Path(folder), console)
    return 0 if held else 1


def _show_logs(folder: Path, console: Console) -> None:
    for log in sorted(folder.glob("*.log")):
        console.print(f"--- {log.name}", style="dim")
        console.print(log.read_text(errors="replace")[-LOG_CHARS:], markup=False, style="dim", soft_wrap=True)
