"""Starts what a trial needs: a whole server that keeps everything in memory, and a runner's process."""

import signal
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import trio

from sexton_cli.composition import open_node
from sexton_cli.demo.client import TIMEOUT_S, Client
from sexton_cli.exits import CONFIG, UNAVAILABLE, Fault
from sexton_cli.ground import Node
from sexton_cli.local_runners import REFUSES, runner_command, spawn, wait
from sexton_cli.settings import NodeSettings

STOP_S = 10.0


@dataclass(frozen=True, slots=True)
class TrialServer:
    """A server that answers, as its first admin and as a platform admin."""

    node: Node
    client: Client
    admin: Client

    @property
    def workspace(self) -> str:
        """The path of its only workspace."""
        return f"/v1/workspaces/{self.node.workspace_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerOrder:
    """How the runner is started; its log is written to ``log``."""

    state: Path
    log: Path
    options: tuple[str, ...]
    environment: Mapping[str, str]


@asynccontextmanager
async def open_trial_server(folder: Path) -> AsyncIterator[TrialServer]:
    """Serve on a free port of loopback; nothing of it is left at the end."""
    settings = NodeSettings(data=folder, port=0, in_memory=True, busy_at_ms=0)
    async with (
        open_node(settings, _say_nothing) as node,
        httpx2.AsyncClient(base_url=node.local_url, timeout=TIMEOUT_S, trust_env=False) as http,
    ):
        yield TrialServer(node, Client(http, node.api_key), Client(http, node.admin_token))


@asynccontextmanager
async def open_runner(server: TrialServer, order: RunnerOrder, tags: tuple[str, ...]) -> AsyncIterator[None]:
    """Run a runner for all that the server has to do. Its early end is a Fault, with its last words."""
    reserved = [tag for tag in tags if tag.startswith("reserved:")]
    minted = await server.admin.post("/v1/fleet/enrolment-tokens", {"labels": reserved})
    labels = [word for tag in tags for word in ("--label", tag)]
    command = runner_command(
        server.node.local_url, order.state, "trial", ("--slots", "1", *labels, *order.options)
    )
    process = spawn(command, {**order.environment, "SEXTON_ENROLMENT_TOKEN": _token(minted.body)}, order.log)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_watch, process, order.log)
            yield
            nursery.cancel_scope.cancel()
    finally:
        with trio.CancelScope(shield=True):
            await _stop(process)


def _token(minted: Mapping[str, Any]) -> str:
    return str(minted["token"])


async def _watch(process: subprocess.Popen[bytes], log: Path) -> None:
    status = await wait(process)
    lines = log.read_text(errors="replace").strip().splitlines()
    said = lines[-1] if lines else f"it ended with status {status}"
    kind = status if status in REFUSES else UNAVAILABLE
    way_out = "Fix the setting that it names." if kind == CONFIG else "'sexton runner doctor' says more."
    raise Fault(f"the runner does not run: {said}", way_out, status=kind)


async def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        # What it ran has ended, or nobody waits for it any more: it need not drain.
        process.send_signal(signal.SIGINT)
    with trio.move_on_after(STOP_S):
        await wait(process)
    if process.poll() is None:
        process.kill()
        process.wait()


def _say_nothing(_: str) -> None:
    """A trial tells of the agent alone."""
