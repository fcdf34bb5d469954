"""What becomes of a follow-up in each state, as docs/reference/states.md says."""

from uuid import UUID

import pytest
from msgspec.structs import replace

from sexton_actors.zombie.follow_ups import is_due, may_be_cancelled
from sexton_storage.records.follow_ups import FollowUp, FollowUpStatus
from tests.worlds.states_page import cells

NOW = 1_000_000
ASKED = FollowUp(UUID(int=1), UUID(int=2), UUID(int=3), "c", "look", NOW, 0)
CELLS = {(row, column): cell for row, column, cell in cells("Follow-up")}


@pytest.mark.parametrize("status", FollowUpStatus)
def test_a_follow_up_is_cancelled_and_fires_where_the_page_says_so(status: FollowUpStatus) -> None:
    follow_up = replace(ASKED, status=status)
    refusal = may_be_cancelled(follow_up)
    said = CELLS["cancel", status.value]

    assert said == (f"`{refusal.code}`" if refusal else said)
    assert (refusal is None) == (said in {"cancelled", "nothing"})
    assert is_due(follow_up, NOW) == (CELLS["its time comes", status.value] != "nothing")
    assert not is_due(follow_up, NOW - 1)
