"""What is done about a gate in a chat, for each state of the message and of the gate, and each answer."""

from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace

from sexton_actors.chat.notices import notice_of
from sexton_actors.chat.transitions import (
    NOTICE_TERM_MS,
    RETRY_FIRST_MS,
    RETRY_MAX_MS,
    Drop,
    Forget,
    Keep,
    Post,
    Update,
    is_stale,
    posted,
    todo,
    told,
    updated,
)
from sexton_actors.ports.chat import ChatFault, Shown, Trouble
from sexton_storage.records.chats import ChatNotice, ChatPost, ChatWork
from sexton_storage.records.gates import Gate, GateStatus

ID = UUID(int=7)
NOW = 1_000_000
SHOWN = Shown("C1", "m1")
FAULTS = {
    "revoked": ChatFault(Trouble.REVOKED, "token_revoked"),
    "busy": ChatFault(Trouble.BUSY, "ratelimited", 30),
    "lost": ChatFault(Trouble.BUSY, "no answer", 5, heard=False),
    "refused": ChatFault(Trouble.REFUSED, "channel_not_found"),
}


def gate_of(status: GateStatus) -> Gate:
    return Gate(ID, ID, ID, ID, ID, None, "a", status, requested_at=1, timeout_at=2, resolved_by="slack:U7")


def work_of(status: GateStatus | None, **post: Any) -> ChatWork:
    row = ChatPost(ID, ID, "C1", None, attempts=1, unsure=False, due_at=NOW, created_at=1)
    return ChatWork(replace(row, **post), None if status is None else gate_of(status))


def kept(came: Keep | Forget) -> ChatPost:
    assert isinstance(came, Keep)
    return came.post


@pytest.mark.parametrize("status", [*GateStatus, None])
@pytest.mark.parametrize("unsure", [True, False])
@pytest.mark.parametrize("message_id", ["m1", None])
def test_what_is_to_be_done_follows_from_the_message_and_the_gate(
    status: GateStatus | None, unsure: bool, message_id: str | None
) -> None:
    done = todo(work_of(status, unsure=unsure, message_id=message_id))
    if message_id is not None:
        assert done == Update("m1")
    elif status is GateStatus.PENDING or unsure:
        assert done == Post()
    else:
        assert done == Drop()


def test_what_was_posted_is_known_by_its_message_and_looked_at_again_at_once() -> None:
    post = kept(posted(work_of(GateStatus.PENDING), "C2", Shown("C3", "m9"), NOW))
    assert (post.channel_id, post.message_id, post.unsure, post.due_at) == ("C3", "m9", False, NOW)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("unsure", [True, False])
def test_a_try_that_failed_is_unsure_only_where_it_may_have_been_heard(fault: str, unsure: bool) -> None:
    post = kept(posted(work_of(GateStatus.PENDING, unsure=unsure), "C2", FAULTS[fault], NOW))
    assert (post.channel_id, post.message_id, post.unsure) == ("C2", None, unsure or fault == "lost")

    waits = {"revoked": 0, "busy": 30_000, "lost": 5_000, "refused": RETRY_FIRST_MS}
    assert post.due_at - NOW == waits[fault]


def test_what_fails_again_waits_longer_up_to_a_quarter_of_an_hour() -> None:
    waits = [
        kept(posted(work_of(GateStatus.PENDING, attempts=tries), "C1", FAULTS["refused"], NOW)).due_at - NOW
        for tries in (1, 2, 3, 4, 11, 10_000)
    ]
    assert waits == [1_000, 2_000, 4_000, 8_000, RETRY_MAX_MS, RETRY_MAX_MS]


@pytest.mark.parametrize("status", [GateStatus.DENIED, None])
def test_what_is_refused_and_needed_by_nobody_is_let_be(status: GateStatus | None) -> None:
    assert posted(work_of(status, unsure=True), "C1", FAULTS["refused"], NOW) == Forget()


@pytest.mark.parametrize(
    ("answer", "over"), [("shown", True), ("refused", True), ("busy", False), ("revoked", False)]
)
def test_a_message_is_closed_once_or_let_be_when_it_cannot_be(answer: str, over: bool) -> None:
    work = work_of(GateStatus.APPROVED, message_id="m1")
    came = updated(work, SHOWN if answer == "shown" else FAULTS[answer], NOW)
    assert isinstance(came, Forget) is over

    if not over:
        assert (kept(came).message_id, kept(came).unsure) == ("m1", False)


@pytest.mark.parametrize("status", [*GateStatus, None])
def test_only_a_pending_gate_has_buttons(status: GateStatus | None) -> None:
    notice = notice_of(None if status is None else gate_of(status))

    assert any(block["type"] == "actions" for block in notice.blocks) is (status is GateStatus.PENDING)
    assert notice.text


@pytest.mark.parametrize("fault", FAULTS)
def test_a_notice_that_was_told_is_over_and_any_other_is_told_later(fault: str) -> None:
    notice = ChatNotice(ID, ID, ID, "a", {}, attempts=1, due_at=NOW, created_at=NOW)
    later = told(notice, FAULTS[fault], NOW)
    waits = {"revoked": 0, "busy": 30_000, "lost": 5_000, "refused": RETRY_FIRST_MS}

    assert told(notice, SHOWN, NOW) is None
    assert later == replace(notice, due_at=NOW + waits[fault])


def test_a_notice_is_stale_after_a_day() -> None:
    notice = ChatNotice(ID, ID, ID, "a", {}, attempts=1, due_at=NOW, created_at=NOW)

    assert not is_stale(notice, NOW + NOTICE_TERM_MS - 1)
    assert is_stale(notice, NOW + NOTICE_TERM_MS)
