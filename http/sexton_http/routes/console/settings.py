"""The page of settings: the workspace's, what the plan allows, and what the server was started with."""

from typing import Annotated, Any, Final, Literal

import msgspec

from sexton_http.answers import Answer, Problem
from sexton_http.bodies.shapes import NAME_CHARS, Body
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery
from sexton_http.pages.console import Notice, console_form, console_operation, see_page, show_page
from sexton_http.pages.form_actions import FormDecoder, act, may
from sexton_http.pages.templates.frame import Frame
from sexton_http.routes.agents import ScoringPut, ScoringView, get_scoring, put_scoring
from sexton_http.routes.plans import PlanRecord, get_plan
from sexton_http.routes.retention import (
    RetentionPreview,
    RetentionPut,
    RetentionQuery,
    RetentionView,
    get_retention,
    preview_retention,
    put_retention,
)
from sexton_http.routes.settings import SettingList, list_settings
from sexton_http.routes.shared.told_acts import act_told
from sexton_http.routes.workspaces import WorkspacePatch, change_workspace, get_workspace
from sexton_storage.records.retention import KeptClass
from sexton_storage.terms import MAX_CONTEXT_TOKENS, MIN_CONTEXT_TOKENS

HERE: Final = "settings"
TITLE: Final = "Settings"
MOST_DAYS: Final = 36_500
LIMITS: Final = {
    "requests_per_second": "Requests a second",
    "workspaces": "Workspaces",
    "agents_per_workspace": "Agents in a workspace",
    "events_per_day": "Events a day",
    "tools": "Tools",
    "runtimes": "Runtimes",
    "credentials": "Credentials",
    "api_keys": "API keys",
    "agent_keys": "Keys of agents",
    "proposals": "Proposals",
    "drafts": "Drafts",
    "queued_messages": "Messages that wait",
    "crons": "Schedules",
    "event_days": "Days that ended events are kept",
    "transcript_days": "Days that transcripts are kept",
    "file_days": "Days that files are kept",
    "delivery_days": "Days that deliveries are kept",
}
"""What a plan allows, by its name in the interface."""


Digits = Annotated[str, msgspec.Meta(pattern="^[0-9]{0,5}$")]
KEPT: Final = {
    KeptClass.EVENTS: ("event_days", "Events, after they ended"),
    KeptClass.TRANSCRIPTS: ("transcript_days", "Transcripts"),
    KeptClass.FILES: ("file_days", "Files"),
    KeptClass.DELIVERIES: ("delivery_days", "Deliveries of webhooks"),
}
"""The field of the form, and what it is called."""


class SettingWish(Body):
    """What the forms of the page send."""

    verb: Literal["rename", "pause", "resume", "scoring", "retention"]
    name: Annotated[str, msgspec.Meta(max_length=NAME_CHARS)] = ""
    context_tokens: Annotated[str, msgspec.Meta(max_length=16)] = ""
    event_days: Digits = ""
    transcript_days: Digits = ""
    file_days: Digits = ""
    delivery_days: Digits = ""
    drop_charged: Literal["", "yes"] = ""


_WISH: Final = FormDecoder(SettingWish)


async def _page(call: Call[Any, Any], frame: Frame, notice: Notice | None = None) -> Answer:
    who = frame.signed_in
    plan: PlanRecord = await act(call, who, get_plan)
    scoring: ScoringView = await act(call, who, get_scoring)
    retention: RetentionView = await act(call, who, get_retention)
    due: RetentionPreview = await act(call, who, preview_retention, query=RetentionQuery())
    options: SettingList | None = None
    if may(who, list_settings):
        options = await act(call, who, list_settings)
    return show_page(
        call,
        frame,
        "settings",
        notice,
        workspace=await act(call, who, get_workspace),
        plan=plan,
        limits=[(words, getattr(plan.limits, name)) for name, words in LIMITS.items()],
        scoring=scoring,
        least=MIN_CONTEXT_TOKENS,
        most=MAX_CONTEXT_TOKENS,
        options=options,
        kept=[(*KEPT[item.what], item, due) for item, due in zip(retention.items, due.items, strict=True)],
        keeps=may(who, put_retention),
        allowed=may(who, change_workspace),
        name_chars=NAME_CHARS,
    )


@console_operation(HERE, HERE, TITLE)
async def show_settings(call: Call[NoBody, NoQuery], frame: Frame) -> Answer:
    """Show what the workspace is set to, its plan, and to platform admins the server's options."""
    return await _page(call, frame)


@console_form(HERE, HERE, TITLE, _page, form=SettingWish)
async def submit_setting(call: Call[NoBody, NoQuery]) -> Answer:
    """Rename or pause the workspace, let it go on, or say how much of their scores agents are shown."""
    wish, who = _WISH.decode(call), call.signed_in
    if wish.verb == "scoring":
        if not wish.context_tokens.isdecimal():
            detail = f"a whole number from {MIN_CONTEXT_TOKENS} to {MAX_CONTEXT_TOKENS}"
            raise Problem("UZ-REQ-001", detail, facts={"parameter": "context_tokens"})
        await act_told(call, who, put_scoring, body=ScoringPut(int(wish.context_tokens)))
    elif wish.verb == "retention":
        await act_told(call, who, put_retention, body=_policy(wish))
    else:
        patch = WorkspacePatch(paused=wish.verb == "pause")
        if wish.verb == "rename":
            if not wish.name:
                raise Problem("UZ-REQ-001", "name: give one", facts={"parameter": "name"})
            patch = WorkspacePatch(name=wish.name)
        await act_told(call, who, change_workspace, body=patch)
    return see_page(call, HERE)


def _policy(wish: SettingWish) -> RetentionPut:
    """Raises Problem UZ-REQ-001 for days that are none; an empty field leaves it to plan and server."""
    days: dict[str, int | None] = {}
    for field, words in KEPT.values():
        text = getattr(wish, field)
        days[field] = int(text) if text else None
        if text and not 1 <= int(text) <= MOST_DAYS:
            detail = f"{words}: a whole number of days from 1 to {MOST_DAYS}, or nothing"
            raise Problem("UZ-REQ-001", detail, facts={"parameter": field})
    return RetentionPut(**days, drop_charged=wish.drop_charged == "yes")
