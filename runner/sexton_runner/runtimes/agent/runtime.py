"""Opens what a model's run needs, runs it, and says how it ended."""

import msgspec
import structlog

from sexton_runner import frames
from sexton_runner.errors import RunnerError, SandboxUnavailable, TokenRejected, ToolsMissing, TooManyAsks
from sexton_runner.kept_workspace import LOST, WorkspaceLost, with_workspace
from sexton_runner.lease import RETRY_AFTER
from sexton_runner.providers.faults import KeyRefused, ModelFault, ModelRefused, ModelsBusy, ProviderMissing
from sexton_runner.providers.registry import ModelChoice, open_chain
from sexton_runner.run import Ending, Outcome, Run, failed
from sexton_runner.run_files.file_upload import Left, with_files
from sexton_runner.runtimes.agent.loop import Loop
from sexton_runner.runtimes.agent.model_calls import ModelCalls
from sexton_runner.runtimes.agent.run_limits import BadRunLimits, RunLimits, read_run_limits, unused
from sexton_runner.runtimes.agent.saved_conversation import TooLarge
from sexton_runner.runtimes.agent.time_limit import TimeLimit
from sexton_runner.runtimes.verdict import bound_hit
from sexton_runner.sandbox.workspace import WorkspaceGone
from sexton_runner.tools.toolbox import Toolbox, open_toolbox

log = structlog.get_logger()


async def run_agent(run: Run) -> Ending:
    """Let the lease's model carry out its instructions; never raises for what model or tools do."""
    policy = run.live.lease.policy
    if not policy.provider or not policy.model:
        return failed("agent_init", "no provider or no model is set up for this agent")
    try:
        limits = read_run_limits(policy.context)
        for key in unused(policy.context):
            run.show(frames.chunk(f"[context: {run.redactor.text(key)} means nothing to this runtime]\n"))
        return await _within_time_limit(run, limits)
    except BadRunLimits as fault:
        return failed("invalid_config", str(fault))
    except msgspec.ValidationError as fault:
        return failed("invalid_config", f"the gates of this agent cannot be read: {fault}")
    except ProviderMissing as fault:
        return failed("agent_init", str(fault))
    except ToolsMissing as fault:
        return failed("run_start", run.redactor.text(str(fault)))


async def _within_time_limit(run: Run, limits: RunLimits) -> Ending:
    limit = TimeLimit(run.sandbox.limits.wall_s, run.live.usage)
    policy = run.live.lease.policy
    choices = [
        ModelChoice(0, policy.provider or "", policy.model or "", policy.api_key),
        *(
            ModelChoice(place, one.provider, one.model, one.api_key)
            for place, one in enumerate(policy.fallbacks, 1)
        ),
    ]
    opening = open_chain(
        choices,
        addresses=run.models.addresses,
        patience=run.models.patience,
        rng=run.rng,
        gives_back=RETRY_AFTER in policy.understands,
    )
    async with opening as provider, open_toolbox(run, limit.rest) as toolbox:
        model_calls = ModelCalls(run, provider)
        loop = Loop(run, model_calls, toolbox, limits)
        ending: Ending | None = None
        with limit.begin():
            ending = await _to_its_end(loop, model_calls)
            ending = with_files(ending, await _files(toolbox), run)
            if ending.outcome is Outcome.PROCESSED:
                ending = with_workspace(ending, await toolbox.keep_workspace(), run)
        why = bound_hit("agent_timeout", run.sandbox.limits)
        return ending or loop.broken("agent_timeout", f"the run took longer than it may: {why}")


async def _files(toolbox: Toolbox) -> Left:
    try:
        return await toolbox.send_files()
    except WorkspaceGone as fault:
        return Left(notes=[f"the files could not be read: {fault}"])


async def _carried_out(loop: Loop) -> Ending:
    try:
        return await loop.carry_out()
    except ModelsBusy as fault:
        return await loop.give_back(fault)


async def _to_its_end(loop: Loop, model_calls: ModelCalls) -> Ending:
    try:
        return await _carried_out(loop)
    except TokenRejected:
        raise
    except WorkspaceLost as fault:
        return loop.broken(LOST, str(fault))
    except SandboxUnavailable as fault:
        return loop.broken("startup_posture", f"UZ-RUN-007: the sandbox could not be established: {fault}")
    except TooLarge as fault:
        return loop.broken("checkpoint_failed", str(fault))
    except (KeyRefused, ModelRefused) as fault:
        # Before the first answer it is the set-up that is wrong: the key, the model's name, the address.
        reason = "agent_run" if model_calls.questions else "agent_init"
        return loop.broken(reason, f"the model cannot be used: {fault}")
    except ModelFault as fault:
        return loop.broken("agent_run", f"the model did not answer: {fault}")
    except TooManyAsks as fault:
        return loop.broken("resource_kill", f"the run was stopped: {fault}")
    except RunnerError as fault:
        return loop.broken("agent_run", str(fault))
