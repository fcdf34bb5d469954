"""The mailbox as a data structure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import pytest
import trio
from hypothesis import given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sexton_engine import Lane, MailboxSpec, WhenFull
from sexton_engine.mail.mailbox import SYSTEM_LANE_CAPACITY, Envelope, Mailbox
from sexton_engine.mail.reply import AdmissionPort, NobodyPort, ReplyPort
from tests.thorough import examples


class Asker(ReplyPort):
    """A port whose asker can be made to go away."""

    def __init__(self) -> None:
        super().__init__()
        self.gone = False

    @property
    def is_expired(self) -> bool:
        return self.gone


def envelope(
    message: object, lane: Lane = Lane.USER, port: ReplyPort | None = None, at: float = 0.0
) -> Envelope:
    return Envelope(message, port, at, lane)


def test_a_mailbox_holds_at_least_one_message() -> None:
    with pytest.raises(ValueError, match="at least one"):
        MailboxSpec(capacity=0)


def test_a_mailbox_tells_how_full_it_is() -> None:
    mailbox = Mailbox(MailboxSpec(capacity=4))
    for number in range(3):
        mailbox.offer(envelope(number), may_wait=False)
    mailbox.take()

    assert repr(mailbox) == "<Mailbox 2/4, peak 3>"


def test_the_lanes_above_the_users_are_bounded_too() -> None:
    mailbox = Mailbox(MailboxSpec(capacity=1, when_full=WhenFull.DROP_OLDEST))
    for number in range(SYSTEM_LANE_CAPACITY):
        assert mailbox.offer(envelope(number, Lane.CONTROL), may_wait=True) is None
    one_more = envelope("one more", Lane.CONTROL)

    assert mailbox.offer(one_more, may_wait=True) is one_more


def test_an_empty_mailbox_gives_its_memory_back() -> None:
    mailbox = Mailbox(MailboxSpec())
    for lane in Lane:
        mailbox.offer(envelope(lane, lane), may_wait=False)
    while mailbox.take() is not None:
        pass
    mailbox.rest()

    assert (mailbox._control, mailbox._supervision, mailbox._user, mailbox.waiting) == (
        None,
        None,
        None,
        None,
    )


def test_the_age_is_that_of_the_oldest_message() -> None:
    mailbox = Mailbox(MailboxSpec())
    assert mailbox.oldest_at() is None

    mailbox.offer(envelope("new", Lane.CONTROL, at=7), may_wait=False)
    mailbox.offer(envelope("old", at=3), may_wait=False)
    assert mailbox.oldest_at() == 3


async def test_an_admission_port_wakes_the_sender_once() -> None:
    port = AdmissionPort(trio.lowlevel.current_task())
    assert not port.is_expired

    async with trio.open_nursery() as nursery:

        async def admit() -> None:
            await trio.lowlevel.checkpoint()
            assert port.set(None)
            assert not port.set(None)

        nursery.start_soon(admit)
        await port.wait()
    assert port.is_expired


def test_a_port_that_nobody_waits_at_takes_everything() -> None:
    port = NobodyPort()

    assert port.is_expired
    assert not port.set(1)
    assert not port.set_exception(ValueError())


@dataclass
class Model:
    """The same in plain lists."""

    capacity: int
    when_full: WhenFull
    lanes: dict[Lane, deque[Envelope]] = field(default_factory=lambda: {lane: deque() for lane in Lane})
    waiting: deque[Envelope] = field(default_factory=deque)


class MailboxMachine(RuleBasedStateMachine):
    """Whatever is done to a mailbox: nothing is lost, doubled or out of order, and never is it too much."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = 0
        self.gone: list[Envelope] = []
        self.taken: list[Envelope] = []
        self.all: list[Envelope] = []
        self.asker: dict[int, Asker] = {}
        self.make(4, WhenFull.REFUSE)

    def make(self, capacity: int, when_full: WhenFull) -> None:
        self.model = Model(capacity, when_full)
        self.mailbox = Mailbox(MailboxSpec(capacity, when_full))

    @precondition(lambda self: not self.all)
    @rule(capacity=st.integers(1, 5), when_full=st.sampled_from(WhenFull))
    def choose(self, capacity: int, when_full: WhenFull) -> None:
        self.make(capacity, when_full)

    @rule(lane=st.sampled_from([Lane.USER, Lane.USER, Lane.USER, *Lane]), may_wait=st.booleans())
    def offer(self, lane: Lane, may_wait: bool) -> None:
        self.sent += 1
        port = Asker()
        new = envelope(self.sent, lane, port)
        self.asker[self.sent] = port
        self.all.append(new)
        gone = self.mailbox.offer(new, may_wait=may_wait)
        model = self.model
        if lane is not Lane.USER or (len(model.lanes[lane]) < model.capacity and not model.waiting):
            model.lanes[lane].append(new)
            assert gone is None
        elif model.when_full is WhenFull.DROP_OLDEST:
            model.lanes[lane].append(new)
            assert gone is model.lanes[lane].popleft()
            self.gone.append(gone)
        elif model.when_full is WhenFull.WAIT and may_wait:
            model.waiting.append(new)
            assert gone is None
        else:
            assert gone is new
            self.gone.append(new)

    @rule()
    def take(self) -> None:
        expected = next((lane.popleft() for lane in self.model.lanes.values() if lane), None)
        taken = self.mailbox.take()
        assert taken is expected
        if taken is not None:
            self.taken.append(taken)
        self.admit()

    def admit(self) -> None:
        """What the engine does after each message it takes."""
        while (admitted := self.mailbox.admit()) is not None:
            while self.model.waiting[0].port is not None and self.model.waiting[0].port.is_expired:
                self.gone.append(self.model.waiting.popleft())
            assert admitted is self.model.waiting.popleft()
            self.model.lanes[Lane.USER].append(admitted)
        if len(self.model.lanes[Lane.USER]) < self.model.capacity:
            self.gone.extend(self.model.waiting)  # all of them had gone away
            self.model.waiting.clear()

    @precondition(lambda self: self.taken)
    @rule()
    def put_back(self) -> None:
        last = self.taken.pop()
        self.mailbox.put_back(last)
        self.model.lanes[last.lane].appendleft(last)

    @precondition(lambda self: self.model.waiting)
    @rule(data=st.data())
    def go_away(self, data: st.DataObject) -> None:
        leaver = data.draw(st.sampled_from(sorted(item.message for item in self.model.waiting)))
        self.asker[leaver].gone = True

    @precondition(lambda self: self.all)
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(self.all))
        was_waiting = one in self.model.waiting
        assert self.mailbox.withdraw(one) is was_waiting
        if was_waiting:
            self.model.waiting.remove(one)
            self.gone.append(one)

    @rule()
    def drain(self) -> None:
        drained = self.mailbox.drain()
        model = self.model
        assert drained == [*(item for lane in model.lanes.values() for item in lane), *model.waiting]
        self.taken.extend(drained)
        for lane in model.lanes.values():
            lane.clear()
        model.waiting.clear()

    @rule()
    def rest(self) -> None:
        self.mailbox.rest()

    @invariant()
    def each_message_is_in_exactly_one_place(self) -> None:
        inside = [item for lane in self.model.lanes.values() for item in lane]
        placed = [*inside, *self.model.waiting, *self.taken, *self.gone]
        assert sorted(item.message for item in placed) == [item.message for item in self.all]
        assert len(self.mailbox) == len(inside)
        assert len(self.mailbox.waiting or ()) == len(self.model.waiting)

    @invariant()
    def what_waits_in_a_lane_is_in_order_of_arrival(self) -> None:
        for lane in self.model.lanes.values():
            assert [item.message for item in lane] == sorted(item.message for item in lane)


MailboxMachine.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
TestMailboxUnderAnySequenceOfSteps = MailboxMachine.TestCase


@given(st.lists(st.sampled_from(Lane), max_size=60))
@settings(max_examples=examples(60), deadline=None)
def test_lanes_come_in_order_and_each_keeps_its_own(lanes: list[Lane]) -> None:
    mailbox = Mailbox(MailboxSpec(capacity=100))
    for number, lane in enumerate(lanes):
        mailbox.offer(envelope(number, lane), may_wait=False)
    taken: list[tuple[Lane, int]] = []
    while (item := mailbox.take()) is not None:
        taken.append((item.lane, item.message))

    assert taken == sorted(taken)
    assert len(taken) == len(lanes)
