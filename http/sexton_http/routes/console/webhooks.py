"""The pages of webhooks: addresses, what came and why it was refused, and one delivery with its replay."""

from typing import Any, Final, Literal

from sexton_http.answers import Answer, Problem
from sexton_http.bodies.shapes import Body
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery
from sexton_http.pages.console import Notice, console_form, console_operation, older_of, see_page, show_page
from sexton_http.pages.form_actions import FormDecoder, act, may
from sexton_http.pages.side_by_side import Asked, side_by_side
from sexton_http.pages.templates.frame import Frame
from sexton_http.routes.shared.told_acts import act_told
from sexton_http.routes.webhook_addresses import WebhookPage, WebhookQuery, list_webhooks
from sexton_http.routes.webhook_deliveries import (
    DeliveryPage,
    DeliveryQuery,
    DeliveryRecord,
    get_delivery,
    list_deliveries,
    read_delivery_body,
    replay_delivery,
)
from sexton_storage.records.deliveries import DeliveryVerdict

HERE: Final = "webhooks"
TITLE: Final = "Webhooks"
MOST_REFUSED: Final = 10
SHOWN_BYTES: Final = 64 * 1024
"""The part of a body that is shown; its route gives all of it."""


class DeliveryWish(Body):
    """What the button of a delivery sends."""

    verb: Literal["replay"]


_WISH: Final = FormDecoder(DeliveryWish)


@console_operation(HERE, HERE, TITLE)
async def show_webhooks(call: Call[NoBody, DeliveryQuery], frame: Frame) -> Answer:
    """Show what was refused last and why, the addresses of all agents, and what came to them."""
    who, query = frame.signed_in, call.query
    last = DeliveryQuery(verdict=DeliveryVerdict.REFUSED, zombie_id=query.zombie_id, limit=MOST_REFUSED)
    async with side_by_side() as ask:
        refused: Asked[DeliveryPage] = ask(act, call, who, list_deliveries, query=last)
        hooks: Asked[WebhookPage] = ask(
            act, call, who, list_webhooks, query=WebhookQuery(zombie_id=query.zombie_id)
        )
        page: Asked[DeliveryPage] = ask(act, call, who, list_deliveries, query=query)
    older = older_of(call, frame, HERE, page.answer.next_cursor)
    return show_page(
        call,
        frame,
        "webhooks",
        refused=refused.answer.items,
        hooks=hooks.answer.items,
        more_hooks=hooks.answer.next_cursor is not None,
        deliveries=page.answer.items,
        allowed=may(who, replay_delivery),
        older=older,
    )


async def _page(call: Call[Any, Any], frame: Frame, notice: Notice | None = None) -> Answer:
    who = frame.signed_in
    delivery: DeliveryRecord = await act(call, who, get_delivery)
    return show_page(
        call,
        frame,
        "delivery",
        notice,
        delivery=delivery,
        body=await _text_of(call, frame),
        allowed=may(who, replay_delivery),
    )


@console_operation(HERE + "/{delivery_id}", HERE, "Delivery")
async def show_delivery(call: Call[NoBody, NoQuery], frame: Frame) -> Answer:
    """Show one delivery: what became of it, its headers and its body as text."""
    return await _page(call, frame)


@console_form(HERE + "/{delivery_id}", HERE, "Delivery", _page, form=DeliveryWish)
async def submit_delivery(call: Call[NoBody, NoQuery]) -> Answer:
    """Verify a delivery once more and wake the agent if it is genuine; then show what came of it."""
    _WISH.decode(call)
    await act_told(call, call.signed_in, replay_delivery)
    return see_page(call, HERE, call.id("delivery_id"))


async def _text_of(call: Call[Any, Any], frame: Frame) -> str | None:
    """The body as far as it is shown; None where it is not kept, or not for this reader."""
    if not may(frame.signed_in, read_delivery_body):
        return None
    try:
        answer: Answer = await act(call, frame.signed_in, read_delivery_body)
    except Problem as problem:
        if problem.code == "UZ-WH-041":
            return None
        raise
    return answer.body[:SHOWN_BYTES].decode("utf-8", "replace")
