"""What must hold at every moment: each judge looks at all rows, and says which promise is broken."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final
from uuid import UUID

import orjson

from sexton_actors.plans import STARTER_CREDIT_NANOS
from sexton_storage.records.gates import GateStatus
from tests.simulation.product.judges_of_books import (
    books_agree,
    every_cent_once,
    nothing_metered_twice,
    priced_as_listed,
    tokens_as_used,
)
from tests.simulation.product.judges_of_credit import OF_CREDIT
from tests.simulation.product.judges_of_deliveries import delivered_once
from tests.simulation.product.judges_of_erasures import (
    erased_is_gone,
    erasures_go_on,
    is_erased,
    receipts_agree,
)
from tests.simulation.product.judges_of_follow_ups import (
    follow_ups_as_told,
    follow_ups_in_time,
    follow_ups_wake_once,
)
from tests.simulation.product.judges_of_gates import (
    gates_follow_their_asker,
    resolved_gates_stay,
    stopped_as_answered,
)
from tests.simulation.product.judges_of_jobs import (
    cancelled_is_over,
    each_replayed_once,
    jobs_count_what_they_did,
    jobs_end,
    jobs_keep_to_their_filter,
)
from tests.simulation.product.judges_of_leases import holders_are_served, kept_while_renewed
from tests.simulation.product.judges_of_programs import (
    handed_its_own,
    no_false_death,
    one_run_at_a_time,
)
from tests.simulation.product.judges_of_proposals import OF_PROPOSALS
from tests.simulation.product.judges_of_reports import (
    kept_as_reported,
    run_times_add_up,
    streaks_count_on,
)
from tests.simulation.product.judges_of_runs import later_is_later, one_ceiling, scored_as_decided
from tests.simulation.product.record import Judge, Record

TERM_AND_A_SECOND_MS: Final = 31_000
MINUTE_MS: Final = 60_000
EACH_MINUTE: Final = "* * * * *"
FIRING_MS: Final = 20_000
LOOK_MS: Final = 2_000
"""Each node looks once a second for what is over; the judges do as well."""


def one_live_lease(record: Record) -> Iterator[str]:
    """An agent has at most one live lease."""
    live = Counter(row.zombie_id for row in record.tables.leases.values() if row.ended_at is None)
    for agent, count in live.items():
        if count > 1:
            yield f"agent {agent} has {count}"


def fencing_grows(record: Record) -> Iterator[str]:
    """Fencing tokens of an agent grow by one with each lease, and none is used twice."""
    for agent, leases in record.leases_by_agent().items():
        tokens = [row.fencing_token for row in leases]
        if tokens != list(range(1, len(tokens) + 1)):
            yield f"agent {agent} has {tokens}"
        for before, after in pairwise(leases):
            if before.ended_at is None or after.granted_at < before.ended_at:
                yield f"lease {after.id} was granted before lease {before.id} had ended"


def no_old_token(record: Record) -> Iterator[str]:
    """What ended with a lease was written by the newest one: no event ends twice, nor changes its end."""
    reported = Counter(row.event_id for row in record.tables.leases.values() if row.status == "reported")
    for event_id, count in reported.items():
        if count > 1:
            yield f"event {event_id} was reported {count} times"
    for event in record.tables.events.values():
        if event.completed_at is not None:
            now = (event.status.value, event.response_text or "")
            before = record.ended.setdefault(event.id, now)
            if before != now and not (is_erased(event) and before[0] == now[0]):
                yield f"event {event.id} ended as {before} and is {now}"


def accepted_once(record: Record) -> Iterator[str]:
    """Every acknowledged event is there, exactly once."""
    for event_id, delivery in record.promises.accepted.items():
        if event_id not in record.tables.events:
            yield f"event {event_id} of {delivery} is gone"
    came = Counter(
        (event.zombie_id, event.source_event_id)
        for event in record.tables.events.values()
        if event.source_event_id and event.resumes_event_id is None and not is_erased(event)
    )
    for (agent, delivery), count in came.items():
        if count > 1:
            yield f"{delivery} is there {count} times for agent {agent}"
    fired = Counter(
        (event.zombie_id, event.request_json)
        for event in record.tables.events.values()
        if event.event_type == "cron" and event.resumes_event_id is None
    )
    for (agent, request), count in fired.items():
        if count > 1:
            yield f"agent {agent} was woken {count} times for {request}"


def order_of_agent(record: Record) -> Iterator[str]:
    """Events of an agent begin in the order of their arrival, but for those that a rule had stopped."""
    tables = record.tables
    stopped = {gate.event_id for gate in tables.gates.values() if gate.lease_id is None}
    for agent, leases in record.leases_by_agent().items():
        first = list(dict.fromkeys(row.event_id for row in leases))
        arrivals = [
            tables.arrivals[event_id]
            for event_id in first
            if event_id in tables.events
            and event_id not in stopped
            and tables.events[event_id].resumes_event_id is None
        ]
        if arrivals != sorted(arrivals):
            yield f"agent {agent} began {arrivals}"


def gate_once(record: Record) -> Iterator[str]:
    """A gate resolves once, and as the one who decided was told."""
    for gate in record.tables.gates.values():
        if gate.status is GateStatus.PENDING:
            continue
        before = record.resolved.setdefault(gate.id, gate.status)
        if before is not gate.status:
            yield f"gate {gate.id} was {before} and is {gate.status}"
    for gate_id, outcome in record.promises.decided.items():
        gate_now = record.tables.gates.get(gate_id)
        if gate_now is None or gate_now.status.value != outcome:
            yield f"gate {gate_id} was told to be {outcome}"
        if outcome != record.promises.asked[gate_id]:
            yield f"gate {gate_id} was to be {record.promises.asked[gate_id]} and was told to be {outcome}"


def one_gate_an_action(record: Record) -> Iterator[str]:
    """A run that asks the same again finds the gate that it has asked before."""
    asked = Counter((gate.event_id, gate.action_id) for gate in record.tables.gates.values())
    for (event_id, action), count in asked.items():
        if count > 1:
            yield f"event {event_id} has {count} gates for {action}"


def a_term_is_short(record: Record) -> Iterator[str]:
    """A live lease ends by itself within a term, and a runner holds no more leases than it has slots."""
    tables, now = record.tables, record.tables.now()
    held: Counter[UUID] = Counter()
    for lease in tables.leases.values():
        if lease.ended_at is not None:
            continue
        held[lease.runner_id] += 1
        if lease.expires_at > now + TERM_AND_A_SECOND_MS:
            yield f"lease {lease.id} is granted for {lease.expires_at - now} ms"
    for runner_id, count in held.items():
        if count > tables.runners[runner_id].slots:
            yield f"runner {runner_id} holds {count} leases"


def stream_without_gap(record: Record) -> Iterator[str]:
    """A stream has no gap and no repeat, and tells each end once."""
    ends: Counter[UUID] = Counter()
    for agent, frames in record.tables.frames.items():
        numbers = [frame.seq for frame in frames]
        if numbers != list(range(1, len(numbers) + 1)):
            yield f"agent {agent} has {numbers}"
        ends.update(frame.event_id for frame in frames if frame.kind == "event_complete" and frame.event_id)
    for event in record.tables.events.values():
        if ends[event.id] != (event.completed_at is not None):
            yield f"the end of event {event.id} is told {ends[event.id]} times"


def tenants_apart(record: Record) -> Iterator[str]:
    """No tenant is shown or charged what is another one's."""
    yield from record.promises.strangers_saw
    tables = record.tables
    for lease in tables.leases.values():
        agent = tables.zombies.get(lease.zombie_id)
        if agent is not None and agent.tenant_id != lease.tenant_id:
            yield f"lease {lease.id} is of tenant {lease.tenant_id}, its agent of {agent.tenant_id}"
    own = {agent.tenant_id for agent in tables.zombies.values()}
    for tenant in tables.tenants.values():
        if tenant.id not in own and tenant.balance_nanos != STARTER_CREDIT_NANOS:
            yield f"tenant {tenant.id} has no agent, and {tenant.balance_nanos} left"


def followed_without_gap(record: Record) -> Iterator[str]:
    """Who follows a stream, and comes back when it breaks off, is sent each frame once and in order."""
    heard = record.promises.followed
    if heard != list(range(1, len(heard) + 1)):
        place = next(place for place, number in enumerate(heard) if number != place + 1)
        yield f"{heard[max(0, place - 2) : place + 3]} from frame {place}"


JUDGES: Final[Sequence[Judge]] = (
    one_live_lease,
    fencing_grows,
    no_old_token,
    accepted_once,
    order_of_agent,
    every_cent_once,
    gate_once,
    one_gate_an_action,
    a_term_is_short,
    stream_without_gap,
    books_agree,
    nothing_metered_twice,
    tokens_as_used,
    priced_as_listed,
    delivered_once,
    stopped_as_answered,
    tenants_apart,
    followed_without_gap,
    one_run_at_a_time,
    no_false_death,
    handed_its_own,
    each_replayed_once,
    jobs_keep_to_their_filter,
    jobs_count_what_they_did,
    erased_is_gone,
    receipts_agree,
    later_is_later,
    one_ceiling,
    scored_as_decided,
    kept_as_reported,
    run_times_add_up,
    streaks_count_on,
    *OF_CREDIT,
    holders_are_served,
    resolved_gates_stay,
    gates_follow_their_asker,
    follow_ups_wake_once,
    follow_ups_as_told,
    *OF_PROPOSALS,
)


def nothing_overdue(record: Record) -> Iterator[str]:
    """Once faults have healed, leases and gates end when their time is over."""
    now = record.tables.now()
    for gate in record.tables.gates.values():
        if (
            gate.status is GateStatus.PENDING
            and gate.timeout_at + TERM_AND_A_SECOND_MS + record.late_ms < now
        ):
            yield f"gate {gate.id} is over since {now - gate.timeout_at} ms"
    for lease in record.tables.leases.values():
        if lease.ended_at is None and lease.expires_at + 1_000 < now - LOOK_MS - record.late_ms:
            yield f"lease {lease.id} is over since {now - lease.expires_at} ms"


def nothing_forgotten(record: Record) -> Iterator[str]:
    """Once faults have healed, an agent with an event that is due has a lease within a term and a second."""
    tables, now = record.tables, record.tables.now()
    leased = {row.zombie_id for row in tables.leases.values() if row.ended_at is None}
    for event_id, gate_id in tables.waits_at.items():
        gate = tables.gates.get(gate_id)
        if gate is not None and gate.status is not GateStatus.PENDING:
            yield f"event {event_id} waits at gate {gate_id}, which is {gate.status}"
    for agent, waiting in tables.waiting.items():
        if agent in leased or agent in record.resting or not waiting - tables.waits_at.keys():
            record.idle_since.pop(agent, None)
        elif record.idle_since.setdefault(agent, now) + TERM_AND_A_SECOND_MS + record.late_ms < now:
            yield f"agent {agent} has {len(waiting)} events, and no lease since {record.idle_since[agent]}"


def fires_in_time(record: Record) -> Iterator[str]:
    """Once faults have healed, a schedule of each minute has woken its agent within 20 seconds."""
    tables = record.tables
    minute = (tables.now() - FIRING_MS) // MINUTE_MS * MINUTE_MS
    for agent, schedule, _ in tables.crons:
        if schedule != EACH_MINUTE:
            continue  # At the slow pace, where a judge of its own counts what came.
        times = [
            orjson.loads(event.request_json)["scheduled_at"]
            for event in tables.events.values()
            if event.zombie_id == agent and event.event_type == "cron"
        ]
        if minute not in times:
            yield f"agent {agent} was not woken at {minute} by {schedule}"


HEALED: Final[Sequence[Judge]] = (
    nothing_overdue,
    nothing_forgotten,
    fires_in_time,
    jobs_end,
    cancelled_is_over,
    erasures_go_on,
    kept_while_renewed,
    follow_ups_in_time,
)
"""Those that ask whether all goes on; a while after the last fault."""
