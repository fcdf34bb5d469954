"""The members of a tenant: their roles, and whether they may sign in."""

from enum import StrEnum
from typing import Annotated
from uuid import UUID

import msgspec

from sexton_http.answers import Problem
from sexton_http.bodies.member_shapes import Invited, MemberItem, MemberPage, Removed
from sexton_http.bodies.shapes import MAX_PAGE, Body, Positive, Query
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Creates, NoBody, NoQuery, operation
from sexton_http.identity.browsers import LINK_MS, offer_link
from sexton_http.identity.principals import check_covers
from sexton_storage.errors import NameTaken
from sexton_storage.records.members import MemberChange, MemberChanged, MemberRefusal
from sexton_storage.records.users import MemberStatus, Rank, Role, User

TAG = "Members"
PATH = "/v1/members"
NAME_CHARS = 128

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_CHARS)]
Subject = Annotated[str, msgspec.Meta(min_length=1, max_length=512)]


class MemberQuery(Query):
    status: MemberStatus | None = None
    page: Positive = 1
    page_size: Annotated[int, msgspec.Meta(ge=1, le=100)] = 25


class NewMember(Body):
    name: Name
    role: Role = Role.USER
    subject: Subject | None = None
    """How a provider names the person, `https://id.example.com#42`. Without it, links are the only way in."""


class Invitation(Body):
    role: Role | None = None
    """The role of a removed member from now on; `user` if none is given."""


class Standing(StrEnum):
    """What a status can be changed to; removing is DELETE."""

    ACTIVE = "active"
    SUSPENDED = "suspended"


class MemberPatch(Body):
    role: Role | None = None
    status: Standing | None = None


class KeysAfter(StrEnum):
    """What becomes of the keys of a removed member."""

    END = "end"
    HAND_OVER = "hand_over"


class RemovalQuery(Query):
    keys: KeysAfter = KeysAfter.END
    to: UUID | None = None
    """The member who is given the keys; without it, the caller."""


@operation("GET", PATH, tag=TAG, role=Role.ADMIN, tenant_wide=True)
async def list_members(call: Call[NoBody, MemberQuery]) -> MemberPage:
    """List the members of the tenant, removed ones too, oldest first."""
    query = call.query
    rows, total = await call.ctx.world.storage.members.list(
        call.member.tenant_id,
        status=query.status,
        page=min(query.page, MAX_PAGE),
        page_size=query.page_size,
    )
    return MemberPage([_item(row) for row in rows], total, query.page, query.page_size)


@operation(
    "POST",
    PATH,
    tag=TAG,
    role=Role.ADMIN,
    tenant_wide=True,
    status=201,
    creates=Creates.AGAIN,
    secret=True,
    codes=("UZ-MEMBER-003",),
)
async def create_member(call: Call[NewMember, NoQuery]) -> Invited:
    """Add a member, with a link that signs one browser in, once, within an hour."""
    body, world = call.body, call.ctx.world
    check_covers(call.member, Rank(body.role), f"the role {body.role.value}")
    user = User(
        id=call.new_id(),
        tenant_id=call.member.tenant_id,
        subject="",
        role=body.role,
        platform_admin=False,
        created_at=world.now_ms(),
        name=body.name,
        changed_by=call.member.by,
    )
    user = msgspec.structs.replace(user, subject=body.subject or f"local:{user.id}")
    try:
        await world.storage.members.add(user)
    except NameTaken as taken:
        made = await world.storage.members.find(user.tenant_id, user.id)
        if made is None:
            raise Problem(
                "UZ-MEMBER-003", f"there is a member {user.subject!r}, here or elsewhere"
            ) from taken
        user = made  # Before its server died.
    return await _invited(call, user)


@operation(
    "PATCH",
    PATH + "/{member_id}",
    tag=TAG,
    role=Role.ADMIN,
    tenant_wide=True,
    codes=("UZ-MEMBER-001", "UZ-MEMBER-002", "UZ-REQ-009"),
)
async def change_member(call: Call[MemberPatch, NoQuery]) -> MemberItem:
    """Give a member another role, suspend, or resume.

    A suspended member is signed out, and all keys and tokens are refused at once; they work again when the
    member is resumed. No one can change a member above their own rank, or raise one above it.
    """
    body = call.body
    status = None if body.status is None else MemberStatus(body.status)
    changed = await _change(call, MemberChange(call.member.by, call.member.rank, status, body.role))
    return _item(changed.member)


@operation(
    "DELETE",
    PATH + "/{member_id}",
    tag=TAG,
    role=Role.ADMIN,
    tenant_wide=True,
    codes=("UZ-MEMBER-001", "UZ-MEMBER-002", "UZ-REQ-001"),
)
async def remove_member(call: Call[NoBody, RemovalQuery]) -> Removed:
    """Remove a member: sign-ins, tokens and links end at once, and keys end or are handed over.

    A removed member stays in the list, and is not admitted again by signing in; only an invitation does that.
    """
    heir = None
    if call.query.keys is KeysAfter.HAND_OVER:
        heir = call.query.to or call.member.person
        if heir is None:
            raise Problem("UZ-REQ-001", "to: say whose the keys are to be", facts={"parameter": "to"})
    elif call.query.to is not None:
        raise Problem("UZ-REQ-001", "to: goes with keys=hand_over only", facts={"parameter": "to"})
    asked = MemberChange(call.member.by, call.member.rank, MemberStatus.REMOVED, heir_id=heir)
    changed = await _change(call, asked)
    return Removed(
        _item(changed.member), changed.sign_ins_ended, changed.keys_ended, changed.keys_handed_over
    )


@operation(
    "POST",
    PATH + "/{member_id}/invitation",
    tag=TAG,
    role=Role.ADMIN,
    tenant_wide=True,
    status=201,
    creates=Creates.AGAIN,
    secret=True,
    codes=("UZ-MEMBER-001", "UZ-REQ-009"),
)
async def invite_member(call: Call[Invitation, NoQuery]) -> Invited:
    """Make a fresh link for a member; it lets a removed one in again."""
    member_id, members = call.id("member_id"), call.ctx.world.storage.members
    known = await members.find(call.member.tenant_id, member_id)
    role = call.body.role
    if known is not None and known.status is MemberStatus.REMOVED:
        role = role or Role.USER
    elif known is not None and role not in {None, known.role}:
        raise Problem("UZ-REQ-009", "a link changes no role", facts={"current_state": known.status.value})
    if known is not None and known.issuer is not None and role is not None:
        role = known.role  # What it is, his next token says.
    asked = MemberChange(call.member.by, call.member.rank, role=role, invites=True)
    changed = await _change(call, asked)
    return await _invited(call, changed.member)


async def _change(
    call: Call[MemberPatch, NoQuery] | Call[NoBody, RemovalQuery] | Call[Invitation, NoQuery],
    asked: MemberChange,
) -> MemberChanged:
    member_id = call.id("member_id")
    done = await call.ctx.world.storage.members.change(call.member.tenant_id, member_id, asked)
    match done:
        case MemberChanged():
            call.services.access.tell(member_id)
            return done
        case MemberRefusal.UNKNOWN:
            raise Problem("UZ-MEMBER-001", f"the tenant has no member {member_id}")
        case MemberRefusal.ABOVE:
            raise Problem("UZ-AUTH-009", "the member, or the role, is above the caller's rank")
        case MemberRefusal.LAST_ADMIN:
            detail = (
                "nobody else could admit people to the tenant, or run the platform: make another admin first"
            )
            raise Problem("UZ-MEMBER-002", detail)
        case MemberRefusal.NO_HEIR:
            raise Problem("UZ-REQ-001", "to: not an active member", facts={"parameter": "to"})
        case MemberRefusal.ELSEWHERE:
            raise Problem("UZ-REQ-009", "the role of this member is what the issuer of the tokens says")
        case MemberRefusal.NOT_NOW:
            detail = "a suspended member can be resumed, and a removed one invited; nothing else is possible"
            raise Problem("UZ-REQ-009", detail)


async def _invited(call: Call[NewMember, NoQuery] | Call[Invitation, NoQuery], member: User) -> Invited:
    ctx = call.ctx
    until = ctx.world.now_ms() + LINK_MS
    url = await offer_link(ctx.world.storage, ctx.settings.base_url, member.id, call.new_token)
    return Invited(_item(member), url, until)


def _item(member: User) -> MemberItem:
    return MemberItem(
        id=member.id,
        name=member.name,
        subject=member.subject,
        issuer=member.issuer,
        role=member.role,
        platform_admin=member.platform_admin,
        status=member.status,
        created_at=member.created_at,
        changed_at=member.changed_at,
        changed_by=member.changed_by,
    )
