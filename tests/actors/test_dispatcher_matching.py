"""Every offer is answered once, no lease is lost, and nobody waits beside work that he could have."""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec.structs import replace

from sexton_actors.dispatcher.index import admits, need_of
from sexton_actors.dispatcher.matching import OFFERS_PER_RUNNER, Matching
from sexton_actors.manifest.model import Manifest
from sexton_actors.protocol.dispatcher import ClaimSettled, Offer
from sexton_actors.protocol.queue import ClaimOutcome, Grant
from sexton_actors.protocol.runner import Leases
from sexton_actors.refusal import Refusal
from sexton_engine import ReplyPort
from sexton_storage.records.events import Event, EventStatus, ReadyAgent
from sexton_storage.records.leases import Lease, LeaseStatus, Rates
from sexton_storage.scopes import PLATFORM, Scope, is_within
from sexton_storage.writes import Exhausted, NothingToClaim
from tests.thorough import examples

IT = UUID(int=1)
RUNNERS = [UUID(int=n) for n in (101, 102, 103)]
TALENTS = [(frozenset[str](), False), (frozenset({"gpu"}), False), (frozenset({"gpu"}), True)]
SCOPES = [PLATFORM, Scope(IT), Scope(IT, UUID(int=2)), Scope(UUID(int=2))]
REFUSAL = Refusal("UZ-RUN-009", "revoked")


class Port(ReplyPort):
    """Somebody who waits, until he is answered or goes away."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[Leases | Refusal] = []
        self.gone = False

    @property
    def is_expired(self) -> bool:
        return self.gone or bool(self.answers)

    def set(self, value: Any) -> bool:
        if self.is_expired:
            return False
        self.answers.append(value)
        return True


@dataclass
class FakeDesk:
    claims: list[tuple[UUID, UUID, int]] = field(default_factory=list)
    returned: list[Grant] = field(default_factory=list)
    reminders: dict[int, float] = field(default_factory=dict)
    expected: set[int] = field(default_factory=set)
    prepared: list[UUID] = field(default_factory=list)

    def claim(self, zombie_id: UUID, runner_id: UUID, offer_id: int) -> None:
        self.claims.append((zombie_id, runner_id, offer_id))

    def prepare(self, zombie_id: UUID) -> None:
        self.prepared.append(zombie_id)

    def give_back(self, grant: Grant) -> None:
        self.returned.append(grant)

    def remind(self, offer_id: int, after_s: float) -> None:
        self.reminders[offer_id] = after_s

    def forget(self, offer_id: int) -> None:
        self.reminders.pop(offer_id, None)
        self.expected.discard(offer_id)

    def expect(self, offer_id: int, within_s: float) -> None:
        self.expected.add(offer_id)

    def rest(self, for_s: float) -> None:
        pass


def agent(number: int, tags: tuple[str, ...], home: UUID | None, *, unsandboxed: bool) -> ReadyAgent:
    owners = UUID(int=number % 4), UUID(int=1 + number % 2)
    return ReadyAgent(UUID(int=number), *owners, tags, unsandboxed, number, home)


def grant_of(zombie_id: UUID, runner_id: UUID, serial: int) -> Grant:
    event = Event(IT, zombie_id, IT, IT, "a", "t", EventStatus.RUNNING, "{}", 0, 0)
    lease = Lease(
        id=UUID(int=serial),
        event_id=IT,
        zombie_id=zombie_id,
        workspace_id=IT,
        tenant_id=IT,
        runner_id=runner_id,
        fencing_token=serial,
        attempt=1,
        status=LeaseStatus.ACTIVE,
        version=1,
        granted_at=0,
        expires_at=1,
        ceiling_at=1,
        metered_at=0,
        rates=Rates(1),
    )
    return Grant(event, lease, manifest=Manifest("n", "d", "0.1.0", "", ()))


class MatchingKeepsItsWord(RuleBasedStateMachine):
    """Any order of news, among them late, doubled and missing ones."""

    def __init__(self) -> None:
        super().__init__()
        self.desk = FakeDesk()
        self.matching = Matching(self.desk)
        self.ports: list[Port] = []
        self.granted: list[Grant] = []
        self.owners: dict[UUID, ReadyAgent] = {}
        self.told: list[tuple[UUID, UUID, int]] = []

    @rule(
        number=st.integers(1, 8),
        tags=st.sampled_from([(), ("gpu",)]),
        home=st.none() | st.sampled_from(RUNNERS),
        unsandboxed=st.booleans(),
        by_database=st.booleans(),
    )
    def ready(
        self,
        number: int,
        tags: tuple[str, ...],
        home: UUID | None,
        unsandboxed: bool,
        by_database: bool,
    ) -> None:
        found = agent(number, tags, home, unsandboxed=unsandboxed)
        self.owners[found.zombie_id] = found
        (self.matching.found if by_database else self.matching.add)(found)

    @rule(number=st.integers(1, 8))
    def not_ready(self, number: int) -> None:
        self.matching.remove(UUID(int=number))

    @rule(
        runner=st.sampled_from(RUNNERS),
        talent=st.sampled_from(TALENTS),
        most=st.integers(1, 3),
        wait_s=st.sampled_from([0.0, 30.0]),
        scope=st.sampled_from(SCOPES),
    )
    def poll(
        self, runner: UUID, talent: tuple[frozenset[str], bool], most: int, wait_s: float, scope: Scope
    ) -> None:
        port = Port()
        self.ports.append(port)
        self.matching.open(Offer(runner, *talent, most, wait_s, port, scope))

    @rule(data=st.data())
    def settle(self, data: st.DataObject) -> None:
        waiting = self.desk.claims[:]
        if not waiting:
            return
        claim = data.draw(st.sampled_from(waiting))
        self.desk.claims.remove(claim)
        self.told.append(claim)
        self.answer(claim, data.draw(st.sampled_from(["grant", "nothing", "exhausted"])))

    @rule(data=st.data())
    def settle_again(self, data: st.DataObject) -> None:
        """A queue that crashed in between claims a second time, and says so."""
        if self.told:
            self.answer(data.draw(st.sampled_from(self.told)), "grant")

    def answer(self, claim: tuple[UUID, UUID, int], what: str) -> None:
        zombie_id, runner_id, offer_id = claim
        outcome: ClaimOutcome = NothingToClaim("empty")
        if what == "exhausted":
            outcome = Exhausted(IT)
        elif what == "grant":
            outcome = grant_of(zombie_id, runner_id, 1000 + len(self.granted))
            self.granted.append(outcome)
        self.matching.settled(ClaimSettled(offer_id, zombie_id, outcome))

    @rule(data=st.data())
    def time_passes_for_an_offer(self, data: st.DataObject) -> None:
        if self.desk.reminders:
            self.matching.over(data.draw(st.sampled_from(sorted(self.desk.reminders))))

    @rule(data=st.data())
    def queues_do_not_answer(self, data: st.DataObject) -> None:
        if self.desk.expected:
            self.matching.overdue(data.draw(st.sampled_from(sorted(self.desk.expected))))

    @rule()
    def rested(self) -> None:
        self.matching.rested()

    @rule(data=st.data())
    def connection_breaks(self, data: st.DataObject) -> None:
        if self.ports:
            data.draw(st.sampled_from(self.ports)).gone = True

    @rule(runner=st.sampled_from(RUNNERS), refusal=st.sampled_from([None, REFUSAL]))
    def withdraw(self, runner: UUID, refusal: Refusal | None) -> None:
        self.matching.withdraw(runner, refusal)
        assert self.matching.offers.of_runner(runner) == ()

    @rule(runner=st.sampled_from(RUNNERS))
    def tell_cancelled(self, runner: UUID) -> None:
        self.matching.tell_cancelled(runner, (IT,))

    @invariant()
    def every_grant_is_in_one_place(self) -> None:
        delivered = [g for p in self.ports for a in p.answers if isinstance(a, Leases) for g in a.grants]
        kept = [g for entry in self.matching.offers._open.values() for g in entry.grants]
        places = [g.lease.id for g in (*delivered, *self.desk.returned, *kept)]
        assert sorted(places) == sorted(g.lease.id for g in self.granted)

    @invariant()
    def every_offer_is_answered_once_or_open(self) -> None:
        assert all(len(port.answers) <= 1 for port in self.ports)
        unanswered = sum(not port.is_expired for port in self.ports)
        assert unanswered <= len(self.matching.offers)
        assert set(self.desk.reminders) == set(self.matching.offers._open), "each open offer has its time"

    @invariant()
    def nobody_is_given_more_than_he_asked_for(self) -> None:
        for entry in self.matching.offers._open.values():
            assert len(entry.grants) + len(entry.claiming) <= entry.offer.max_leases

    @invariant()
    def nobody_waits_beside_work_that_he_could_have(self) -> None:
        waiting = [
            line_entry.offer
            for by_talent in self.matching.offers._in_line.values()
            for line in by_talent.values()
            for line_entry in line.values()
            if not line_entry.offer.reply.is_expired
        ]
        for waiting_class in self.matching.ready._classes.values():
            for line in waiting_class.lines.values():
                for idle in line.agents.values():
                    need = need_of(idle)
                    assert not any(
                        admits(o.labels, need, unsandboxed=o.unsandboxed)
                        and is_within(o.scope, idle.tenant_id, idle.workspace_id)
                        for o in waiting
                    )

    @invariant()
    def nobody_claims_what_is_not_his(self) -> None:
        for zombie_id, _, offer_id in self.desk.claims:
            if (entry := self.matching.offers.get(offer_id)) is not None:
                owner = self.owners[zombie_id]
                assert is_within(entry.offer.scope, owner.tenant_id, owner.workspace_id)


TestMatchingKeepsItsWord = MatchingKeepsItsWord.TestCase
TestMatchingKeepsItsWord.settings = settings(
    max_examples=examples(120), stateful_step_count=40, deadline=None
)


def offer(runner: UUID, port: Port, wait_s: float = 30) -> Offer:
    return Offer(runner, frozenset(), unsandboxed=False, max_leases=1, wait_s=wait_s, reply=port)


def test_a_runner_that_polls_and_polls_has_its_oldest_offer_answered() -> None:
    matching, ports = Matching(FakeDesk()), [Port() for _ in range(OFFERS_PER_RUNNER + 1)]
    for port in ports:
        matching.open(offer(RUNNERS[0], port))

    assert ports[0].answers == [Leases((), 0)]
    assert not any(port.answers for port in ports[1:])


def test_an_agent_whose_queue_does_not_answer_holds_up_nobody_and_rests() -> None:
    desk = FakeDesk()
    matching, port = Matching(desk), Port()
    silent, other = agent(1, (), None, unsandboxed=False), agent(2, (), None, unsandboxed=False)
    matching.add(silent)
    matching.open(offer(RUNNERS[0], port))
    ((_, _, offer_id),) = desk.claims
    matching.overdue(offer_id)
    matching.found(silent)
    assert len(desk.claims) == 1, "it is left alone"

    matching.found(other)
    assert desk.claims[1][0] == other.zombie_id

    late = grant_of(silent.zombie_id, RUNNERS[0], 7)
    matching.settled(ClaimSettled(offer_id, silent.zombie_id, late))
    assert desk.returned == [late], "there is no room for it any more"

    matching.rested()
    matching.found(silent)
    assert silent.zombie_id in matching.ready


def test_an_agent_that_comes_late_is_still_welcome() -> None:
    desk, port = FakeDesk(), Port()
    matching = Matching(desk)
    matching.add(agent(1, (), None, unsandboxed=False))
    matching.open(offer(RUNNERS[0], port))
    ((zombie_id, _, offer_id),) = desk.claims
    matching.overdue(offer_id)
    late = grant_of(zombie_id, RUNNERS[0], 7)
    matching.settled(ClaimSettled(offer_id, zombie_id, late))

    assert port.answers == [Leases((late,), 0)]


def test_the_database_is_not_believed_about_an_agent_that_is_being_claimed() -> None:
    desk = FakeDesk()
    matching = Matching(desk)
    busy = agent(1, (), None, unsandboxed=False)
    matching.add(busy)
    matching.open(offer(RUNNERS[0], Port()))
    matching.open(offer(RUNNERS[1], Port()))
    matching.found(replace(busy, oldest_event_at=9))

    assert len(desk.claims) == 1


def test_the_next_in_line_is_prepared_once_and_taken_next() -> None:
    desk = FakeDesk()
    matching = Matching(desk)
    for number in (4, 8, 12):
        matching.found(agent(number, (), None, unsandboxed=False))
    for _ in range(3):
        matching.open(offer(RUNNERS[0], Port()))
    claimed = [zombie_id for zombie_id, _, _ in desk.claims]

    assert len(claimed) == 3
    assert desk.prepared == claimed[1:]
