"""Answers polls: what to stop comes first, then an offer to the dispatcher."""

from typing import Any

from sexton_actors.protocol import runner as m
from sexton_actors.protocol.dispatcher import Offer
from sexton_actors.runner import transitions
from sexton_actors.runner.record import HeldRunner
from sexton_engine import DEFERRED
from sexton_storage.records.runners import Runner
from sexton_storage.scopes import scope_of


def poll(held: HeldRunner, runner: Runner, message: m.Poll) -> Any:
    """``Leases`` now, or ``DEFERRED`` while the dispatcher has the offer and answers it."""
    if refusal := transitions.revoked(runner):
        return refusal
    if untold := held.untold():
        # To stop a run comes before to start one.
        return m.Leases((), 0, untold)
    if not transitions.may_take(runner):
        return m.Leases((), transitions.POLL_AGAIN_MS)
    offer = Offer(
        runner_id=runner.id,
        labels=runner.abilities,
        unsandboxed=runner.sandbox_tier == "none",
        max_leases=min(message.max_leases, runner.slots),
        wait_s=message.wait_ms / 1000,
        reply=held.context.defer(),
        scope=scope_of(runner),
    )
    held.context.tell("dispatcher", "", offer)
    return DEFERRED
