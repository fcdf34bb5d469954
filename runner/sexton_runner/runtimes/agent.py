"""Answers for the model-driven runtime, which this release does not carry."""

from sexton_runner.run import Ending, Run, failed


async def run_agent(run: Run) -> Ending:
    """Fail the event before anything has been done for it: no model loop is installed in this runner."""
    return failed(
        "agent_init",
        f"runtime 'agent' is not available on this runner (event {run.live.lease.event.event_id}): "
        "it carries out 'command' only; set `runtime: command` in TRIGGER.md",
    )
