"""The pages of members: what the interface does, in forms that need no script."""

from typing import Annotated, Final
from uuid import UUID

import msgspec

from sexton_http.answers import Answer, Problem
from sexton_http.bodies.member_shapes import Invited, MemberPage, Removed
from sexton_http.bodies.shapes import Body
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery
from sexton_http.identity.principals import SignedIn
from sexton_http.pages.form_actions import FormDecoder, act, form_operation, may, page_operation
from sexton_http.pages.forms import Trouble, sent_fields, trouble_of
from sexton_http.pages.layout import see
from sexton_http.pages.members import (
    END_KEYS,
    FIELDS,
    SUBJECT,
    invited_page,
    members_page,
    no_members_page,
    places_of,
    removed_page,
)
from sexton_http.routes.members import (
    Invitation,
    KeysAfter,
    MemberPatch,
    MemberQuery,
    Name,
    NewMember,
    RemovalQuery,
    Standing,
    change_member,
    create_member,
    invite_member,
    list_members,
    remove_member,
)
from sexton_http.routes.sessions import (
    SessionList,
    SessionQuery,
    SessionsQuery,
    Whose,
    end_sessions,
    list_sessions,
)
from sexton_storage.records.users import Role

HOME: Final = "/members"
ONE: Final = HOME + "/{member_id}"
OK: Final = 200
CREATED: Final = 201
NOT_FOUND: Final = 404
# With these the page comes back and says why.
REFUSED: Final = (400, 403, NOT_FOUND, 409)


class MemberForm(Body):
    """What the form of an invitation sends."""

    name: Name
    role: Role = Role.USER
    subject: Annotated[str, msgspec.Meta(max_length=512)] = ""


class RoleForm(Body):
    """What the form of a role sends."""

    role: Role


class StatusForm(Body):
    """What the buttons to suspend and to resume send."""

    status: Standing


class RemovalForm(Body):
    """What the form of a removal sends."""

    to: str = END_KEYS
    """The member who is given the keys, or `end`."""


_NEW: Final = FormDecoder(MemberForm)
_ROLE: Final = FormDecoder(RoleForm)
_STATUS: Final = FormDecoder(StatusForm)
_REMOVAL: Final = FormDecoder(RemovalForm)
_INVITATION: Final = FormDecoder(Invitation)


@page_operation(HOME)
async def show_members(call: Call[NoBody, MemberQuery], who: SignedIn) -> Answer:
    """Show who is admitted to the tenant, and a form to invite another."""
    return await _page(call, who, call.query)


async def _refused(call: Call[NoBody, NoQuery], problem: Problem) -> Answer:
    """Beside the member, or above all of them when there is none, or none that may be seen."""
    at = SUBJECT.name if problem.code == "UZ-MEMBER-003" else ""
    item = "" if problem.status == NOT_FOUND else str(call.params.get("member_id", ""))
    trouble = trouble_of(problem, call.request_id, FIELDS, at=at, item=item)
    return await _page(call, call.signed_in, MemberQuery(), trouble)


@form_operation(HOME, _refused, statuses=(400, 403, 409), form=MemberForm, status=CREATED)
async def submit_member(call: Call[NoBody, NoQuery]) -> Answer:
    """Admit somebody, and show the link that lets them in, this once."""
    form = _NEW.decode(call)
    body = NewMember(form.name, form.role, form.subject or None)
    made: Invited = await act(call, call.signed_in, create_member, body=body)
    return invited_page(call.signed_in, made)


@form_operation(ONE + "/role", _refused, statuses=REFUSED, form=RoleForm)
async def submit_role(call: Call[NoBody, NoQuery]) -> Answer:
    """Give a member another role and go back to the list."""
    return await _changed(call, MemberPatch(role=_ROLE.decode(call).role))


@form_operation(ONE + "/status", _refused, statuses=REFUSED, form=StatusForm)
async def submit_standing(call: Call[NoBody, NoQuery]) -> Answer:
    """Suspend a member, or resume one, and go back to the list."""
    return await _changed(call, MemberPatch(status=_STATUS.decode(call).status))


@form_operation(ONE + "/sign-out", _refused, statuses=REFUSED)
async def submit_sign_out(call: Call[NoBody, NoQuery]) -> Answer:
    """End all sessions of a member and go back to the list."""
    await act(call, call.signed_in, end_sessions, query=SessionsQuery(call.id("member_id")))
    return see(HOME)


@form_operation(ONE + "/removal", _refused, statuses=REFUSED, form=RemovalForm, status=OK)
async def submit_removal(call: Call[NoBody, NoQuery]) -> Answer:
    """Remove a member, and say what ended."""
    query = _removal(_REMOVAL.decode(call))
    removed: Removed = await act(call, call.signed_in, remove_member, query=query)
    return removed_page(call.signed_in, removed)


@form_operation(ONE + "/invitation", _refused, statuses=REFUSED, form=Invitation, status=CREATED)
async def submit_invitation(call: Call[NoBody, NoQuery]) -> Answer:
    """Make another link for a member, and show it, this once."""
    body = _INVITATION.decode(call) if call.raw else Invitation()
    made: Invited = await act(call, call.signed_in, invite_member, body=body)
    return invited_page(call.signed_in, made)


def _removal(form: RemovalForm) -> RemovalQuery:
    if form.to == END_KEYS:
        return RemovalQuery()
    try:
        return RemovalQuery(KeysAfter.HAND_OVER, UUID(form.to))
    except ValueError as fault:
        raise Problem("UZ-REQ-001", "to: no member's id", facts={"parameter": "to"}) from fault


async def _changed(call: Call[NoBody, NoQuery], patch: MemberPatch) -> Answer:
    await act(call, call.signed_in, change_member, body=patch)
    return see(HOME)


async def _page(
    call: Call[NoBody, MemberQuery] | Call[NoBody, NoQuery],
    who: SignedIn,
    query: MemberQuery,
    trouble: Trouble | None = None,
) -> Answer:
    if not may(who, list_members):
        return no_members_page(who, list_members.role or Role.ADMIN, trouble)
    members: MemberPage = await act(call, who, list_members, query=query)
    sessions: SessionList = await act(call, who, list_sessions, query=SessionQuery(Whose.ALL))
    return members_page(
        who,
        members,
        places_of([session.member_id for session in sessions.items]),
        typed=sent_fields(call.raw),
        trouble=trouble,
    )
