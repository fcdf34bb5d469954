"""The page of bulk jobs: count what a filter picks, replay or cancel it, and see how far that is."""

from typing import Any, Final, Literal

from sexton_http.answers import Answer, Problem
from sexton_http.bodies.shapes import Body, Cursor, Query
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery
from sexton_http.pages.console import Notice, console_form, console_operation, notice_of
from sexton_http.pages.form_actions import FormDecoder, act, may
from sexton_http.pages.forms import CLIENT_FAULT
from sexton_http.pages.layout import see
from sexton_http.pages.templates.frame import Frame, show
from sexton_http.routes.jobs import (
    BulkAnswer,
    BulkCancel,
    BulkReplay,
    JobPage,
    JobQuery,
    cancel_events,
    list_jobs,
    pause_job,
    replay_events,
    resume_job,
    stop_job,
)
from sexton_http.routes.shared.told_acts import act_told

HERE: Final = "jobs"
TITLE: Final = "Bulk jobs"
_CHANGES: Final = {"pause": pause_job, "resume": resume_job, "stop": stop_job}


class JobSearch(Query):
    """A filter is counted before anything is done."""

    filter: str = ""
    kind: Literal["replay", "cancel"] = "replay"
    cursor: Cursor | None = None


class NewJobForm(Body):
    """What the button under a count sends."""

    filter: str
    kind: Literal["replay", "cancel"]


class JobWish(Body):
    """What the buttons of a job send."""

    verb: Literal["pause", "resume", "stop"]


_NEW: Final = FormDecoder(NewJobForm)
_WISH: Final = FormDecoder(JobWish)


@console_operation(HERE, HERE, TITLE)
async def show_jobs(call: Call[NoBody, JobSearch], frame: Frame) -> Answer:
    """Show the workspace's bulk jobs, and how many events a filter picks before a job begins."""
    return await _page(call, frame, call.query)


async def _again(call: Call[Any, Any], frame: Frame, notice: Notice) -> Answer:
    return await _page(call, frame, JobSearch(), notice)


@console_form(HERE, HERE, TITLE, _again, form=NewJobForm)
async def submit_job(call: Call[NoBody, NoQuery]) -> Answer:
    """Begin a job, and show how far it is."""
    form = _NEW.decode(call)
    await _asked(call, form.kind, form.filter, dry_run=False)
    return see(f"/console/{call.id('workspace_id')}/{HERE}")


@console_form(HERE + "/{job_id}", HERE, TITLE, _again, form=JobWish)
async def submit_job_change(call: Call[NoBody, NoQuery]) -> Answer:
    """Pause a job, let it go on, or stop it."""
    await act_told(call, call.signed_in, _CHANGES[_WISH.decode(call).verb])
    return see(f"/console/{call.id('workspace_id')}/{HERE}")


async def _asked(call: Call[Any, Any], kind: str, text: str, *, dry_run: bool) -> BulkAnswer:
    who = await call.services.browsers.find(call.head)
    if who is None:
        raise Problem("UZ-AUTH-002", "nobody is signed in")
    if kind == "replay":
        answer: BulkAnswer = await act_told(call, who, replay_events, body=BulkReplay(text, dry_run=dry_run))
    else:
        answer = await act_told(call, who, cancel_events, body=BulkCancel(text, dry_run=dry_run))
    return answer


async def _page(
    call: Call[Any, Any], frame: Frame, search: JobSearch, notice: Notice | None = None
) -> Answer:
    counted: BulkAnswer | None = None
    text = search.filter.strip()
    if text and notice is None:
        try:
            counted = await _asked(call, search.kind, text, dry_run=True)
        except Problem as problem:
            if problem.status not in CLIENT_FAULT:
                raise
            notice = notice_of(problem, call.request_id)
    page: JobPage = await act(call, frame.signed_in, list_jobs, query=JobQuery(cursor=search.cursor))
    older = None if page.next_cursor is None else f"{frame.address(HERE)}?cursor={page.next_cursor}"
    return show(
        frame,
        "jobs",
        status=200 if notice is None else notice.status,
        jobs=page.items,
        search=search,
        counted=counted,
        allowed=may(frame.signed_in, replay_events),
        older=older,
        notice=notice,
        now=call.ctx.world.now_ms(),
    )
