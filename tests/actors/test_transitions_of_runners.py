"""Runners: what their standing allows, and how it changes."""

from uuid import UUID

import pytest
from msgspec.structs import replace

from sexton_actors.refusal import Refusal
from sexton_actors.runner import transitions as runners
from sexton_storage.records.runners import AdminState, Runner

RUNNER = Runner(UUID(int=1), "h", "none", (), 1, b"", AdminState.ACTIVE, 4, 1, offers=("b",), release="r")
ASKABLE = {"active", "cordoned", "draining", "revoked"}
TOLD = {"active": "ok", "cordoned": "ok", "draining": "drain", "drained": "stop", "revoked": "stop"}


@pytest.mark.parametrize("state", list(AdminState))
def test_only_an_active_runner_takes_work_and_a_revoked_one_is_told(state: AdminState) -> None:
    runner = replace(RUNNER, admin_state=state)
    found = runners.revoked(runner)

    assert runners.may_take(runner) is (state is AdminState.ACTIVE)
    assert (found and found.code) == ("UZ-RUN-009" if state is AdminState.REVOKED else None)
    assert runners.beat_status(runner) == TOLD[state]


@pytest.mark.parametrize("held", [0, 1])
@pytest.mark.parametrize("wanted", [*AdminState, "other"])
@pytest.mark.parametrize("state", list(AdminState))
def test_a_state_is_asked_for(state: AdminState, wanted: str, held: int) -> None:
    found = runners.set_admin_state(replace(RUNNER, admin_state=state), wanted, held)
    facts = {"current_state": str(state)}
    if wanted == "other":
        expected: object = ("UZ-REQ-001", {})
    elif wanted not in ASKABLE:
        expected = ("UZ-REQ-001", facts)
    elif state is AdminState.REVOKED and wanted != "revoked":
        expected = ("UZ-REQ-009", facts)
    else:
        after = AdminState.DRAINED if wanted == "draining" and held == 0 else AdminState(wanted)
        expected = replace(RUNNER, admin_state=after, version=5)

    assert ((found.code, found.facts) if isinstance(found, Refusal) else found) == expected
    assert runners.POLL_AGAIN_MS == 5_000


@pytest.mark.parametrize(
    ("state", "held", "after"),
    [
        ("draining", 0, "drained"),
        ("draining", 1, None),
        ("drained", 0, None),
        ("drained", 1, "draining"),
        ("active", 0, None),
        ("active", 1, None),
        ("revoked", 0, None),
    ],
)
def test_a_runner_is_drained_when_it_holds_nothing(state: str, held: int, after: str | None) -> None:
    before = replace(RUNNER, admin_state=AdminState(state))
    found = runners.drain(before, held)

    assert found == (after and replace(RUNNER, admin_state=AdminState(after), version=5))


def test_a_runner_says_what_it_is_and_offers() -> None:
    gone = replace(RUNNER, admin_state=AdminState.REVOKED)

    assert runners.introduce(RUNNER, ("c", "a", "c"), "new") == replace(
        RUNNER, offers=("a", "c"), release="new", version=5
    )
    assert runners.introduce(RUNNER, ("a",), "") == replace(RUNNER, offers=("a",), version=5)
    assert runners.introduce(RUNNER, None, "r") is None
    assert runners.introduce(gone, ("a",), "new") is None
