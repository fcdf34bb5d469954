"""What came of the runs of a version that is tried out on a share of its agent's events."""

from uuid import UUID

import msgspec

from sexton_storage.records.events import Event, EventStatus

ON_TRIAL = "on_trial"
"""The status of a trial that goes on, as the agent's record has it."""

COUNTED = frozenset({EventStatus.PROCESSED, EventStatus.AGENT_ERROR, EventStatus.DEAD_LETTERED})


class Tally(msgspec.Struct, frozen=True, gc=False):
    """The runs of one side that ended as processed, agent_error or dead_lettered; no others count."""

    runs: int = 0
    failed: int = 0
    """Those that were not processed."""
    charged_nanos: int = 0
    scored: int = 0
    """Those that have a score."""
    score_sum: float = 0.0
    """The sum of their scores."""


def counts_in_trial(event: Event) -> bool:
    """Whether it is a run of the version that its side of a trial asks for, and has ended.

    What a person cancelled says nothing. A run of the candidate's side that was given another version, since
    the candidate could not be run, is counted on neither side.
    """
    return (
        event.trial_id is not None
        and event.completed_at is not None
        and event.status in COUNTED
        and event.ran_version is not None
        and event.asked_version in {None, event.ran_version}
    )


class Tallies(msgspec.Struct, frozen=True, gc=False):
    candidate: Tally = Tally()
    stable: Tally = Tally()


class Trial(msgspec.Struct, frozen=True, gc=False):
    """A trial that goes on."""

    zombie_id: UUID
    trial_id: UUID
