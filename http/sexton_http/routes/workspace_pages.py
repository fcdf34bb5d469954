"""The pages of workspaces: what the interface does, in forms that need no script."""

from typing import Final

from sexton_http.answers import Answer, Problem
from sexton_http.bodies.shapes import WorkspaceList
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Auth, NoBody, NoQuery, operation
from sexton_http.identity.principals import SignedIn
from sexton_http.pages.form_actions import MAX_FORM_BYTES, FormDecoder, act, may
from sexton_http.pages.forms import Trouble, sent_fields, trouble_of
from sexton_http.pages.layout import see
from sexton_http.pages.people import sign_in_page
from sexton_http.pages.workspaces import FIELDS, NAME, workspaces_page
from sexton_http.routes.workspaces import (
    NewWorkspace,
    WorkspacePatch,
    change_workspace,
    create_workspace,
    list_workspaces,
)

TAG = "Browser"
HOME: Final = "/workspaces"
SEE_OTHER: Final = 303
# With these the page comes back and says why.
NOT_MADE: Final = (400, 402, 409)
NOT_CHANGED: Final = (400, 403, 409)
_NEW: Final = FormDecoder(NewWorkspace)
_PATCH: Final = FormDecoder(WorkspacePatch)


@operation("GET", HOME, tag=TAG, auth=Auth.PUBLIC, media="text/html")
async def show_workspaces(call: Call[NoBody, NoQuery]) -> Answer:
    """Show the tenant's workspaces, and a form for another."""
    who = await call.services.browsers.find(call.head)
    return sign_in_page(call.services.ways, f"?next={HOME}") if who is None else await _page(call, who)


@operation(
    "POST",
    HOME,
    tag=TAG,
    auth=Auth.BROWSER,
    media="text/html",
    status=SEE_OTHER,
    extra_statuses=NOT_MADE,
    codes=("UZ-REQ-001", "UZ-REQ-002", "UZ-REQ-005"),
    max_body=MAX_FORM_BYTES,
    form=NewWorkspace,
)
async def submit_workspace(call: Call[NoBody, NoQuery]) -> Answer:
    """Make a workspace and go back to the list."""
    try:
        await act(call, call.signed_in, create_workspace, body=_NEW.decode(call))
    except Problem as problem:
        return await _refused(call, problem)
    return see(HOME)


@operation(
    "POST",
    "/workspaces/{workspace_id}",
    tag=TAG,
    auth=Auth.BROWSER,
    media="text/html",
    status=SEE_OTHER,
    extra_statuses=NOT_CHANGED,
    codes=("UZ-REQ-001", "UZ-REQ-002", "UZ-REQ-005"),
    max_body=MAX_FORM_BYTES,
    form=WorkspacePatch,
)
async def submit_change(call: Call[NoBody, NoQuery]) -> Answer:
    """Rename a workspace, pause it, or let it go on, and go back to the list."""
    try:
        await act(call, call.signed_in, change_workspace, body=_PATCH.decode(call))
    except Problem as problem:
        # No workspace ever goes, so there is no page of the person's own that leads to one that is not there.
        if problem.code == "UZ-WORKSPACE-001":
            raise
        return await _refused(call, problem, str(call.id("workspace_id")))
    return see(HOME)


async def _refused(call: Call[NoBody, NoQuery], problem: Problem, item: str = "") -> Answer:
    at = NAME.name if problem.code == "UZ-WORKSPACE-004" else ""
    trouble = trouble_of(problem, call.request_id, FIELDS, at=at, item=item)
    return await _page(call, call.signed_in, trouble)


async def _page(call: Call[NoBody, NoQuery], who: SignedIn, trouble: Trouble | None = None) -> Answer:
    listed: WorkspaceList = await act(call, who, list_workspaces)
    return workspaces_page(
        who, listed, changeable=may(who, change_workspace), typed=sent_fields(call.raw), trouble=trouble
    )
