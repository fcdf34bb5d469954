"""The page of schedules: next and last firings, what was missed, and the ways to steer them."""

from typing import Any, Final, Literal

from sexton_http.answers import Answer
from sexton_http.bodies.shapes import Body
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery
from sexton_http.pages.console import Notice, console_form, console_operation
from sexton_http.pages.form_actions import FormDecoder, act, may
from sexton_http.pages.layout import see
from sexton_http.pages.templates.frame import Frame, show
from sexton_http.routes.schedules import (
    SchedulePage,
    ScheduleQuery,
    ScheduleRun,
    list_schedules,
    pause_schedule,
    resume_schedule,
    run_schedule,
)

HERE: Final = "schedules"
TITLE: Final = "Schedules"


class ScheduleWish(Body):
    """What the buttons of a schedule send."""

    verb: Literal["pause", "resume", "run"]


_WISH: Final = FormDecoder(ScheduleWish)


@console_operation(HERE, HERE, TITLE)
async def show_schedules(call: Call[NoBody, ScheduleQuery], frame: Frame) -> Answer:
    """Show the schedules of all agents with their next and last firings."""
    return await _page(call, frame, call.query)


async def _again(call: Call[Any, Any], frame: Frame, notice: Notice) -> Answer:
    return await _page(call, frame, ScheduleQuery(), notice)


@console_form(HERE + "/{zombie_id}/{schedule_id}", HERE, TITLE, _again, form=ScheduleWish)
async def submit_schedule(call: Call[NoBody, NoQuery]) -> Answer:
    """Pause or resume a schedule, or have its agent work as if it fired now."""
    who, home = call.signed_in, f"/console/{call.id('workspace_id')}"
    match _WISH.decode(call).verb:
        case "pause":
            await act(call, who, pause_schedule)
        case "resume":
            await act(call, who, resume_schedule)
        case "run":
            made: ScheduleRun = await act(call, who, run_schedule)
            return see(f"{home}/events/{made.event_id}")
    return see(f"{home}/{HERE}")


async def _page(
    call: Call[Any, Any], frame: Frame, query: ScheduleQuery, notice: Notice | None = None
) -> Answer:
    page: SchedulePage = await act(call, frame.signed_in, list_schedules, query=query)
    more = None if page.next_cursor is None else f"{frame.address(HERE)}?cursor={page.next_cursor}"
    return show(
        frame,
        "schedules",
        status=200 if notice is None else notice.status,
        schedules=page.items,
        allowed=may(frame.signed_in, pause_schedule),
        older=more,
        notice=notice,
        now=call.ctx.world.now_ms(),
    )
