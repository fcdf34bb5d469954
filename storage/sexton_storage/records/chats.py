"""What is shown of gates in a chat, and what is told there once: where to, and what was shown already."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

import msgspec

from sexton_storage.documents import Json
from sexton_storage.records.gates import Gate


class ChatInstall(msgspec.Struct, frozen=True, gc=False):
    """One workspace's channel. The bot's token is a credential of the vault."""

    workspace_id: UUID
    tenant_id: UUID
    team_id: str
    team_name: str
    channel_id: str
    channel_name: str
    bot_user_id: str
    installed_by: str
    created_at: int
    updated_at: int
    revoked_at: int | None = None
    """When the platform first refused the token."""


class ChatPost(msgspec.Struct, frozen=True, gc=False):
    """The message about one gate. The row goes once the message shows the outcome."""

    gate_id: UUID
    workspace_id: UUID
    channel_id: str
    """Where it was shown, or was last tried to be."""
    message_id: str | None
    """The platform's own name for it; None until it is known."""
    attempts: int
    """Grows with each claim, so that a late claimant's word is not taken."""
    unsure: bool
    """As a claim gives it: an earlier try may have been heard, but nobody knows."""
    due_at: int
    """Claimed until then, or not to be tried before."""
    created_at: int


class ChatWork(msgspec.Struct, frozen=True, gc=False):
    post: ChatPost
    gate: Gate | None
    """None when the gate was purged."""


class ChatNotice(msgspec.Struct, frozen=True, gc=False):
    """That a guard has ended a trial. The row is written in that commit, and goes once it was told."""

    id: UUID
    """The trial; the key by which the platform knows the message again."""
    zombie_id: UUID
    workspace_id: UUID
    zombie_name: str
    facts: Json
    """The trial as it ended; its shape is the actors wing's."""
    attempts: int
    """Grows with each claim, so that a late claimant's word is not taken."""
    due_at: int
    """Claimed until then, or not to be tried before."""
    created_at: int


class ChatStore(Protocol):
    async def load(self, workspace_id: UUID) -> ChatInstall | None: ...
    async def save(self, install: ChatInstall) -> None:
        """Create or replace; what is still to be shown or closed becomes due at once."""
        ...

    async def revoke(self, workspace_id: UUID, now: int) -> None:
        """Note that the token is refused; the first time stands."""
        ...

    async def remove(self, workspace_id: UUID) -> bool:
        """The install, what is known of its messages and what was to be told; False when there is none."""
        ...

    async def waiting(self, now: int, *, limit: int) -> Sequence[UUID]:
        """Workspaces with a good install and something to be done now."""
        ...

    async def claim(self, workspace_id: UUID, now: int, until: int) -> ChatWork | None:
        """The next thing to be done there, kept from others ``until`` then; None when there is none.

        A pending gate that is not shown, or a message whose gate is not pending any more. Of a workspace
        without a good install, nothing.
        """
        ...

    async def keep(self, post: ChatPost) -> bool:
        """Save what came of a claim; False when it was claimed again since (its ``attempts`` differ)."""
        ...

    async def forget(self, post: ChatPost) -> bool:
        """Nothing is left to be done for it; False as ``keep``."""
        ...

    async def claim_notice(self, workspace_id: UUID, now: int, until: int) -> ChatNotice | None:
        """Take the next thing to be told there, kept from others ``until`` then.

        None when there is none, or no good install.
        """
        ...

    async def postpone_notice(self, notice: ChatNotice) -> bool:
        """Save when it is due again; False as ``keep``."""
        ...

    async def forget_notice(self, notice: ChatNotice) -> bool:
        """It was told, or never will be; False as ``keep``."""
        ...
