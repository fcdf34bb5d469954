"""The table of runtimes: a new one is a file beside this and a row here."""

from collections.abc import Mapping

from sexton_runner.run import Ending, Run, Runtime, failed
from sexton_runner.runtimes.agent.runtime import run_agent
from sexton_runner.runtimes.command import run_command

RUNTIMES: Mapping[str, Runtime] = {
    "command": run_command,
    "agent": run_agent,
}


async def carry_out(run: Run) -> Ending:
    """Carry out a lease by the runtime it names; an unknown name is an invalid configuration."""
    runtime = RUNTIMES.get(run.live.lease.runtime)
    if runtime is None:
        return failed(
            "invalid_config",
            f"this runner knows no runtime {run.live.lease.runtime!r}; it has {', '.join(RUNTIMES)}",
        )
    return await runtime(run)
