"""The page of bulk jobs: count what a filter picks, replay or cancel it, and see how far that is."""

from typing import Any, Final, Literal

from sexton_http.answers import Answer, Problem
from sexton_http.bodies.shapes import Body, Cursor, Query
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery
from sexton_http.pages.console import (
    Notice,
    console_form,
    console_operation,
    notice_of,
    older_of,
    query_of,
    see_page,
    show_page,
)
from sexton_http.pages.form_actions import FormDecoder, act, may
from sexton_http.pages.forms import CLIENT_FAULT
from sexton_http.pages.templates.frame import Frame
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


async def _page(call: Call[Any, Any], frame: Frame, notice: Notice | None = None) -> Answer:
    search, counted = query_of(call, JobSearch), None
    text = search.filter.strip()
    if text and notice is None:
        try:
            counted = await _asked(call, search.kind, text, dry_run=True)
        except Problem as problem:
            if problem.status not in CLIENT_FAULT:
                raise
            notice = notice_of(problem, call.request_id)
    page: JobPage = await act(call, frame.signed_in, list_jobs, query=JobQuery(cursor=search.cursor))
    older = older_of(call, frame, HERE, page.next_cursor)
    return show_page(
        call,
        frame,
        "jobs",
        notice,
        jobs=page.items,
        search=search,
        counted=counted,
        allowed=may(frame.signed_in, replay_events),
        older=older,
    )


@console_operation(HERE, HERE, TITLE)
async def show_jobs(call: Call[NoBody, JobSearch], frame: Frame) -> Answer:
    """Show the workspace's bulk jobs, and how many events a filter picks before a job begins."""
    return await _page(call, frame)


@console_form(HERE, HERE, TITLE, _page, form=NewJobForm)
async def submit_job(call: Call[NoBody, NoQuery]) -> Answer:
    """Begin a job, and show how far it is."""
    form = _NEW.decode(call)
    await _asked(call, form.kind, form.filter, dry_run=False)
    return see_page(call, HERE)


@console_form(HERE + "/{job_id}", HERE, TITLE, _page, form=JobWish)
async def submit_job_change(call: Call[NoBody, NoQuery]) -> Answer:
    """Pause a job, let it go on, or stop it."""
    await act_told(call, call.signed_in, _CHANGES[_WISH.decode(call).verb])
    return see_page(call, HERE)


async def _asked(call: Call[Any, Any], kind: str, text: str, *, dry_run: bool) -> BulkAnswer:
    who = await call.services.browsers.find(call.head)
    if who is None:
        raise Problem("UZ-AUTH-002", "nobody is signed in")
    if kind == "replay":
        answer: BulkAnswer = await act_told(call, who, replay_events, body=BulkReplay(text, dry_run=dry_run))
    else:
        answer = await act_told(call, who, cancel_events, body=BulkCancel(text, dry_run=dry_run))
    return answer
