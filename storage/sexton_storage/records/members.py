"""Who belongs to a tenant: what is asked of a member, and what becomes of it."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol
from uuid import UUID

import msgspec

from sexton_storage.records.users import MemberStatus, Rank, Role, User


class MemberChange(msgspec.Struct, frozen=True):
    """What is asked of a member; what is None stays as it is."""

    by: str
    """As resolvers are written."""
    rank: Rank
    """The rank of whoever asks."""
    status: MemberStatus | None = None
    role: Role | None = None
    invites: bool = False
    """Somebody who was removed is to come back."""
    heir_id: UUID | None = None
    """At a removal: who is given the member's keys. None: they end."""


class MemberRefusal(StrEnum):
    """Why a member stays as he is."""

    UNKNOWN = "unknown"
    ABOVE = "above"
    """The member, or what he would become, is above the rank of whoever asks."""
    LAST_ADMIN = "last admin"
    """Nobody would be left who can admit others to the tenant, or run the platform."""
    NOT_NOW = "not now"
    """The member's status does not allow it."""
    ELSEWHERE = "elsewhere"
    """The role of somebody from elsewhere is what his issuer says."""
    NO_HEIR = "no heir"
    """Nobody who is admitted to the tenant has the heir's id."""


class MemberChanged(msgspec.Struct, frozen=True):
    """A member as he is now, and how much of his has ended or has another owner."""

    member: User
    sign_ins_ended: int = 0
    keys_ended: int = 0
    keys_handed_over: int = 0


class MemberStore(Protocol):
    async def add(self, user: User) -> None:
        """Raises NameTaken when somebody of this subject signs in here, or the id is taken."""
        ...

    async def find(self, tenant_id: UUID, user_id: UUID) -> User | None: ...
    async def meet(self, user: User) -> User:
        """The tenant's member of this subject; somebody from elsewhere who is not known yet is added.

        One who signs in here is given before one who comes with an issuer's tokens. Of a member who comes
        from elsewhere, role and platform admin are kept as they were claimed last.
        """
        ...

    async def list(
        self, tenant_id: UUID, *, status: MemberStatus | None, page: int, page_size: int
    ) -> tuple[Sequence[User], int]:
        """Oldest first, with the number of all."""
        ...

    async def change(
        self, tenant_id: UUID, user_id: UUID, change: MemberChange
    ) -> MemberChanged | MemberRefusal:
        """Decide, and in the same commit end or hand over what the member came in with.

        Somebody who is not admitted any more has no sign-ins, links or terminals that wait, and after a
        removal no keys.
        """
        ...

    async def platform_admin(self) -> UUID | None:
        """The first who signs in here, is a platform admin, and is admitted."""
        ...
