"""The inbox of approvals: what waits for a person, and the form that approves or denies it."""

from typing import Annotated, Any, Final, Literal

import msgspec

from sexton_http.answers import Answer
from sexton_http.bodies.shapes import Body
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery
from sexton_http.pages.console import Notice, console_form, console_operation
from sexton_http.pages.form_actions import FormDecoder, act
from sexton_http.pages.layout import see
from sexton_http.pages.templates.frame import Frame, show
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


@console_operation(HERE, HERE, TITLE)
async def show_approvals(call: Call[NoBody, GateQuery], frame: Frame) -> Answer:
    """Show what waits for a person, oldest first, and what was decided last."""
    return await _page(call, frame)


async def _again(call: Call[Any, Any], frame: Frame, notice: Notice) -> Answer:
    return await _page(call, frame, notice)


@console_form(HERE + "/{gate_id}", HERE, TITLE, _again, form=GateDecision)
async def submit_decision(call: Call[NoBody, NoQuery]) -> Answer:
    """Approve or deny what waits at a gate, and go back to the inbox."""
    decision = _DECISION.decode(call)
    route = approve if decision.verdict == "approve" else deny
    await act(call, call.signed_in, route, body=Verdict(reason=decision.reason))
    return see(f"/console/{call.id('workspace_id')}/{HERE}")


async def _page(call: Call[Any, Any], frame: Frame, notice: Notice | None = None) -> Answer:
    cursor = call.query.cursor if isinstance(call.query, GateQuery) else None
    asked = GateQuery(status=GateStatus.PENDING, cursor=cursor)
    waiting: GatePage = await act(call, frame.signed_in, list_approvals, query=asked)
    lately = GateQuery(order=GateOrder.DECIDED, limit=DECISIONS)
    decided: GatePage = await act(call, frame.signed_in, list_approvals, query=lately)
    return show(
        frame,
        "approvals",
        status=200 if notice is None else notice.status,
        gates=waiting.items,
        decided=decided.items,
        cursor=waiting.next_cursor,
        notice=notice,
        now=call.ctx.world.now_ms(),
        reason_chars=REASON_CHARS,
    )
