"""Says why one event waits, what to do about it, and when it may start."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final
from uuid import UUID

import msgspec

from sexton_actors.loans import withheld
from sexton_actors.manifest.model import Manifest
from sexton_storage.decisions.claim import over_period
from sexton_storage.decisions.rows import Spent
from sexton_storage.offers import nearest_unmet, unmet
from sexton_storage.periods import DAY_MS, day_of, month_of
from sexton_storage.records.events import EventStatus
from sexton_storage.records.insights import EventSituation, RunnerState
from sexton_storage.records.runners import AdminState
from sexton_storage.records.zombies import ZombieStatus
from sexton_storage.rules import waits_for_credit
from sexton_storage.terms import ONLINE_MS

UNSANDBOXED: Final = "none"
"""The sandbox tier of a runner without one."""
ENOUGH_STARTS: Final = 3
"""With fewer of them in the time that is looked back at, no start is foretold."""


class WaitKind(StrEnum):
    """What an event waits for."""

    APPROVAL = "approval"
    """A person has to decide at a gate."""
    AGENT = "agent"
    """The event's agent is paused or stopped."""
    WORKSPACE = "workspace"
    """The workspace is paused."""
    BALANCE = "balance"
    """The tenant's credit is used up."""
    GRANT = "grant"
    """Credentials that the agent's files name have to be granted first."""
    BUDGET = "budget"
    """The agent has spent what it may in the day or month."""
    MODELS = "models"
    """Every model was busy: it is tried again at a time."""
    EARLIER_EVENT = "earlier_event"
    """Another event of the agent comes first; they run one at a time, in order."""
    NO_RUNNER = "no_runner"
    """No runner is enrolled that the agent may have."""
    NEEDS = "needs"
    """No runner has all labels and offers that the agent needs."""
    RUNNERS_AWAY = "runners_away"
    """Runners that have them are enrolled; none of them takes work."""
    SLOT = "slot"
    """All runners that could take it are busy."""
    TURN = "turn"
    """A runner has room: it is about to be given out."""


class Reason(msgspec.Struct, frozen=True, gc=False):
    kind: WaitKind
    says: str
    """One sentence."""
    advice: str
    """What somebody can do about it."""
    until: int | None = None
    """When it passes by itself, at the latest; None: not by itself, or nobody knows when."""
    event_id: UUID | None = None
    """The event that comes first."""
    gate_id: UUID | None = None
    names: tuple[str, ...] = ()
    """Needs that no runner meets, or credentials that are not granted."""


class Outlook(msgspec.Struct, frozen=True):
    """Why an event waits; no reasons: it does not."""

    reasons: tuple[Reason, ...] = ()
    place_of_agent: int | None = None
    """Among the waiting events of its agent, from 1; None: it is not in the queue."""
    place: int | None = None
    """Among the older events of all agents that need the same of a runner and may run, from 1.

    Workspaces take turns, so it may come sooner.
    """
    expected_start_at: int | None = None
    """From how often the runners that could take it took an event lately; None: not known."""


def outlook(now: EventSituation, manifest: Manifest) -> Outlook:
    """Give all that keeps an event from running, the most lasting first, and its place in the queue."""
    event = now.event
    if event.status not in {EventStatus.RECEIVED, EventStatus.WAITING_APPROVAL} and not waits_for_credit(
        event
    ):
        # One that runs may wait for an answer to a call that it has made.
        return Outlook(tuple(_gates(now)) if event.status is EventStatus.RUNNING else ())
    held = (*_gates(now), *_standing(now), *_money(now, manifest))
    if event.status is not EventStatus.RECEIVED:
        return Outlook(held)
    fitting = [runner for runner in now.runners if _fits(runner, now)]
    before = tuple(_before(now))
    runners = (_runner(now, fitting),)
    reasons = (*held, *before, *(runners if _matters(runners[0], (*held, *before)) else ()))
    return Outlook(
        reasons,
        place_of_agent=now.ahead_of_agent + 1,
        place=now.ahead + 1,
        expected_start_at=None if held or before else expected_start(now, fitting),
    )


def _matters(runner: Reason, others: Sequence[Reason]) -> bool:
    """Whether a person should hear of the runners too: always of what would hold the event in the end."""
    return not others or runner.kind in {WaitKind.NO_RUNNER, WaitKind.NEEDS, WaitKind.RUNNERS_AWAY}


def _gates(now: EventSituation) -> Iterator[Reason]:
    for gate in now.gates:
        what = f"{gate.tool_name} {gate.action_name}".strip() or gate.action_id
        yield Reason(
            WaitKind.APPROVAL,
            f"Waits for a person to approve or deny {what}.",
            "Approve or deny it; without an answer it times out.",
            until=gate.timeout_at,
            gate_id=gate.id,
        )


def _standing(now: EventSituation) -> Iterator[Reason]:
    if now.agent.status is not ZombieStatus.ACTIVE:
        yield Reason(
            WaitKind.AGENT,
            f"Its agent {now.agent.name} is {now.agent.status}.",
            "Set the agent's status to active.",
        )
    if now.workspace_paused:
        yield Reason(WaitKind.WORKSPACE, "Its workspace is paused.", "Let the workspace go on.")


def _money(now: EventSituation, manifest: Manifest) -> Iterator[Reason]:
    if not now.has_credit:
        yield Reason(WaitKind.BALANCE, "The tenant's balance is used up.", "Add credit: it goes on at once.")
    if names := withheld(now.agent.lending, manifest):
        yield Reason(
            WaitKind.GRANT,
            f"Its agent has not been granted {', '.join(names)}.",
            "An operator has to grant it.",
            names=names,
        )
    spent = Spent(now.spent_day, now.spent_month)
    if period := over_period(spent, manifest.budget_daily_nanos, manifest.budget_monthly_nanos):
        yield Reason(
            WaitKind.BUDGET,
            f"Its agent has spent its budget for this {period} (UTC).",
            f"Raise the budget in the agent's files, or wait for the next {period}.",
            until=next_period(now.at, period),
        )


def next_period(at: int, period: str) -> int:
    """When the next UTC day or month begins, in ms.

    >>> next_period(5, "day") == DAY_MS, next_period(5, "month") == 31 * DAY_MS
    (True, True)
    """
    day = day_of(at)
    return (day + 1 if period == "day" else month_of(day).end_day) * DAY_MS


def _before(now: EventSituation) -> Iterator[Reason]:
    if now.running is not None:
        yield Reason(
            WaitKind.EARLIER_EVENT,
            "Another event of its agent runs: an agent's events run one at a time.",
            "Wait for its end, or cancel it.",
            event_id=now.running.event_id,
        )
    elif now.first_of_agent not in {None, now.event.id}:
        yield Reason(
            WaitKind.EARLIER_EVENT,
            f"{_counted(now.ahead_of_agent, 'earlier event')} of its agent"
            f" {'waits' if now.ahead_of_agent == 1 else 'wait'}: an agent's events run in order.",
            "See what the first of them waits for, or cancel it.",
            event_id=now.first_of_agent,
        )
    if now.first_retry_at is not None and now.first_retry_at > now.at:
        mine = now.first_of_agent == now.event.id
        yield Reason(
            WaitKind.MODELS,
            f"Every model was busy when {'it' if mine else 'the event before it'} ran; it is tried again.",
            "Wait, or add another model to the agent's files.",
            until=now.first_retry_at,
            event_id=None if mine else now.first_of_agent,
        )


def _fits(runner: RunnerState, now: EventSituation) -> bool:
    """Whether it could take the event, were it there and free."""
    needs = tuple(sorted(now.agent.required_tags))
    may_run = now.agent.allows_unsandboxed or runner.sandbox_tier != UNSANDBOXED
    return may_run and not unmet(frozenset(runner.abilities), needs)


def _is_there(runner: RunnerState, at: int) -> bool:
    return runner.admin_state is AdminState.ACTIVE and (runner.last_seen_at or 0) >= at - ONLINE_MS


def _runner(now: EventSituation, fitting: Sequence[RunnerState]) -> Reason:
    if not now.runners:
        return Reason(WaitKind.NO_RUNNER, "No runner is enrolled that its agent may have.", "Enrol a runner.")
    if not fitting:
        needs = tuple(sorted(now.agent.required_tags))
        missing = nearest_unmet((frozenset(r.abilities) for r in now.runners), needs) or ("a sandbox",)
        return Reason(
            WaitKind.NEEDS,
            f"No runner has {', '.join(missing)} ({len(now.runners)} enrolled).",
            "Enrol a runner that has it, or change what the agent asks for.",
            names=missing,
        )
    there = [runner for runner in fitting if _is_there(runner, now.at)]
    if not there:
        return Reason(
            WaitKind.RUNNERS_AWAY,
            f"{_counted(len(fitting), 'runner')} could take it; none is online and takes work.",
            "Start one of them, or let one that is cordoned or draining take work again.",
        )
    if all(runner.held >= runner.slots for runner in there):
        slots = sum(runner.slots for runner in there)
        return Reason(
            WaitKind.SLOT,
            f"All {_counted(slots, 'slot')} of {_counted(len(there), 'runner')} that could take it"
            f" {'is' if slots == 1 else 'are'} taken.",
            "Wait, or add a runner or slots.",
        )
    return Reason(
        WaitKind.TURN, "A runner that could take it has room.", "Nothing: it is given out in a moment."
    )


def expected_start(now: EventSituation, fitting: Sequence[RunnerState]) -> int | None:
    """When it starts if events go on being taken as often as of late; None where too few were."""
    there = [runner for runner in fitting if _is_there(runner, now.at)]
    if sum(runner.starts for runner in there) < ENOUGH_STARTS:
        return None
    rate = sum(runner.starts / max(1, now.at - runner.starts_since) for runner in there)
    return now.at + round((now.ahead + 1) / rate)


def _counted(count: int, what: str) -> str:
    """Write a number and its noun.

    >>> _counted(1, "runner"), _counted(0, "slot")
    ('1 runner', '0 slots')
    """
    return f"{count} {what}{'' if count == 1 else 's'}"
