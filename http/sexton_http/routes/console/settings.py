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
from sexton_http.routes.audit_actions import AUDITED
from sexton_http.routes.plans import PlanRecord, get_plan
from sexton_http.routes.settings import SettingList, list_settings
from sexton_http.routes.workspaces import WorkspacePatch, change_workspace, get_workspace
from sexton_storage.terms import MAX_CONTEXT_TOKENS, MIN_CONTEXT_TOKENS

HERE: Final = "settings"
TITLE: Final = "Settings"
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
}
"""What a plan allows, by its name in the interface."""


class SettingWish(Body):
    """What the forms of the page send."""

    verb: Literal["rename", "pause", "resume", "scoring"]
    name: Annotated[str, msgspec.Meta(max_length=NAME_CHARS)] = ""
    context_tokens: Annotated[str, msgspec.Meta(max_length=16)] = ""


_WISH: Final = FormDecoder(SettingWish)


async def _page(call: Call[Any, Any], frame: Frame, notice: Notice | None = None) -> Answer:
    who = frame.signed_in
    plan: PlanRecord = await act(call, who, get_plan)
    scoring: ScoringView = await act(call, who, get_scoring)
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
        asked = msgspec.structs.replace(call, audit=AUDITED["put_scoring"])
        await act(asked, who, put_scoring, body=ScoringPut(int(wish.context_tokens)))
    else:
        patch = WorkspacePatch(paused=wish.verb == "pause")
        if wish.verb == "rename":
            if not wish.name:
                raise Problem("UZ-REQ-001", "name: give one", facts={"parameter": "name"})
            patch = WorkspacePatch(name=wish.name)
        asked = msgspec.structs.replace(call, audit=AUDITED["change_workspace"])
        await act(asked, who, change_workspace, body=patch)
    return see_page(call, HERE)
