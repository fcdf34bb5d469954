"""Every request and every word about a grant does what docs/reference/states.md says, cell by cell."""

from uuid import UUID

import pytest
from msgspec.structs import replace

from sexton_actors.grants import transitions
from sexton_actors.lease.transitions.integrations import may_use, used
from sexton_actors.protocol.grants import Decide, Request
from sexton_actors.refusal import Refusal
from sexton_storage.records.grants import Grant, GrantStatus
from tests.worlds.states_page import cells

AGENT, EVENT = UUID(int=1), UUID(int=2)
NOW = 1_000_000
FIRST = Grant(
    id=UUID(int=3),
    tenant_id=UUID(int=4),
    workspace_id=UUID(int=5),
    zombie_id=AGENT,
    service="slack",
    reason="to tell people",
    status=GrantStatus.PENDING,
    version=1,
    requested_at=NOW - 10,
    requested_by="user:1",
    created_at=NOW - 10,
)
WORDS = {"approve": GrantStatus.APPROVED, "deny": GrantStatus.DENIED, "revoke": GrantStatus.REVOKED}


def grant_at(state: str) -> Grant | None:
    if state == "none":
        return None
    decided = state != "pending"
    return replace(
        FIRST,
        status=GrantStatus(state),
        version=4,
        decided_at=NOW - 5 if decided else None,
        decided_by="user:2" if decided else None,
    )


def request_of(**changes: object) -> Request:
    message = Request(UUID(int=9), FIRST.tenant_id, FIRST.workspace_id, "slack", "again", "agent:7", EVENT)
    return replace(message, **changes)


def outcome(asked: str, state: str) -> str:
    """In the words of the page."""
    grant = grant_at(state)
    if asked == "request":
        done: object = transitions.request(grant, AGENT, request_of(), NOW)
    elif asked == "use":
        done = may_use(grant, "slack")
    elif grant is None:
        # That there is none is its actor's to say: see test_actors_grants.py.
        return "`UZ-APPROVAL-002`"
    else:
        done = transitions.decide(grant, Decide(grant.id, WORDS[asked], "user:3"), NOW)
    match done:
        case Refusal(code=code):
            return f"`{code}`"
        case transitions.Unchanged():
            return "nothing"
        case transitions.Change(grant=changed):
            return str(changed.status)
        case Grant():
            return "lent"
        case _:
            raise AssertionError(done)


@pytest.mark.parametrize(("asked", "state", "cell"), cells("Grant"))
def test_a_grant_moves_as_the_page_says(asked: str, state: str, cell: str) -> None:
    assert outcome(asked, state) == cell


def test_the_page_has_every_state_and_every_word() -> None:
    found = cells("Grant")

    assert {state for _, state, _ in found} == {"none", *(status.value for status in GrantStatus)}
    assert {asked for asked, _, _ in found} == {"request", "use", *WORDS}


def test_a_new_request_forgets_the_decision_and_keeps_the_grant() -> None:
    denied = grant_at("denied")
    assert denied is not None

    change = transitions.request(denied, AGENT, request_of(), NOW)
    assert isinstance(change, transitions.Change)

    grant = change.grant
    assert (grant.id, grant.version, grant.created_at) == (denied.id, 5, denied.created_at)
    assert (grant.requested_at, grant.requested_by, grant.reason) == (NOW, "agent:7", "again")
    assert (grant.decided_at, grant.decided_by) == (None, None)

    [frame] = change.frames
    assert (frame.kind, frame.event_id, frame.zombie_id) == ("grant_changed", EVENT, AGENT)
    assert frame.data == {
        "grant_id": str(denied.id),
        "service": "slack",
        "status": "pending",
        "by": "agent:7",
        "reason": "again",
    }


def test_a_decision_names_who_and_when_and_shows() -> None:
    change = transitions.decide(FIRST, Decide(FIRST.id, GrantStatus.APPROVED, "slack:U7"), NOW)
    assert isinstance(change, transitions.Change)
    assert (change.grant.decided_at, change.grant.decided_by, change.grant.version) == (NOW, "slack:U7", 2)

    [frame] = change.frames
    assert (frame.kind, frame.data["status"], frame.data["by"]) == ("grant_changed", "approved", "slack:U7")


def test_a_word_that_comes_too_late_hears_of_the_first() -> None:
    denied = grant_at("denied")
    assert denied is not None

    refusal = transitions.decide(denied, Decide(denied.id, GrantStatus.APPROVED, "user:3"), NOW)
    assert isinstance(refusal, Refusal)
    assert refusal.facts == {"current_state": "denied", "resolved_at": NOW - 5, "resolved_by": "user:2"}


def test_nobody_decides_that_a_grant_is_pending() -> None:
    approved = grant_at("approved")
    assert approved is not None

    refusal = transitions.decide(approved, Decide(approved.id, GrantStatus.PENDING, "user:3"), NOW)
    assert isinstance(refusal, Refusal)


def test_the_frame_of_a_loan_holds_nothing_of_the_credential() -> None:
    frame = used(FIRST, EVENT, NOW)

    assert (frame.kind, frame.event_id) == ("grant_used", EVENT)
    assert set(frame.data) == {"grant_id", "service", "status"}


def test_a_grant_begins_with_its_first_version() -> None:
    begun = transitions.request(None, AGENT, request_of(), NOW)

    assert begun.grant.version == 1
