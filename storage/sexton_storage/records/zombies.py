"""Agents, and the store that keeps them."""

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import Protocol
from uuid import UUID

import msgspec

from sexton_storage.documents import Json
from sexton_storage.paging import Page
from sexton_storage.records.canaries import Tallies, Trial
from sexton_storage.records.chats import ChatNotice
from sexton_storage.records.configs import ConfigStatus, ConfigVersion
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.grants import GrantStatus
from sexton_storage.records.improvement import Proposal
from sexton_storage.records.tenants import PlanTier


class ZombieStatus(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    STOPPED = "stopped"
    KILLED = "killed"


class Zombie(msgspec.Struct, frozen=True, gc=False):
    id: UUID
    workspace_id: UUID
    tenant_id: UUID
    name: str
    status: ZombieStatus
    version: int
    """Grows by one with every save; a save names the version it saw."""
    config_version_id: UUID
    config_revision: int
    compiled: Json
    required_tags: tuple[str, ...]
    approval_token_hash: bytes
    url_secret_hashes: Mapping[str, str]
    """Webhook source to the SHA-256 (hex) of its url_secret, for triggers without a signature."""
    created_at: int
    updated_at: int
    last_event_at: int | None = None
    """Moved by appended events, not by saves."""
    allows_unsandboxed: bool = False
    """A runner of sandbox tier ``none`` may run it."""
    lending: Json = msgspec.field(default_factory=dict)
    """Which credentials it may be lent, by name; its shape belongs to the actors wing."""
    decides_by_token: bool = True
    """Whether its approval token and its own chat app may approve: an operator or above has set them up."""
    canary: Json = msgspec.field(default_factory=dict)
    """The newest trial of one of its versions, empty where there was none; the actors wing's, but for its
    ``id`` and ``status``."""
    pin: Json = msgspec.field(default_factory=dict)
    """The version that it is pinned to, empty where it is pinned to none; its shape is the actors wing's."""


class AgentSummary(msgspec.Struct, frozen=True, gc=False):
    """What a list shows of an agent; of its configuration it holds the triggers alone."""

    id: UUID
    name: str
    status: ZombieStatus
    required_tags: tuple[str, ...]
    triggers: Sequence[Json]
    created_at: int
    updated_at: int
    last_event_at: int | None = None


def summary_of(zombie: Zombie) -> AgentSummary:
    """What a list shows of an agent that was read whole."""
    return AgentSummary(
        id=zombie.id,
        name=zombie.name,
        status=zombie.status,
        required_tags=zombie.required_tags,
        triggers=zombie.compiled.get("triggers", ()),
        created_at=zombie.created_at,
        updated_at=zombie.updated_at,
        last_event_at=zombie.last_event_at,
    )


class AgentStanding(msgspec.Struct, frozen=True, gc=False):
    """Where an agent belongs, and whether it is there for anybody."""

    workspace_id: UUID
    tenant_id: UUID
    plan_tier: PlanTier
    status: ZombieStatus


class SeenAgent(msgspec.Struct, frozen=True, gc=False):
    """Enough of an agent to tell whether what is known of it is still so."""

    version: int
    workspace_paused: bool


class ZombieStore(Protocol):
    async def create(self, zombie: Zombie, config: ConfigVersion) -> None:
        """Raises NameTaken when the workspace has an agent of that name."""
        ...

    async def load(self, zombie_id: UUID) -> Zombie | None:
        """With the compiled form of its active configuration."""
        ...

    async def load_with_pause(
        self, zombie_id: UUID, known: Zombie | None = None
    ) -> tuple[Zombie, bool] | None:
        """Load it, and whether its workspace is paused, by one question.

        ``known``: as it was read before; a configuration that it still has is not read again.
        """
        ...

    async def standing(self, zombie_id: UUID) -> AgentStanding | None:
        """Where the agent belongs, without what it is made of."""
        ...

    async def load_many(self, zombie_ids: Sequence[UUID]) -> Sequence[Zombie]:
        """Load those that there are, each as ``load`` gives it, in the order of the ids."""
        ...

    async def names(self, zombie_ids: Collection[UUID]) -> Mapping[UUID, str]:
        """The name of each of these that there is."""
        ...

    async def look(self, zombie_ids: Collection[UUID]) -> Mapping[UUID, SeenAgent]:
        """Tell the version of each of these that there is."""
        ...

    async def load_config(self, config_version_id: UUID) -> ConfigVersion | None: ...
    async def load_version(self, zombie_id: UUID, revision: int) -> ConfigVersion | None:
        """Give the agent's version of this number; None when there is none, or none any more."""
        ...

    async def list_configs(
        self, zombie_id: UUID, *, limit: int, before: Page | None = None
    ) -> Sequence[ConfigVersion]:
        """Newest first."""
        ...

    async def newest_revision(self, zombie_id: UUID) -> int:
        """The newest number of the agent's versions; 0 when there are none."""
        ...

    async def keep_config(self, config: ConfigVersion, before: ConfigStatus | None) -> None:
        """Keep a version that stays inactive: a new one (``before`` None), or one that was ``before``.

        Raises Conflict when the agent is gone, the revision is taken, or the version is not as it was.
        """
        ...

    async def list(
        self,
        workspace_id: UUID,
        *,
        limit: int,
        after: Page | None = None,
        status: ZombieStatus | None = None,
        name_glob: str | None = None,
        lending: GrantStatus | None = None,
    ) -> Sequence[Zombie]:
        """Newest first. ``lending``: only those with a grant of a credential of this status."""
        ...

    async def summaries(
        self,
        workspace_id: UUID,
        *,
        limit: int,
        after: Page | None = None,
        status: ZombieStatus | None = None,
        name_glob: str | None = None,
    ) -> Sequence[AgentSummary]:
        """The same agents as ``list`` gives, without what a list does not show."""
        ...

    async def count(self, workspace_id: UUID) -> int: ...
    async def save(
        self,
        zombie: Zombie,
        frames: Sequence[NewFrame],
        config: ConfigVersion | None = None,
        proposal: Proposal | None = None,
        notice: ChatNotice | None = None,
    ) -> None:
        """Save where ``version`` is one below ``zombie.version``, else Conflict.

        ``config`` becomes the active version; a new one whose revision is taken: Conflict. ``proposal`` is
        kept as decided in the same commit; one that is not pending any more: Conflict. ``notice`` is told in
        the workspace's chat; without a connected one it is not kept. Raises NameTaken as ``create``.
        """
        ...

    async def kill(self, zombie: Zombie, frames: Sequence[NewFrame], now: int) -> Sequence[UUID]:
        """Save as killed and end all that is open in one commit.

        Waiting events cancelled, pending gates auto_killed by system:kill, live leases cancelling. Gives the
        ids of those leases. Raises Conflict as ``save``.
        """
        ...

    async def delete(self, zombie_id: UUID) -> bool:
        """Purge the record and all that belongs to it; False when there is none.

        What that is stands in ``postgres/stores/purge.py`` and ``memory/purge.py``. Money that is gone stays
        accounted for. History goes in portions and the record last, so what a crash interrupts can be done
        again.
        """
        ...

    async def trials(self, *, after: UUID | None, limit: int) -> Sequence[Trial]:
        """Give the trials that go on, by agent, for a paged walk."""
        ...

    async def tallies(self, zombie_id: UUID, trial_id: UUID) -> Tallies:
        """Count the runs of a trial that have ended so far, exactly."""
        ...

    async def spend(self, zombie_id: UUID, now: int) -> tuple[int, int]:
        """Nanos charged in the UTC day and in the UTC month of ``now``."""
        ...
