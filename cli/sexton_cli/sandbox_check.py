"""Checks that this machine can sandbox commands, before anything that needs it is started."""

import tempfile
from pathlib import Path

from sexton_cli.exits import UNAVAILABLE, StartupFault
from sexton_runner.errors import SandboxUnavailable
from sexton_runner.sandbox.bubblewrap_advice import namespace_advice
from sexton_runner.sandbox.jobs import Sandbox
from sexton_runner.sandbox.limits import Limits
from sexton_runner.sandbox.probe import check, make_sandbox
from sexton_runner.settings import (
    DEFAULT_RUN_MEMORY_BYTES,
    DEFAULT_RUN_PIDS,
    DEFAULT_RUN_WALL_S,
    SandboxTier,
)

LIMITS = Limits(wall_s=DEFAULT_RUN_WALL_S, memory_bytes=DEFAULT_RUN_MEMORY_BYTES, pids=DEFAULT_RUN_PIDS)

MORE = "'sexton runner doctor' says more."


async def establish(tier: SandboxTier) -> Sandbox:
    """Run the self-test that a runner begins with. Raises StartupFault with what to do."""
    with tempfile.TemporaryDirectory(prefix="sexton-sandbox-") as folder:
        try:
            sandbox = make_sandbox(tier, LIMITS, Path(folder))
        except (SandboxUnavailable, OSError) as fault:
            # It says itself what is to be installed, or who is to run it.
            raise _fault(fault, MORE) from fault
        try:
            await check(sandbox)
        except (SandboxUnavailable, OSError) as fault:
            advice = namespace_advice()
            raise _fault(
                fault, f"{advice[0].upper()}{advice[1:]}. 'sexton runner doctor' says more"
            ) from fault
        return sandbox


def _fault(fault: Exception, way_out: str) -> StartupFault:
    what = " ".join(str(fault).split())
    return StartupFault("UZ-RUN-007", f"commands cannot be sandboxed here: {what}", way_out, UNAVAILABLE)
