"""The page of schedules: next and last firings, what was missed, and the ways to steer them."""

from typing import Any, Final, Literal

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
from sexton_http.routes.schedules import (
    SchedulePage,
    ScheduleQuery,
    ScheduleRun,
    list_schedules,
    pause_schedule,
    resume_schedule,
    run_schedule,
)
from sexton_http.routes.shared.told_acts import act_told

HERE: Final = "schedules"
TITLE: Final = "Schedules"


class ScheduleWish(Body):
    """What the buttons of a schedule send."""

    verb: Literal["pause", "resume", "run"]


_WISH: Final = FormDecoder(ScheduleWish)


async def _page(call: Call[Any, Any], frame: Frame, notice: Notice | None = None) -> Answer:
    page: SchedulePage = await act(call, frame.signed_in, list_schedules, query=query_of(call, ScheduleQuery))
    more = older_of(call, frame, HERE, page.next_cursor)
    return show_page(
        call,
        frame,
        "schedules",
        notice,
        schedules=page.items,
        allowed=may(frame.signed_in, pause_schedule),
        older=more,
    )


@console_operation(HERE, HERE, TITLE)
async def show_schedules(call: Call[NoBody, ScheduleQuery], frame: Frame) -> Answer:
    """Show the schedules of all agents with their next and last firings."""
    return await _page(call, frame)


@console_form(HERE + "/{zombie_id}/{schedule_id}", HERE, TITLE, _page, form=ScheduleWish)
async def submit_schedule(call: Call[NoBody, NoQuery]) -> Answer:
    """Pause or resume a schedule, or have its agent work as if it fired now."""
    who = call.signed_in
    match _WISH.decode(call).verb:
        case "pause":
            await act_told(call, who, pause_schedule)
        case "resume":
            await act_told(call, who, resume_schedule)
        case "run":
            made: ScheduleRun = await act_told(call, who, run_schedule)
            return see_page(call, "events", made.event_id)
    return see_page(call, HERE)
