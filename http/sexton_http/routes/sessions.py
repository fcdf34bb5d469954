"""Sessions of a tenant's people, in browsers and terminals: listed, and ended one by one or all at once."""

from enum import StrEnum
from uuid import UUID

from sexton_http.answers import Problem
from sexton_http.bodies.shapes import Query, Shape
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery, operation
from sexton_http.identity.principals import check_covers, check_role
from sexton_http.identity.sign_in_terms import SignInTerms
from sexton_storage.records.sign_ins import BrowserSession, SignInKind
from sexton_storage.records.users import Role, User

TAG = "Sessions"
PATH = "/v1/sessions"
MAX_LISTED = 200


class Whose(StrEnum):
    """Which sessions are listed."""

    OWN = "own"
    ALL = "all"


class SessionQuery(Query):
    whose: Whose = Whose.OWN
    """`all` of the tenant's is for admins."""
    member_id: UUID | None = None
    """The sessions of one member; another than the caller is for admins."""


class SessionsQuery(Query):
    member_id: UUID | None = None
    """Another than the caller is for admins."""


class SessionItem(Shape):
    id: UUID
    member_id: UUID
    kind: SignInKind
    name: str
    created_at: int
    last_used_at: int
    expires_at: int
    current: bool
    """Whether the caller's own token belongs to it."""


class SessionList(Shape):
    items: list[SessionItem]
    total: int


class SessionsEnded(Shape):
    ended: int


@operation("GET", PATH, tag=TAG, tenant_wide=True, codes=("UZ-AUTH-009", "UZ-MEMBER-001"))
async def list_sessions(call: Call[NoBody, SessionQuery]) -> SessionList:
    """List where the caller, a member, or everybody is signed in, newest first; 200 at most."""
    member, sign_ins = call.member, call.ctx.world.storage.sign_ins
    if call.query.whose is Whose.ALL and call.query.member_id is None:
        check_role(member, Role.ADMIN)
        rows = await sign_ins.list_tenant(member.tenant_id, user_id=None, limit=MAX_LISTED)
    else:
        person = await _person(call, call.query.member_id)
        rows = await sign_ins.list_tenant(member.tenant_id, user_id=person.id, limit=MAX_LISTED)
    return SessionList([_item(row, member.browser, call.ctx.settings.sign_ins) for row in rows], len(rows))


@operation(
    "DELETE",
    PATH + "/{session_id}",
    tag=TAG,
    role=Role.VIEWER,
    tenant_wide=True,
    status=204,
    codes=("UZ-AUTH-005", "UZ-AUTH-009"),
)
async def end_session(call: Call[NoBody, NoQuery]) -> None:
    """End a session of the caller's own, or as an admin of anybody's of at most the caller's rank.

    Its tokens and streams end at once, on every node.
    """
    session_id, storage = call.id("session_id"), call.ctx.world.storage
    session = await storage.sign_ins.load_session(session_id)
    owner = None if session is None else await storage.members.find(call.member.tenant_id, session.user_id)
    if owner is None or (owner.id != call.member.person and call.member.role is not Role.ADMIN):
        raise Problem("UZ-AUTH-005", f"there is no session {session_id} that the caller could end")
    if owner.id != call.member.person:
        check_covers(call.member, owner.rank, "the member")
    await call.services.browsers.sign_out(session_id)


@operation(
    "DELETE", PATH, tag=TAG, role=Role.VIEWER, tenant_wide=True, codes=("UZ-AUTH-009", "UZ-MEMBER-001")
)
async def end_sessions(call: Call[NoBody, SessionsQuery]) -> SessionsEnded:
    """End all sessions of the caller, this one too, or as an admin all of a member's."""
    person = await _person(call, call.query.member_id)
    if person.id != call.member.person:
        check_covers(call.member, person.rank, "the member")
    ended = await call.ctx.world.storage.sign_ins.sign_out_all(person.id)
    call.services.access.tell(*ended)
    return SessionsEnded(len(ended))


async def _person(call: Call[NoBody, SessionQuery] | Call[NoBody, SessionsQuery], asked: UUID | None) -> User:
    """The person whose sessions are meant. Raises Problem UZ-AUTH-009 or UZ-MEMBER-001."""
    member = call.member
    wanted = asked or member.person
    if wanted != member.person:
        check_role(member, Role.ADMIN)
    found = None if wanted is None else await call.ctx.world.storage.members.find(member.tenant_id, wanted)
    if found is None:
        who = (
            "a key of the tenant's own has no sessions; say member_id"
            if wanted is None
            else f"no member {wanted}"
        )
        raise Problem("UZ-MEMBER-001", who)
    return found


def _item(session: BrowserSession, current: UUID | None, terms: SignInTerms) -> SessionItem:
    return SessionItem(
        id=session.id,
        member_id=session.user_id,
        kind=session.kind,
        name=session.name,
        created_at=session.created_at,
        last_used_at=session.seen_at,
        expires_at=terms.ends_at(session),
        current=session.id == current,
    )
