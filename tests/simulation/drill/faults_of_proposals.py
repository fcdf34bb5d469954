"""Faults in what becomes of the changes that runs propose."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from sexton_storage.records.improvement import ProposalStatus
from tests.simulation.drill.planting import Fault

REPORTS: Final = "sexton_actors.lease.reports"
PROPOSALS: Final = "sexton_actors.zombie.proposals"
TRANSITIONS: Final = "sexton_actors.proposal.transitions"
END: Final = "sexton_storage.decisions.end"
MEMORY: Final = "sexton_storage.memory"


def _proposes_first(report: Any) -> Any:
    # As where proposals are kept by a statement of their own, before it is known whether the report is new.
    async def changed(held: Any, message: Any, *, lost: int = 0) -> Any:
        module = __import__(REPORTS, fromlist=["_proposals"])
        for proposal in await module._proposals(held, message):
            await held.world.storage.improvement.propose(proposal)
        return await report(held, replace(message, proposals=()), lost=lost)

    return changed


def _never(_: Any) -> Any:
    return lambda *_: False


def _without_rejections(lessons: Any) -> Any:
    async def changed(*args: Any) -> Any:
        return replace(await lessons(*args), rejections=())

    return changed


def _heard_when_handed(lessons: Any) -> Any:
    # As where what was handed over counts as heard, whatever becomes of the run.
    async def changed(self: Any, *args: Any) -> Any:
        found = await lessons(self, *args)
        for proposal in found.rejections:
            row = self._tables.proposals[proposal.id]
            self._tables.proposals[row.id] = replace(row, heard_at=self._tables.now())
        return found

    return changed


def _as_if_pending(find: Any) -> Any:
    async def changed(self: Any, proposal_id: Any) -> Any:
        found = await find(self, proposal_id)
        return replace(found, status=ProposalStatus.PENDING) if hasattr(found, "status") else found

    return changed


def _unchecked(_: Any) -> Any:
    return lambda *_: None


def _without_proposals(surfaces: Any) -> Any:
    return {**surfaces, "proposals": lambda _: iter(())}


FAULTS: Final = (
    Fault(
        "proposed-again",
        "a report that is sent again proposes again",
        REPORTS,
        "report",
        _proposes_first,
    ),
    Fault(
        "rejection-for-ever",
        "a rejection is told with each lease, whatever the runs that heard of it came to",
        END,
        "_is_unheard",
        _never,
    ),
    Fault(
        "rejection-untold",
        "no run is told of a rejection",
        f"{MEMORY}.improvement",
        "MemoryImprovement.lessons",
        _without_rejections,
    ),
    Fault(
        "rejection-told-once",
        "a rejection is told with one lease only, also when its run comes to nothing",
        f"{MEMORY}.improvement",
        "MemoryImprovement.lessons",
        _heard_when_handed,
    ),
    Fault(
        "proposal-decided-twice",
        "a proposal is decided again by whoever comes second",
        PROPOSALS,
        "Proposals._find",
        _as_if_pending,
        ((f"{MEMORY}.apply_improvement", "check_pending", _unchecked),),
    ),
    Fault(
        "proposal-keeps-address",
        "an erasure leaves out what a run has proposed",
        f"{MEMORY}.erasure_surfaces",
        "_SURFACES",
        _without_proposals,
    ),
)
