"""What must hold of proposals: each is made once and decided once, and whoever must hear of it does."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final
from uuid import UUID

from sexton_storage.decisions.erasure import ERASED
from sexton_storage.records.events import EventStatus
from sexton_storage.records.improvement import Proposal, ProposalStatus
from sexton_storage.records.leases import Lease
from sexton_storage.terms import REJECTIONS_TOLD
from tests.simulation.product.judges_of_reports import ended_as
from tests.simulation.product.record import Judge, Record


def proposed_once(record: Record) -> Iterator[str]:
    """What a processed run proposes is there once, however often it reports; no other run leaves any."""
    tables, made, proposed = record.tables, record.proposals.made, record.runs.proposed
    for proposal in islice(tables.proposals.values(), record.proposals.read, None):
        record.proposals.read += 1
        assert proposal.event_id is not None, "only runs propose"
        if proposal.event_id in made:
            yield f"event {proposal.event_id} has proposals {made[proposal.event_id]} and {proposal.id}"
        made[proposal.event_id] = proposal.id
        event = tables.events.get(proposal.event_id)
        if event is not None and event.status is not EventStatus.PROCESSED:
            yield f"proposal {proposal.id} is of event {event.id}, which is {event.status}"
    for lease_id in [one for one in proposed if _has_ended(record, one)]:
        said, lease = proposed.pop(lease_id), tables.leases[lease_id]
        if ended_as(record, lease) is EventStatus.PROCESSED:
            kept = tables.proposals.get(made.get(lease.event_id, lease_id))
            if kept is None or not _is_same(said, kept):
                yield f"the run of lease {lease_id} has proposed {said['title']!r}, and there is {kept}"


def _has_ended(record: Record, lease_id: UUID) -> bool:
    lease = record.tables.leases.get(lease_id)
    return lease is not None and lease.ended_at is not None


def _is_same(said: Mapping[str, Any], kept: Proposal) -> bool:
    return kept.title in (said["title"], ERASED) and kept.source_markdown == said["source_markdown"]


def proposals_decided_once(record: Record) -> Iterator[str]:
    """A proposal is decided once, as all were told who have decided on it, and is heard of once."""
    tables, seen = record.tables, record.proposals.rows
    for proposal in tables.proposals.values():
        before = seen.get(proposal.id)
        if before is proposal:
            continue  # Rows do not change: it is the one that was looked at before.
        seen[proposal.id] = proposal
        if before is None:
            continue
        if before.status is not ProposalStatus.PENDING and not _is_as_decided(before, proposal):
            yield f"proposal {proposal.id} was decided as in {before}, and is {proposal}"
        if before.heard_at is not None and before.heard_at != proposal.heard_at:
            yield f"proposal {proposal.id} was heard of at {before.heard_at}, and is at {proposal.heard_at}"
    for proposal_id, status, reason, version in record.promises.proposals:
        row = tables.proposals[proposal_id]
        # One who comes second is told how it was decided, and no more.
        if (
            status != row.status
            or (reason is not None and row.rejection_reason not in (reason, ERASED))
            or version not in (None, str(row.config_version_id))
        ):
            yield f"proposal {proposal_id} is {row}, and a person was told {status}, {reason}, {version}"
    record.promises.proposals.clear()


def _is_as_decided(before: Proposal, now: Proposal) -> bool:
    names = ("status", "decided_at", "decided_by", "config_version_id")
    return now.rejection_reason in (before.rejection_reason, ERASED) and all(
        getattr(before, name) == getattr(now, name) for name in names
    )


def approved_is_in_force(record: Record) -> Iterator[str]:
    """A proposal that is approved is one version of its agent's files, and in force from then on."""
    tables, seen = record.tables, record.proposals
    if not tables.proposals:
        return
    for lease in islice(tables.leases.values(), seen.leases, None):
        given = tables.configs.get(lease.config_version_id or lease.id)
        if given is not None and given.revision < seen.in_force.get(lease.zombie_id, 0):
            newest = seen.in_force[lease.zombie_id]
            yield f"lease {lease.id} was given revision {given.revision}, and {newest} was in force"
    seen.leases = len(tables.leases)
    for proposal in tables.proposals.values():
        version_id = proposal.config_version_id
        if version_id is None or proposal.id in seen.applied:
            continue
        version = tables.configs.get(version_id)
        if (
            version is None
            or version_id in seen.applied.values()
            or (version.zombie_id, version.source_markdown) != (proposal.zombie_id, proposal.source_markdown)
        ):
            yield f"proposal {proposal.id} was approved, and its version is {version}"
        else:
            in_force = seen.in_force.get(proposal.zombie_id, 0)
            seen.in_force[proposal.zombie_id] = max(in_force, version.revision)
        seen.applied[proposal.id] = version_id
    if len(tables.configs) != len(tables.zombies) + len(seen.applied):
        yield f"{len(seen.applied)} proposals made {len(tables.configs) - len(tables.zombies)} versions"


def rejections_told(record: Record) -> Iterator[str]:
    """A rejection is told with each lease until a run that was told of it is processed, and never after."""
    seen, told = record.proposals, record.runs.told
    for lease_id, reasons in told:
        seen.told.setdefault(lease_id, set()).update(reasons)
    yield from _heard(record)
    for lease_id, reasons in told:
        yield from _wrongly_told(record, record.tables.leases[lease_id], reasons)
    told.clear()
    for proposal in record.tables.proposals.values():
        if proposal.status is ProposalStatus.REJECTED:
            # Whatever its agent is leased from here on is told of it.
            tokens = seen.rejected.setdefault(proposal.zombie_id, {})
            tokens.setdefault(proposal.id, record.tables.heads[proposal.zombie_id].fence)
        if proposal.heard_at is not None and proposal.id not in seen.heard:
            yield f"proposal {proposal.id} was heard of at {proposal.heard_at}, and no processed run was told"


def _heard(record: Record) -> Iterator[str]:
    """Settle what runs have heard of that have ended since the last look."""
    tables, seen = record.tables, record.proposals
    for lease_id in [one for one in seen.told if _has_ended(record, one)]:
        lease, told = tables.leases[lease_id], seen.told.pop(lease_id)
        if ended_as(record, lease) is not EventStatus.PROCESSED:
            continue
        for proposal_id in told - seen.heard.keys():
            seen.heard[proposal_id] = lease.fencing_token
            at = tables.proposals[proposal_id].heard_at
            if at != lease.ended_at:
                yield f"lease {lease_id} told of {proposal_id} and ended at {lease.ended_at}, heard is {at}"


def _wrongly_told(record: Record, lease: Lease, reasons: Mapping[UUID, str]) -> Iterator[str]:
    tables, seen = record.tables, record.proposals
    for proposal_id, reason in reasons.items():
        row = tables.proposals.get(proposal_id)
        if row is None or row.zombie_id != lease.zombie_id or row.rejection_reason not in (reason, ERASED):
            yield f"lease {lease.id} was told {reason!r} of {row}"
        elif seen.heard.get(proposal_id, lease.fencing_token) < lease.fencing_token:
            by = seen.heard[proposal_id]
            yield f"lease {lease.id} told of {proposal_id} again, which the run with token {by} has heard of"
    if len(reasons) < REJECTIONS_TOLD and not lease.shadow:
        for proposal_id, token in seen.rejected.get(lease.zombie_id, {}).items():
            if lease.fencing_token > token and proposal_id not in (*reasons, *seen.heard):
                yield f"lease {lease.id} was not told that {proposal_id} is rejected"


OF_PROPOSALS: Final[Sequence[Judge]] = (
    proposed_once,
    proposals_decided_once,
    approved_is_in_force,
    rejections_told,
)
