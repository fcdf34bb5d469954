"""The page of bulk jobs: count what a filter picks, replay or cancel it, and see how far that is."""

from typing import Annotated, Any, Final, Literal
from urllib.parse import parse_qsl

import msgspec

from sexton_http.answers import Answer, Problem
from sexton_http.bodies.decoding import MAX_QUERY_FIELDS
from sexton_http.bodies.ids import CANONICAL
from sexton_http.bodies.shapes import Body, Cursor, Query
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery
from sexton_http.identity.principals import SignedIn
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
from sexton_http.routes.console.changed_requests import Change, How, changed_request
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
MOST_CHOSEN: Final = 27
"""Ids that a filter of 1,024 characters has room for."""
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
    agent_version: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] = 0
    """What a replay runs under, of each agent's own; 0: the version that is active then."""
    change: Change = ""
    how: How = "merge"


class JobWish(Body):
    """What the buttons of a job send."""

    verb: Literal["pause", "resume", "stop"]


_NEW: Final = FormDecoder(NewJobForm)
_WISH: Final = FormDecoder(JobWish)


async def _page(call: Call[Any, Any], frame: Frame, notice: Notice | None = None) -> Answer:
    search, counted = query_of(call, JobSearch), None
    text = search.filter.strip()
    if not text and notice is None and (ids := chosen_ids(call.head.query)):
        text = f"id:{','.join(ids)}"
        search = msgspec.structs.replace(search, filter=text)
    if text and notice is None:
        try:
            counted = await _counted(call, frame.signed_in, search.kind, text)
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
    form, who = _NEW.decode(call), call.signed_in
    if form.kind == "replay":
        changed = changed_request(form.change, form.how)
        version = form.agent_version or None
        body = BulkReplay(form.filter, request=changed.request, merge=changed.merge, agent_version=version)
        await act_told(call, who, replay_events, body=body)
    else:
        await act_told(call, who, cancel_events, body=BulkCancel(form.filter))
    return see_page(call, HERE)


@console_form(HERE + "/{job_id}", HERE, TITLE, _page, form=JobWish)
async def submit_job_change(call: Call[NoBody, NoQuery]) -> Answer:
    """Pause a job, let it go on, or stop it."""
    await act_told(call, call.signed_in, _CHANGES[_WISH.decode(call).verb])
    return see_page(call, HERE)


def chosen_ids(query: bytes) -> list[str]:
    """The events that were chosen one by one in a list. Raises Problem UZ-REQ-001 for too many.

    >>> chosen_ids(b"kind=cancel&chosen=019363b0-0000-7000-8000-000000000001&chosen=x")
    ['019363b0-0000-7000-8000-000000000001']
    """
    fields = parse_qsl(query.decode("latin-1"), max_num_fields=MAX_QUERY_FIELDS)
    ids = [value for name, value in fields if name == "chosen" and CANONICAL.fullmatch(value)]
    if len(ids) > MOST_CHOSEN:
        detail = f"{len(ids)} events are chosen, and {MOST_CHOSEN} fit at once: choose fewer, or use a filter"
        raise Problem("UZ-REQ-001", detail, facts={"parameter": "chosen"})
    return ids


async def _counted(call: Call[Any, Any], who: SignedIn, kind: str, text: str) -> BulkAnswer:
    """How many events a job would be about."""
    if kind == "replay":
        answer: BulkAnswer = await act(call, who, replay_events, body=BulkReplay(text, dry_run=True))
    else:
        answer = await act(call, who, cancel_events, body=BulkCancel(text, dry_run=True))
    return answer
