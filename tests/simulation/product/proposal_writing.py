"""Runs that propose a change of their agent's own files, and note what they were told of earlier ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from sexton_runner.run import Ending, Outcome
from sexton_runner.wire import Lease
from tests.simulation.product.busy_agents import AGENTS
from tests.simulation.product.customers import parts_of
from tests.simulation.product.runs import Runs, Told
from tests.worlds.samples import skill_md

PROPOSED_EACH: Final = 2
"""The runs of every other event propose, if they end well."""
OF: Final = "You are "
"""What the instructions of each agent begin with; its name follows."""
REJECTED: Final = "proposal_rejected"


def proposes(number: int) -> bool:
    """Whether the runs of this event do. Not drawn: nothing else of a run is another for it."""
    return number // 11 % PROPOSED_EACH == 0


def proposal_of(instructions: str, number: int, customer: str) -> Mapping[str, Any]:
    r"""A change of the second line of the instructions; the agent stays who it is.

    >>> proposal_of("You are doctor-0: look.\nMind case 7.", 8, "a@b.c")["source_markdown"].split("\n")[-4:]
    ['', 'You are doctor-0: look.', 'Mind case 8.', '']
    """
    first = instructions.partition("\n")[0]
    name = first.removeprefix(OF).partition(":")[0]
    # The file is replaced as a whole, and the model is a line of it.
    model = AGENTS[int(name.rpartition("-")[2])].model
    return {
        "title": f"Mind case {number}",
        "rationale": f"It has come up again for {customer}.",
        "source_markdown": skill_md(name, model=model, body=f"\n{first}\nMind case {number}.\n"),
    }


def with_proposal(ending: Ending, lease: Lease, runs: Runs, number: int) -> Ending:
    """The end of a run, with what it proposes."""
    if not runs.propose or ending.outcome is not Outcome.PROCESSED or not proposes(number):
        return ending
    proposal = dict(proposal_of(lease.instructions, number, parts_of(lease.event.request_json).customer))
    runs.proposed[UUID(lease.lease_id)] = proposal
    return replace(ending, proposals=(proposal,))


def note_told(lease: Lease, runs: Runs) -> None:
    """Note which rejections the lease came with, and the reason that each had."""
    if runs.propose:
        said = {
            UUID(one["proposal_id"]): one["rejection_reason"]
            for one in lease.feedback
            if one["kind"] == REJECTED
        }
        runs.told.append(Told(UUID(lease.lease_id), said))
