"""People who sign in, and what they may do."""

from enum import StrEnum
from typing import Protocol
from uuid import UUID

import msgspec


class Role(StrEnum):
    """What somebody may do, from the least to the most: a viewer sees and changes nothing."""

    VIEWER = "viewer"
    USER = "user"
    OPERATOR = "operator"
    ADMIN = "admin"


class Rank(msgspec.Struct, frozen=True, gc=False):
    """How high a person or a key stands: by role, and beside it whether the platform is theirs to run."""

    role: Role
    platform_admin: bool = False

    def reaches(self, needed: Role) -> bool:
        """Whether what needs this role may be done.

        >>> Rank(Role.USER).reaches(Role.VIEWER), Rank(Role.VIEWER, platform_admin=True).reaches(Role.USER)
        (True, False)
        """
        return _ORDER[self.role] >= _ORDER[needed]

    def covers(self, other: "Rank") -> bool:
        """Whether nothing of the other is above this: the one rule for who may grant, change or end what.

        >>> admin, platform = Rank(Role.ADMIN), Rank(Role.USER, platform_admin=True)
        >>> admin.covers(Rank(Role.OPERATOR)), admin.covers(admin), Rank(Role.USER).covers(admin)
        (True, True, False)
        >>> admin.covers(platform), platform.covers(admin)
        (False, False)
        """
        return self.reaches(other.role) and (self.platform_admin or not other.platform_admin)

    def capped(self, by: "Rank") -> "Rank":
        """What is left of this under somebody who may do no more than that.

        >>> Rank(Role.ADMIN, platform_admin=True).capped(Rank(Role.OPERATOR))
        Rank(role=<Role.OPERATOR: 'operator'>, platform_admin=False)
        """
        role = min(self.role, by.role, key=_ORDER.__getitem__)
        return Rank(role, self.platform_admin and by.platform_admin)


_ORDER = {role: place for place, role in enumerate(Role)}


class MemberStatus(StrEnum):
    """Whether somebody is admitted. Who was removed is remembered, so as not to be admitted again unasked."""

    ACTIVE = "active"
    SUSPENDED = "suspended"
    REMOVED = "removed"


class User(msgspec.Struct, frozen=True, gc=False):
    id: UUID
    tenant_id: UUID
    subject: str
    """Issuer and subject, ``local:admin`` for the user made at first start."""
    role: Role
    platform_admin: bool
    created_at: int
    name: str = ""
    """To be shown; empty: the subject is."""
    status: MemberStatus = MemberStatus.ACTIVE
    changed_at: int | None = None
    """When role or status were changed last."""
    changed_by: str = ""
    issuer: str | None = None
    """The issuer of the tokens that this person comes with; None for somebody who signs in at this server."""

    @property
    def rank(self) -> Rank:
        return Rank(self.role, self.platform_admin)

    @property
    def is_admitted(self) -> bool:
        return self.status is MemberStatus.ACTIVE


class UserStore(Protocol):
    async def load(self, user_id: UUID) -> User | None: ...
    async def find_by_subject(self, subject: str) -> User | None:
        """Somebody who signs in at this server."""
        ...
