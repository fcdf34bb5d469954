"""The pages of workspaces: what the interface does, in forms that need no script."""

from typing import Final

from sexton_http.answers import Answer, Problem
from sexton_http.bodies.shapes import WorkspaceList
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery
from sexton_http.identity.principals import SignedIn
from sexton_http.pages.form_actions import FormDecoder, act, form_operation, may, page_operation
from sexton_http.pages.forms import Trouble, sent_fields, trouble_of
from sexton_http.pages.layout import see
from sexton_http.pages.workspaces import FIELDS, NAME, workspaces_page
from sexton_http.routes.workspaces import (
    NewWorkspace,
    WorkspacePatch,
    change_workspace,
    create_workspace,
    list_workspaces,
)
from sexton_storage.records.users import Role

HOME: Final = "/workspaces"
# With these the page comes back and says why.
NOT_MADE: Final = (400, 402, 403, 409)
NOT_CHANGED: Final = (400, 403, 409)
_NEW: Final = FormDecoder(NewWorkspace)
_PATCH: Final = FormDecoder(WorkspacePatch)
_MAKERS: Final = create_workspace.role or Role.USER


@page_operation(HOME)
async def show_workspaces(call: Call[NoBody, NoQuery], who: SignedIn) -> Answer:
    """Show the tenant's workspaces, and a form for another."""
    return await _page(call, who)


async def _refused(call: Call[NoBody, NoQuery], problem: Problem) -> Answer:
    # No workspace ever goes, so there is no page of the person's own that leads to one that is not there.
    if problem.code == "UZ-WORKSPACE-001":
        raise problem
    at = NAME.name if problem.code == "UZ-WORKSPACE-004" else ""
    item = str(call.params.get("workspace_id", ""))
    trouble = trouble_of(problem, call.request_id, FIELDS, at=at, item=item)
    return await _page(call, call.signed_in, trouble)


@form_operation(HOME, _refused, statuses=NOT_MADE, form=NewWorkspace)
async def submit_workspace(call: Call[NoBody, NoQuery]) -> Answer:
    """Make a workspace and go back to the list."""
    await act(call, call.signed_in, create_workspace, body=_NEW.decode(call))
    return see(HOME)


@form_operation("/workspaces/{workspace_id}", _refused, statuses=NOT_CHANGED, form=WorkspacePatch)
async def submit_change(call: Call[NoBody, NoQuery]) -> Answer:
    """Rename a workspace, pause it, or let it go on, and go back to the list."""
    await act(call, call.signed_in, change_workspace, body=_PATCH.decode(call))
    return see(HOME)


async def _page(call: Call[NoBody, NoQuery], who: SignedIn, trouble: Trouble | None = None) -> Answer:
    listed: WorkspaceList = await act(call, who, list_workspaces)
    return workspaces_page(
        who,
        listed,
        creatable=may(who, create_workspace),
        needed=_MAKERS.value,
        changeable=may(who, change_workspace),
        typed=sent_fields(call.raw),
        trouble=trouble,
    )
