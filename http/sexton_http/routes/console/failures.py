"""The page of failures: what fails alike, since when and how often, and the ways to deal with it."""

from typing import Annotated, Any, Final, Literal

import msgspec

from sexton_http.answers import Answer
from sexton_http.bodies.shapes import Body
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
from sexton_http.pages.templates.frame import Frame
from sexton_http.routes.failures import (
    FailurePage,
    FailureQuery,
    FailureReplay,
    Mute,
    acknowledge_failure,
    list_failures,
    mute_failure,
    replay_failure,
)
from sexton_http.routes.shared.told_acts import act_told

HERE: Final = "failures"
TITLE: Final = "Failures"
QUIET_MS: Final = 24 * 3_600_000
"""For how long the button makes a group quiet."""


class FailureList(FailureQuery):
    """What the page asks for, fewer than a program does: each group brings its buttons."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 20


class FailureWish(Body):
    """What the buttons of a group send."""

    verb: Literal["acknowledge", "mute", "unmute", "replay"]


_WISH: Final = FormDecoder(FailureWish)


async def _page(call: Call[Any, Any], frame: Frame, notice: Notice | None = None) -> Answer:
    page: FailurePage = await act(call, frame.signed_in, list_failures, query=query_of(call, FailureList))
    older = older_of(call, frame, HERE, page.next_cursor)
    return show_page(
        call,
        frame,
        "failures",
        notice,
        failures=page.items,
        allowed=may(frame.signed_in, acknowledge_failure),
        older=older,
    )


@console_operation(HERE, HERE, TITLE)
async def show_failures(call: Call[NoBody, FailureList], frame: Frame) -> Answer:
    """Show what fails, in groups of what fails alike, the last seen first."""
    return await _page(call, frame)


@console_form(HERE + "/{failure_id}", HERE, TITLE, _page, form=FailureWish)
async def submit_failure(call: Call[NoBody, NoQuery]) -> Answer:
    """Acknowledge a group, make it quiet for a day or no longer, or replay all of it by a job."""
    who = call.signed_in
    match _WISH.decode(call).verb:
        case "acknowledge":
            await act_told(call, who, acknowledge_failure)
        case "mute":
            await act_told(call, who, mute_failure, body=Mute(call.ctx.world.now_ms() + QUIET_MS))
        case "unmute":
            await act_told(call, who, mute_failure, body=Mute())
        case "replay":
            await act_told(call, who, replay_failure, body=FailureReplay())
            return see_page(call, "jobs")
    return see_page(call, HERE)
