"""The inbox of approvals: what waits for a person, and the form that approves or denies it."""

from typing import Annotated, Any, Final, Literal

import msgspec

from sexton_http.answers import Answer
from sexton_http.bodies.shapes import Body
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery
from sexton_http.pages.console import Notice, console_form, console_operation, query_of, see_page, show_page
from sexton_http.pages.form_actions import FormDecoder, act
from sexton_http.pages.side_by_side import Asked, side_by_side
from sexton_http.pages.templates.frame import Frame
from sexton_http.routes.approvals import (
    REASON_CHARS,
    GatePage,
    GateQuery,
    Verdict,
    approve,
    deny,
    list_approvals,
)
from sexton_storage.records.gates import GateOrder, GateStatus

HERE: Final = "approvals"
TITLE: Final = "Approvals"
DECISIONS: Final = 20
"""The last ones, which are shown below what waits."""


class GateDecision(Body):
    """What the form of an approval sends: the button that was pressed, and why."""

    verdict: Literal["approve", "deny"]
    reason: Annotated[str, msgspec.Meta(max_length=REASON_CHARS)] = ""


_DECISION: Final = FormDecoder(GateDecision)


async def _page(call: Call[Any, Any], frame: Frame, notice: Notice | None = None) -> Answer:
    cursor = query_of(call, GateQuery).cursor
    asked = GateQuery(status=GateStatus.PENDING, cursor=cursor)
    lately = GateQuery(order=GateOrder.DECIDED, limit=DECISIONS)
    async with side_by_side() as ask:
        waiting: Asked[GatePage] = ask(act, call, frame.signed_in, list_approvals, query=asked)
        decided: Asked[GatePage] = ask(act, call, frame.signed_in, list_approvals, query=lately)
    return show_page(
        call,
        frame,
        "approvals",
        notice,
        gates=waiting.answer.items,
        decided=decided.answer.items,
        cursor=waiting.answer.next_cursor,
        reason_chars=REASON_CHARS,
    )


@console_operation(HERE, HERE, TITLE)
async def show_approvals(call: Call[NoBody, GateQuery], frame: Frame) -> Answer:
    """Show what waits for a person, oldest first, and what was decided last."""
    return await _page(call, frame)


@console_form(HERE + "/{gate_id}", HERE, TITLE, _page, form=GateDecision)
async def submit_decision(call: Call[NoBody, NoQuery]) -> Answer:
    """Approve or deny what waits at a gate, and go back to the inbox."""
    decision = _DECISION.decode(call)
    route = approve if decision.verdict == "approve" else deny
    await act(call, call.signed_in, route, body=Verdict(reason=decision.reason))
    return see_page(call, HERE)
