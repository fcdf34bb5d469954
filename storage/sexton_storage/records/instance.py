"""What exists once for an installation: its first tenant, its settings, its sweep."""

from typing import Protocol

from sexton_storage.records.tenants import Tenant
from sexton_storage.records.users import User
from sexton_storage.records.workspaces import Workspace


class InstanceStore(Protocol):
    """What exists once for the installation: first tenant, signing key, settings."""

    async def first_start(
        self, tenant: Tenant, workspace: Workspace, user: User, settings: dict[str, bytes]
    ) -> bool:
        """Make the first tenant, workspace and admin and keep ``settings``, in one commit.

        False when done before.
        """
        ...

    async def setting(self, name: str) -> bytes | None: ...
    async def put_setting(self, name: str, value: bytes) -> None: ...
    async def swap_setting(self, name: str, old: bytes, new: bytes) -> bool:
        """Put ``new`` in place of ``old``; False when something else is kept."""
        ...

    async def settle_setting(self, name: str, value: bytes) -> bytes:
        """Keep ``value`` unless one is kept under the name already; gives what is kept then."""
        ...

    async def sweep(self, now: int, *, deliveries: bool = True) -> int:
        """Delete what is past keeping and small; deliveries of webhooks only where that is said.

        Dedup keys beyond the window, follow-ups long over, used or expired enrolment tokens, auth sessions an
        hour after their time, links, browser sessions and sign-ins that are over.
        """
        ...
