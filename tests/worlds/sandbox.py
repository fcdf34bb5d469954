"""Runs programs in the real sandbox, with no control plane to talk to."""

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import trio

from sexton_runner.client import ControlPlane, Outage
from sexton_runner.frames import Frame
from sexton_runner.lease import LiveLease
from sexton_runner.redact import Redactor
from sexton_runner.run import Ending, Outcome, Run
from sexton_runner.runtimes.registry import carry_out
from sexton_runner.sandbox.jobs import Sandbox
from sexton_runner.sandbox.limits import Limits
from sexton_runner.sandbox.probe import make_sandbox
from sexton_runner.settings import SandboxTier
from sexton_runner.timing import Timing
from sexton_runner.wire import Lease
from tests.fakes.control_plane import make_lease
from tests.worlds.trust import TRUST

LIMITS = Limits(wall_s=20.0, memory_bytes=256 << 20, pids=32)


@dataclass
class Cage:
    """Runs programs as the command runtime does, with no control plane to talk to."""

    folder: Path
    limits: Limits = LIMITS
    tier: SandboxTier = SandboxTier.BUBBLEWRAP
    sandbox: Sandbox | None = None
    """In place of the one that this host gives for the tier."""
    shown: list[Frame] = field(default_factory=list)
    count: int = 0

    async def run(self, language: str, source: str) -> Ending:
        """Run a program to its end."""
        self.count += 1
        lease = msgspec.convert(make_lease(f"```{language}\n{source}\n```\n"), Lease)
        folder = self.folder / str(self.count)
        folder.mkdir()
        async with httpx2.AsyncClient(trust_env=False, verify=TRUST) as http:
            return await carry_out(
                Run(
                    live=LiveLease(lease, trio.current_time, 30.0),
                    plane=ControlPlane(http, Outage(trio.current_time)),
                    sandbox=self.sandbox or make_sandbox(self.tier, self.limits, self.folder),
                    timing=Timing(),
                    rng=random.Random(1),
                    clock=trio.current_time,
                    redactor=Redactor({}),
                    show=self.shown.append,
                    shown=trio.lowlevel.checkpoint,
                    folder=folder,
                )
            )

    async def python(self, *lines: str) -> Any:
        """Run lines of Python and give the evidence they print."""
        ending = await self.run("python", "import json, os, socket, sys\n" + "\n".join(lines))
        assert ending.outcome is Outcome.PROCESSED, ending.response_text
        return ending.evidence
