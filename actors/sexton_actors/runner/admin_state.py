"""Changes what a runner may do, and has its leases follow: drained, given back, or left to end."""

from uuid import UUID

from sexton_actors.protocol import runner as m
from sexton_actors.protocol.dispatcher import Withdraw
from sexton_actors.protocol.lease import Revoke
from sexton_actors.refusal import Refusal
from sexton_actors.runner import transitions
from sexton_actors.runner.heartbeats import answer
from sexton_actors.runner.record import HeldRunner
from sexton_storage.records.runners import AdminState, Runner
from sexton_storage.refusals import Lost

DRAINED_BY = "system:drain"


async def set_admin_state(held: HeldRunner, message: m.SetAdminState) -> Runner | Refusal:
    """What an operator asks for; the dispatcher, the leases and waiting heartbeats hear of it."""

    async def attempt(_known: Runner, _now: int) -> Runner | Refusal | Lost:
        # Read again: how many leases it holds decides, and no version tells of them.
        runner = await held.load()
        if runner is None:
            return held.unknown()
        changed = transitions.set_admin_state(runner, message.admin_state, len(held.leases))
        if isinstance(changed, Refusal):
            return changed
        if not await held.save(changed, message.by):
            return Lost()
        tell_standing(held, changed)
        await answer(held, changed, held.listeners.take_all())
        return changed

    return await held.until_kept(attempt)


def tell_standing(held: HeldRunner, runner: Runner) -> None:
    """Withdraw its offers unless it is active; take the leases of a revoked one back."""
    if runner.admin_state is AdminState.ACTIVE:
        return
    held.context.tell("dispatcher", "", Withdraw(runner.id, transitions.revoked(runner)))
    if runner.admin_state is AdminState.REVOKED:
        for lease_id in held.leases:
            held.context.tell("lease", lease_id, Revoke())
    elif runner.admin_state is AdminState.DRAINING:
        held.context.set_timer("drain", held.world.look_every_s, m.LookWhetherDrained())


async def lease_taken(held: HeldRunner, runner: Runner, lease_id: UUID) -> None:
    """It holds one lease more."""
    # It may have been on its way while the standing changed: such a one is finished, unless the runner is
    # revoked.
    held.leases.add(lease_id)
    if runner.admin_state is AdminState.REVOKED:
        held.context.tell("lease", lease_id, Revoke())
    await drain(held, runner)


async def drain(held: HeldRunner, runner: Runner) -> Runner:
    """Move between draining and drained as its leases say; the runner as it is then."""
    changed = transitions.drain(runner, len(held.leases))
    if changed is not None and await held.save(changed, DRAINED_BY):
        runner = changed
    if runner.admin_state is AdminState.DRAINING:
        held.context.set_timer("drain", held.world.look_every_s, m.LookWhetherDrained())
    else:
        held.context.cancel_timer("drain")
    return runner
