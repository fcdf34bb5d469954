"""The page of money: the balance, where it went by agent, model and day, and credit."""

from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec

from sexton_actors.amounts import NANOS_PER_DOLLAR
from sexton_http.answers import Answer, Problem
from sexton_http.bodies.shapes import MAX_NUMBER, Body
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery
from sexton_http.pages.console import (
    Notice,
    console_form,
    console_operation,
    older_of,
    query_of,
    see_page,
    show_page,
)
from sexton_http.pages.form_actions import FormDecoder, act, may
from sexton_http.pages.side_by_side import Asked, side_by_side
from sexton_http.pages.templates.frame import Frame
from sexton_http.routes.billing import (
    Balance,
    ChargePage,
    ChargeQuery,
    ChargeTotals,
    NewCredit,
    TotalQuery,
    credit_tenant,
    get_balance,
    list_charges,
    total_charges,
)
from sexton_http.routes.shared.agent_views import ZombieRecord, is_over
from sexton_http.routes.shared.told_acts import act_told
from sexton_http.routes.zombies import get_zombie
from sexton_storage.periods import DAY_MS, day_of
from sexton_storage.records.charges import TotalsBy

HERE: Final = "money"
TITLE: Final = "Money"
DAYS: Final = 31
DEAREST: Final = 10
"""Agents and models that are shown, the dearest first."""
MOST_CREDIT: Final = Decimal(MAX_NUMBER) / NANOS_PER_DOLLAR


class CreditForm(Body):
    """What the form sends that gives credit."""

    dollars: Annotated[str, msgspec.Meta(max_length=32)]
    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=512)]


_CREDIT: Final = FormDecoder(CreditForm)


async def _page(call: Call[Any, Any], frame: Frame, notice: Notice | None = None) -> Answer:
    who, now = frame.signed_in, call.ctx.world.now_ms()
    since = (day_of(now) - DAYS + 1) * DAY_MS
    asked: dict[str, Asked[ChargeTotals]] = {}
    async with side_by_side() as ask:
        for by in TotalsBy:
            wanted = TotalQuery(by=by, since=since, limit=DAYS if by is TotalsBy.DAY else DEAREST)
            asked[by.value] = ask(act, call, who, total_charges, query=wanted)
        balance: Asked[Balance] = ask(act, call, who, get_balance)
        charges: Asked[ChargePage] = ask(act, call, who, list_charges, query=query_of(call, ChargeQuery))
    totals = {by: total.answer for by, total in asked.items()}
    older = older_of(call, frame, HERE, charges.answer.next_cursor)
    return show_page(
        call,
        frame,
        "money",
        notice,
        balance=balance.answer,
        charges=charges.answer.items,
        agents=totals["agent"].items,
        models=totals["model"].items,
        days=days_of(totals["day"], since),
        total=sum(day.charged_nanos for day in totals["day"].items),
        hit=await _budgets_hit(call, frame, totals["agent"]),
        older=older,
        can_credit=may(who, credit_tenant),
        now=now,
    )


@console_operation(HERE, HERE, TITLE)
async def show_money(call: Call[NoBody, ChargeQuery], frame: Frame) -> Answer:
    """Show the tenant's balance, what a month cost by agent, model and day, and each run's bill."""
    return await _page(call, frame)


@console_form(HERE, HERE, TITLE, _page, form=CreditForm)
async def submit_credit(call: Call[NoBody, NoQuery]) -> Answer:
    """Add credit to the tenant's balance; for platform admins."""
    form, who = _CREDIT.decode(call), call.signed_in
    credit = NewCredit(nanos_of(form.dollars), form.reason)
    await act_told(call, who, credit_tenant, body=credit, tenant_id=who.tenant.id)
    return see_page(call, HERE)


def nanos_of(dollars: str) -> int:
    """What somebody wrote, in nanos. Raises Problem UZ-REQ-001.

    >>> nanos_of("25"), nanos_of(" $0.5 ")
    (25000000000, 500000000)
    """
    try:
        amount = Decimal(dollars.strip().removeprefix("$"))
    except InvalidOperation:
        amount = Decimal(0)
    if not amount.is_finite() or not 0 < amount <= MOST_CREDIT or amount * NANOS_PER_DOLLAR % 1:
        raise Problem(
            "UZ-REQ-001", "dollars: an amount above zero, as 25 or 0.50", facts={"parameter": "dollars"}
        )
    return int(amount * NANOS_PER_DOLLAR)


def days_of(totals: ChargeTotals, since: int) -> list[tuple[int, int]]:
    """Each day of the month, the oldest first, with what it cost; also those on which nothing ran."""
    cost = {day.key: day.charged_nanos for day in totals.items}
    starts = [since + number * DAY_MS for number in range(DAYS)]
    return [(at, cost.get(_day(at), 0)) for at in starts]


def _day(at: int) -> str:
    return f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d}"


async def _budgets_hit(call: Call[Any, Any], frame: Frame, agents: ChargeTotals) -> list[ZombieRecord]:
    """The dearest agents of this workspace that have used up a budget."""
    async with side_by_side() as ask:
        asked = [
            ask(_agent, call, frame, UUID(total.key)) for total in agents.items if total.name is not None
        ]
    found = (one.answer for one in asked)
    return [
        agent
        for agent in found
        if agent is not None and is_over(agent.budget, agent.spend.day_nanos, agent.spend.month_nanos)
    ]


async def _agent(call: Call[Any, Any], frame: Frame, zombie_id: UUID) -> ZombieRecord | None:
    """None: it is another workspace's."""
    one = msgspec.structs.replace(call, params={**call.params, "zombie_id": zombie_id})
    try:
        agent: ZombieRecord = await act(one, frame.signed_in, get_zombie)
    except Problem as problem:
        if problem.code != "UZ-ZMB-009":
            raise
        return None
    return agent
