"""People who sign in, and what they may do."""

from enum import StrEnum
from typing import Protocol
from uuid import UUID

import msgspec


class Role(StrEnum):
    USER = "user"
    OPERATOR = "operator"
    ADMIN = "admin"


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


class UserStore(Protocol):
    async def load(self, user_id: UUID) -> User | None: ...
    async def find_by_subject(self, subject: str) -> User | None: ...
