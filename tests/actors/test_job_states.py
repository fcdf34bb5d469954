"""What becomes of a bulk job in each state, as docs/reference/states.md says, and how a page is counted."""

from uuid import UUID

import pytest
from msgspec.structs import replace

from sexton_actors.jobs import transitions
from sexton_actors.jobs.transitions import DONE, SKIPPED, Later, Outcome, Refused
from sexton_actors.protocol.jobs import Wish
from sexton_actors.refusal import Refusal
from sexton_storage.records.jobs import OVER, Candidate, Job, JobKind, JobStatus
from tests.worlds.states_page import cells

NOW = 1_000_000
IT, ME, OTHER = (UUID(int=n) for n in (1, 2, 3))
EVENTS = tuple(UUID(int=n) for n in (11, 12, 13, 14))
JOB = Job(IT, IT, IT, JobKind.REPLAY, JobStatus.WAITING, 4, "after:0", "api:1", "k", 0, 0, 99, 4)
FOUND = [Candidate(event_id, OTHER, 5, place, 2) for place, event_id in enumerate(EVENTS, 7)]


@pytest.mark.parametrize(("row", "column", "cell"), cells("Bulk job"))
def test_a_job_does_what_its_table_says(row: str, column: str, cell: str) -> None:
    before = replace(JOB, status=JobStatus(column), holder=OTHER, held_until=NOW + 1)
    match transitions.change(before, Wish(row), NOW):
        case Refusal(code=code, facts=facts):
            assert cell == f"`{code}`"
            assert facts["current_state"] == column
        case transitions.Unchanged():
            assert cell == "nothing"
        case Job() as job:
            assert cell == str(job.status)
            assert (job.version, job.holder, job.held_until) == (5, None, 0)


def test_a_page_is_in_hand_before_it_is_done_and_goes_on_where_it_ended() -> None:
    taken = transitions.take(JOB, FOUND, ME, NOW)

    assert (taken.status, taken.page, taken.page_agents) == (JobStatus.RUNNING, EVENTS, (OTHER,) * 4)
    assert (taken.after_at, taken.after_arrival, taken.started_at) == (5, 10, NOW)
    assert not transitions.may_work(taken, OTHER, NOW + transitions.HOLD_MS - 1)
    assert transitions.may_work(taken, OTHER, NOW + transitions.HOLD_MS)


def test_who_goes_on_after_a_death_takes_the_same_page() -> None:
    left = transitions.take(JOB, FOUND, OTHER, NOW)
    taken = transitions.take(left, FOUND[:1], ME, NOW + 20_000)

    assert (taken.page, taken.after_arrival, taken.holder) == (EVENTS, 10, ME)


def test_a_page_is_counted_once_and_what_comes_later_stays_in_hand() -> None:
    taken = transitions.take(JOB, FOUND, ME, NOW)
    outcomes: list[Outcome] = [DONE, Refused("UZ-ZMB-012"), Later("queue_full"), SKIPPED]
    settled = transitions.settle(taken, EVENTS, outcomes, 500, NOW)
    assert settled is not None

    assert (settled.done, settled.skipped, settled.failed) == (1, 1, 1)
    assert (settled.refused, settled.rate, settled.waits_for) == ({"UZ-ZMB-012": 1}, 6, "queue_full")
    assert (settled.page, settled.page_agents) == (EVENTS[2:3], (OTHER,))
    assert transitions.settle(settled, EVENTS, outcomes, 500, NOW) is None

    again = transitions.settle(settled, settled.page, [Refused("UZ-ZMB-012")], 0, NOW)
    assert again is not None
    assert (again.failed, again.refused, again.page, again.waits_for) == (2, {"UZ-ZMB-012": 2}, (), None)


def test_a_job_that_is_to_stop_deals_with_what_it_has_in_hand_first() -> None:
    taken = transitions.take(JOB, FOUND, ME, NOW)
    asked = transitions.change(taken, Wish.STOP, NOW)
    assert isinstance(asked, Job)

    again = transitions.take(asked, (), OTHER, NOW)
    assert (again.status, again.page) == (JobStatus.STOPPING, EVENTS)

    settled = transitions.settle(again, EVENTS, [DONE] * 4, 500, NOW)
    assert settled is not None

    over = transitions.take(settled, (), OTHER, NOW)

    assert (over.status, over.ended_at, over.holder, over.done) == (JobStatus.STOPPED, NOW, None, 4)


def test_a_job_without_further_events_is_done() -> None:
    over = transitions.take(JOB, (), ME, NOW)

    assert (over.status, over.ended_at) == (JobStatus.DONE, NOW)
    assert {
        status for status in JobStatus if not transitions.may_work(replace(JOB, status=status), ME, NOW)
    } == {
        *OVER,
        JobStatus.PAUSED,
    }
