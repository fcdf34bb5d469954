"""Who calls: what is known of the bearer of a token once it has been checked."""

from uuid import UUID

import msgspec

from sexton_http.answers import Problem
from sexton_storage.records.runners import Runner
from sexton_storage.records.sign_ins import BrowserSession
from sexton_storage.records.tenants import PlanTier, Tenant
from sexton_storage.records.users import Rank, Role, User


class Member(msgspec.Struct, frozen=True):
    """A person or a program of a tenant."""

    tenant_id: UUID
    plan: PlanTier
    role: Role
    by: str
    """As resolvers are written: ``user:<id>`` or ``api:<id>``."""
    name: str
    """As a steering message shows it."""
    workspace_id: UUID | None = None
    """Set for a token that is limited to one workspace."""
    platform_admin: bool = False
    browser: UUID | None = None
    """The sign-in, of a browser or a terminal, that this belongs to and ends with."""
    device: UUID | None = None
    """The auth session of the terminal that the token was made for."""
    user_id: UUID | None = None
    """The user's id, if the built-in issuer knows them."""
    person: UUID | None = None
    """The member behind this: who it is, or whose key it is. None: a key of the tenant's own."""
    key: UUID | None = None
    """The API key's id."""
    expires_at: int | None = None
    """When the token ends by itself, in ms."""

    @property
    def rank(self) -> Rank:
        return Rank(self.role, self.platform_admin)

    @property
    def ends_with(self) -> tuple[UUID, ...]:
        """The person, key and sign-in with which this ends."""
        return tuple(one for one in (self.person, self.key, self.browser) if one is not None)


class SignedIn(msgspec.Struct, frozen=True):
    """A person in a browser."""

    session: BrowserSession
    user: User
    tenant: Tenant

    @property
    def shown(self) -> str:
        """What a page calls this person."""
        return self.user.name or self.user.subject

    @property
    def member(self) -> Member:
        return Member(
            tenant_id=self.tenant.id,
            plan=self.tenant.plan_tier,
            role=self.user.role,
            by=f"user:{self.user.id}",
            name=str(self.user.id),
            platform_admin=self.user.platform_admin,
            browser=self.session.id,
            person=self.user.id,
        )


class RunnerHost(msgspec.Struct, frozen=True):
    """A runner, as its record was when the token was last looked up."""

    runner: Runner


class Enroller(msgspec.Struct, frozen=True):
    """Somebody who may add a runner: the bearer of an enrolment token (by its hash), or a platform admin."""

    enrolment_hash: bytes | None
    admin: Member | None = None
    """The platform admin."""


class Approver(msgspec.Struct, frozen=True):
    """The bearer of an agent's approval token."""

    zombie_id: UUID


class Presser(msgspec.Struct, frozen=True):
    """Somebody who pressed a button in a chat; who, and whether it is true, the signed form says."""


class Delegate(msgspec.Struct, frozen=True):
    """The bearer of an agent's key: a program outside that acts for this agent, and for no other."""

    key_id: UUID
    tenant_id: UUID
    workspace_id: UUID
    zombie_id: UUID
    plan: PlanTier
    person: UUID | None = None
    """The member whose key it is."""

    @property
    def by(self) -> str:
        """As resolvers are written."""
        return f"agent:{self.key_id}"

    @property
    def ends_with(self) -> tuple[UUID, ...]:
        """The person and key with which this ends."""
        return (self.key_id,) if self.person is None else (self.person, self.key_id)


class Nobody(msgspec.Struct, frozen=True):
    """No token was asked for."""


Principal = Member | SignedIn | RunnerHost | Enroller | Approver | Presser | Delegate | Nobody
NOBODY = Nobody()


def is_enough(role: Role, needed: Role) -> bool:
    return Rank(role).reaches(needed)


def may_grant(member: Member) -> bool:
    """Whether what an agent's files name is granted with them, when this member makes them active."""
    return is_enough(member.role, Role.OPERATOR)


def check_role(member: Member, needed: Role | None) -> Member:
    """Raises Problem UZ-AUTH-009; None is for whoever is a member at all."""
    if needed is not None and not is_enough(member.role, needed):
        raise Problem("UZ-AUTH-009", f"this needs the role {needed.value}, the caller is {member.role.value}")
    return member


def check_platform(member: Member) -> Member:
    """Raises Problem UZ-AUTH-021 for whoever is no platform admin."""
    if not member.platform_admin:
        raise Problem("UZ-AUTH-021", "only a platform admin may do this")
    return member


def check_covers(member: Member, rank: Rank, what: str) -> None:
    """Raises Problem UZ-AUTH-009 where ``what`` stands above the caller."""
    if not member.rank.covers(rank):
        raise Problem("UZ-AUTH-009", f"{what} is above the caller's rank")


def check_unlimited(principal: Principal) -> None:
    """Raises Problem UZ-AUTH-001 for a token that is limited to one workspace, whichever it is."""
    if isinstance(principal, Member) and principal.workspace_id is not None:
        raise Problem("UZ-AUTH-001", "the token is limited to one workspace, and this is the whole tenant's")
