"""What the judges of proposals must notice: a planted row, or more, for each."""

from collections.abc import Callable, Mapping
from typing import Final
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.decisions.erasure import ERASED_DOCUMENT
from sexton_storage.records.events import EventStatus
from sexton_storage.records.improvement import Proposal, ProposalStatus
from sexton_storage.records.leases import Lease
from tests.simulation.plants_of_bulk import an_erasure
from tests.simulation.product import judges_of_programs, judges_of_proposals
from tests.simulation.product.customers import CUSTOMERS, NOBODY
from tests.simulation.product.judges_of_reports import ended_as
from tests.simulation.product.people import ToldOfProposal
from tests.simulation.product.record import Judge, Record, Request
from tests.simulation.product.runs import Handed, Told

ANOTHER: Final = UUID(int=21)


def _one(record: Record, status: ProposalStatus) -> Proposal:
    return next(one for one in record.tables.proposals.values() if one.status is status)


def _put(record: Record, proposal: Proposal) -> None:
    record.tables.proposals[proposal.id] = proposal


def _processed(record: Record, agent: UUID) -> Lease:
    """The agent's newest lease whose run was processed."""
    leases = record.leases_by_agent()[agent]
    return next(one for one in reversed(leases) if ended_as(record, one) is EventStatus.PROCESSED)


def _proposed_again(record: Record) -> None:
    _put(record, replace(_one(record, ProposalStatus.REJECTED), id=ANOTHER))


def _proposed_by_a_failure(record: Record) -> None:
    event = next(one for one in record.tables.events.values() if one.status is EventStatus.AGENT_ERROR)
    _put(record, replace(_one(record, ProposalStatus.REJECTED), id=ANOTHER, event_id=event.id))


def _never_kept(record: Record) -> None:
    made = record.proposals.made
    lease = next(
        one
        for one in record.tables.leases.values()
        if ended_as(record, one) is EventStatus.PROCESSED and one.event_id not in made
    )
    record.runs.proposed[lease.id] = {"title": "Planted", "source_markdown": ""}


def _decided_again(record: Record) -> None:
    _put(record, replace(_one(record, ProposalStatus.REJECTED), status=ProposalStatus.CONFIG_CHANGED))


def _heard_again(record: Record) -> None:
    heard = next(one for one in record.tables.proposals.values() if one.heard_at is not None)
    _put(record, replace(heard, heard_at=(heard.heard_at or 0) + 1))


def _another_outcome(record: Record) -> None:
    told = ToldOfProposal(_one(record, ProposalStatus.REJECTED).id, ProposalStatus.APPLIED)
    record.promises.proposals.append(told)


def _another_reason(record: Record) -> None:
    row = _one(record, ProposalStatus.REJECTED)
    record.promises.proposals.append(ToldOfProposal(row.id, row.status, "It was not asked for."))


def _one_version_too_many(record: Record) -> None:
    version = next(iter(record.tables.configs.values()))
    record.tables.configs[ANOTHER] = replace(version, id=ANOTHER)


def _another_version(record: Record) -> None:
    applied = _one(record, ProposalStatus.APPLIED)
    assert applied.config_version_id is not None
    version = record.tables.configs[applied.config_version_id]
    record.tables.configs[version.id] = replace(version, source_markdown="Something else.")
    del record.proposals.applied[applied.id]


def _an_old_version(record: Record) -> None:
    record.proposals.leases = 0
    record.proposals.in_force = dict.fromkeys(record.promises.agents, 100)


def _told_again(record: Record) -> None:
    row = next(one for one in record.tables.proposals.values() if one.heard_at is not None)
    leases = record.leases_by_agent()[row.zombie_id]
    record.proposals.heard[row.id] = 0
    record.runs.told.append(Told(leases[-1].id, {row.id: row.rejection_reason or ""}))


def _not_told(record: Record) -> None:
    row = next(one for one in record.tables.proposals.values() if one.heard_at is not None)
    record.tables.proposals[row.id] = replace(row, heard_at=None)
    record.proposals.heard.pop(row.id)
    record.proposals.rejected[row.zombie_id][row.id] = 0
    record.runs.told.append(Told(record.leases_by_agent()[row.zombie_id][-1].id, {}))


def _told_of_anothers(record: Record) -> None:
    row = _one(record, ProposalStatus.REJECTED)
    other = next(agent for agent in record.leases_by_agent() if agent != row.zombie_id)
    record.runs.told.append(Told(_processed(record, other).id, {row.id: row.rejection_reason or ""}))
    record.proposals.heard[row.id] = 0


def _told_and_not_heard(record: Record) -> None:
    row = next(one for one in record.tables.proposals.values() if one.heard_at is not None)
    record.proposals.heard.pop(row.id)
    record.tables.proposals[row.id] = replace(row, heard_at=None)
    lease = _processed(record, row.zombie_id)
    record.runs.told.append(Told(lease.id, {row.id: row.rejection_reason or ""}))


def _heard_by_nobody(record: Record) -> None:
    row = _one(record, ProposalStatus.REJECTED)
    record.tables.proposals[row.id] = replace(row, heard_at=1)
    record.proposals.heard.pop(row.id, None)


def _anothers_instructions(record: Record) -> None:
    tables = record.tables
    lease = next(one for one in tables.leases.values() if one.config_version_id in tables.configs)
    host, name = tables.runners[lease.runner_id].host_id, tables.zombies[lease.zombie_id].name
    record.runs.handed.append(Handed(lease.id, host, f"You are {name}, and somebody else too."))


def an_address_left(record: Record) -> UUID:
    """Erase a customer's event, but for what its run has proposed."""
    tables, value = record.tables, CUSTOMERS[0]
    record.read_requests()
    gone = {"request_json": ERASED_DOCUMENT, "response_text": None, "evidence": None, "checkpoint": None}
    event = replace(next(iter(tables.events.values())), id=ANOTHER, source_event_id=None, **gone)
    # It came before all others, and the erasure was about nothing that came later.
    tables.events[event.id], tables.arrivals[event.id] = event, 0
    record.requests[event.id] = Request(value, NOBODY, None, was_erased=False)
    erasure = an_erasure(record, value)
    tables.erasures[erasure.id], record.before[erasure.id] = erasure, 0
    some = next(iter(tables.proposals.values()))
    _put(record, replace(some, id=ANOTHER, event_id=event.id, rationale=f"It has come up for {value}."))
    return ANOTHER


PLANTED: Final[Mapping[Judge, Callable[[Record], None]]] = {
    judges_of_proposals.proposed_once: _proposed_again,
    judges_of_proposals.proposals_decided_once: _decided_again,
    judges_of_proposals.approved_is_in_force: _one_version_too_many,
    judges_of_proposals.rejections_told: _told_again,
}
MORE_PLANTED: Final[tuple[tuple[Judge, Callable[[Record], None]], ...]] = (
    *((judges_of_proposals.proposed_once, plant) for plant in (_proposed_by_a_failure, _never_kept)),
    *(
        (judges_of_proposals.proposals_decided_once, plant)
        for plant in (_heard_again, _another_outcome, _another_reason)
    ),
    *((judges_of_proposals.approved_is_in_force, plant) for plant in (_another_version, _an_old_version)),
    *(
        (judges_of_proposals.rejections_told, plant)
        for plant in (_not_told, _told_of_anothers, _told_and_not_heard, _heard_by_nobody)
    ),
    (judges_of_programs.handed_its_own, _anothers_instructions),
)
