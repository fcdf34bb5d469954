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
YET_ANOTHER: Final = UUID(int=22)
REASON: Final = "It needs no mention."


def _put(record: Record, proposal: Proposal) -> Proposal:
    record.tables.proposals[proposal.id] = proposal
    return proposal


def _processed(record: Record) -> Lease:
    """The newest lease whose run was processed."""
    leases = reversed(record.tables.leases.values())
    return next(one for one in leases if ended_as(record, one) is EventStatus.PROCESSED)


def _new(record: Record, status: ProposalStatus = ProposalStatus.REJECTED) -> Proposal:
    """One that the judges know of, and with which nothing is wrong."""
    lease, seen = _processed(record), record.proposals
    version = next(one for one in record.tables.configs.values() if one.zombie_id == lease.zombie_id)
    is_pending, is_rejected = (status is one for one in (ProposalStatus.PENDING, ProposalStatus.REJECTED))
    made = Proposal(
        id=ANOTHER,
        zombie_id=lease.zombie_id,
        workspace_id=lease.workspace_id,
        tenant_id=lease.tenant_id,
        status=status,
        title="Planted",
        rationale="",
        diff="",
        base_config_version_id=version.id,
        created_by="run",
        created_at=1,
        source_markdown="Look.",
        event_id=lease.event_id,
        rejection_reason=REASON if is_rejected else None,
        decided_at=None if is_pending else 2,
    )
    seen.read += 1
    seen.rows[made.id] = made
    seen.made[lease.event_id] = made.id
    return _put(record, made)


def _heard(record: Record) -> Proposal:
    """A rejection that the newest run has heard of."""
    lease, made = _processed(record), _new(record)
    heard = _put(record, replace(made, heard_at=lease.ended_at))
    record.proposals.rows[made.id] = heard
    record.proposals.heard[made.id] = lease.fencing_token
    record.proposals.rejected.setdefault(made.zombie_id, {})[made.id] = 0
    return heard


def _tell(record: Record, lease: Lease, *proposals: Proposal) -> None:
    reasons = {one.id: one.rejection_reason or "" for one in proposals}
    record.runs.told.append(Told(lease.id, reasons))


def _proposed_again(record: Record) -> None:
    _put(record, replace(_new(record), id=YET_ANOTHER))


def _proposed_by_a_failure(record: Record) -> None:
    event = record.tables.events[_processed(record).event_id]
    record.tables.events[event.id] = replace(event, status=EventStatus.AGENT_ERROR)
    _put(record, replace(_new_of_none(record), event_id=event.id))


def _new_of_none(record: Record) -> Proposal:
    """One that the judges do not know of yet."""
    made, seen = _new(record), record.proposals
    seen.read -= 1
    assert made.event_id is not None
    del seen.rows[made.id], seen.made[made.event_id]
    return made


def _never_kept(record: Record) -> None:
    lease = _processed(record)
    record.proposals.made.pop(lease.event_id, None)
    record.runs.proposed[lease.id] = {"title": "Planted", "source_markdown": "Look."}


def _kept_otherwise(record: Record) -> None:
    _new(record)
    record.runs.proposed[_processed(record).id] = {"title": "Planted", "source_markdown": "Look away."}


def _decided_again(record: Record) -> None:
    _put(record, replace(_new(record), status=ProposalStatus.CONFIG_CHANGED))


def _heard_again(record: Record) -> None:
    heard = _heard(record)
    _put(record, replace(heard, heard_at=(heard.heard_at or 0) + 1))


def _another_outcome(record: Record) -> None:
    told = ToldOfProposal(_new(record).id, ProposalStatus.APPLIED)
    record.promises.proposals.append(told)


def _another_reason(record: Record) -> None:
    row = _new(record)
    record.promises.proposals.append(ToldOfProposal(row.id, row.status, "It was not asked for."))


def _a_version_of_none(record: Record) -> None:
    version = next(iter(record.tables.configs.values()))
    record.tables.configs[ANOTHER] = replace(version, id=ANOTHER)


def _approve(record: Record, source_markdown: str, number: UUID = ANOTHER) -> None:
    configs, row = record.tables.configs, _new(record, ProposalStatus.APPLIED)
    base = configs[row.base_config_version_id]
    configs[number] = replace(base, id=number, revision=100, source_markdown=source_markdown)
    _put(record, replace(row, config_version_id=number))


def _another_version(record: Record) -> None:
    _approve(record, "Look away.")


def _one_version_for_two(record: Record) -> None:
    _approve(record, "Look.")
    row = record.tables.proposals[ANOTHER]
    _put(record, replace(row, id=YET_ANOTHER))
    # The number of versions is right.
    record.tables.configs[YET_ANOTHER] = replace(record.tables.configs[ANOTHER], id=YET_ANOTHER)


def _an_old_version(record: Record) -> None:
    record.proposals.leases = 0
    _new(record)
    record.proposals.in_force = dict.fromkeys(record.promises.agents, 100)


def _told_again(record: Record) -> None:
    heard = _heard(record)
    record.proposals.heard[heard.id] = 0
    _tell(record, _processed(record), heard)


def _not_told(record: Record) -> None:
    row = _new(record)
    record.proposals.rejected[row.zombie_id] = {row.id: 0}
    _tell(record, _processed(record))


def _told_of_anothers(record: Record) -> None:
    heard, own = _heard(record), _processed(record).zombie_id
    other = next(agent for agent in record.promises.agents if agent != own)
    _tell(record, _processed(record), _put(record, replace(heard, zombie_id=other)))


def _told_another_reason(record: Record) -> None:
    heard = _heard(record)
    _tell(record, _processed(record), replace(heard, rejection_reason="It was not asked for."))


def _told_and_not_heard(record: Record) -> None:
    _tell(record, _processed(record), _new(record))


def _heard_by_nobody(record: Record) -> None:
    _put(record, replace(_new(record), heard_at=1))


def _anothers_instructions(record: Record) -> None:
    tables, lease = record.tables, _processed(record)
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
    record.requests[event.id] = Request(value, NOBODY, job=None, delivery=None, was_erased=False)
    erasure = an_erasure(record, value)
    tables.erasures[erasure.id], record.before[erasure.id] = erasure, 0
    _put(record, replace(_new(record), event_id=event.id, rationale=f"It has come up for {value}."))
    return ANOTHER


PLANTED: Final[Mapping[Judge, Callable[[Record], None]]] = {
    judges_of_proposals.proposed_once: _proposed_again,
    judges_of_proposals.proposals_decided_once: _decided_again,
    judges_of_proposals.approved_is_in_force: _a_version_of_none,
    judges_of_proposals.rejections_told: _told_again,
}
MORE_PLANTED: Final[tuple[tuple[Judge, Callable[[Record], None]], ...]] = (
    *(
        (judges_of_proposals.proposed_once, plant)
        for plant in (_proposed_by_a_failure, _never_kept, _kept_otherwise)
    ),
    *(
        (judges_of_proposals.proposals_decided_once, plant)
        for plant in (_heard_again, _another_outcome, _another_reason)
    ),
    *(
        (judges_of_proposals.approved_is_in_force, plant)
        for plant in (_another_version, _one_version_for_two, _an_old_version)
    ),
    *(
        (judges_of_proposals.rejections_told, plant)
        for plant in (
            _not_told,
            _told_of_anothers,
            _told_another_reason,
            _told_and_not_heard,
            _heard_by_nobody,
        )
    ),
    (judges_of_programs.handed_its_own, _anothers_instructions),
)
