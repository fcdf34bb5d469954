"""Runners, the tokens that enrol them, and the changes of their standing."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol
from uuid import UUID

import msgspec


class AdminState(StrEnum):
    ACTIVE = "active"
    CORDONED = "cordoned"
    DRAINING = "draining"
    DRAINED = "drained"
    REVOKED = "revoked"


class Runner(msgspec.Struct, frozen=True, gc=False):
    id: UUID
    host_id: str
    sandbox_tier: str
    labels: tuple[str, ...]
    slots: int
    token_hash: bytes
    admin_state: AdminState
    version: int
    created_at: int
    last_seen_at: int | None = None
    tenant_id: UUID | None = None
    """The tenant whose events it is given, for good; None for everybody's."""
    workspace_id: UUID | None = None
    """The only one of that tenant's whose events it is given, if it is limited to one."""
    offers: tuple[str, ...] = ()
    """What it says of itself, beside its labels: see ``sexton_storage.offers``."""
    release: str = ""
    """The program that it is, as it says, such as ``sexton-runner/0.1.0``; empty when it does not."""

    @property
    def abilities(self) -> frozenset[str]:
        """Labels and offers together: all that an agent may need of a runner."""
        return frozenset((*self.labels, *self.offers))


class EnrolmentToken(msgspec.Struct, frozen=True, gc=False):
    token_hash: bytes
    created_by: str
    created_at: int
    expires_at: int
    used_at: int | None = None
    tenant_id: UUID | None = None
    """The scope of the runner that it enrols, as a runner's."""
    workspace_id: UUID | None = None
    labels: tuple[str, ...] = ()
    """Reserved labels that the runner may carry."""


class RunnerChange(msgspec.Struct, frozen=True, gc=False):
    """A runner's standing was changed."""

    id: UUID
    runner_id: UUID
    at: int
    changed_from: AdminState
    changed_to: AdminState
    changed_by: str
    """A person or a key, or ``system:drain``."""


class RunnerStore(Protocol):
    async def enrol(self, runner: Runner, *, enrolment_hash: bytes | None) -> bool:
        """Use up the enrolment token and add the runner in one commit.

        False when the token is unknown, used or expired by the database's clock. None: enrolled by a platform
        admin, without one.
        """
        ...

    async def find_by_hash(self, token_hash: bytes) -> Runner | None: ...
    async def load(self, runner_id: UUID) -> Runner | None: ...
    async def hosts(self, runner_ids: Sequence[UUID]) -> Mapping[UUID, str]:
        """The ``host_id`` of each that there is."""
        ...

    async def list(self, *, page: int, page_size: int, sort: str) -> tuple[Sequence[Runner], int]: ...
    async def save(self, runner: Runner, change: RunnerChange | None = None) -> None:
        """Admin state, offers and release, and what is remembered of a change of state.

        Raises Conflict as ``ZombieStore.save``.
        """
        ...

    async def touch(self, seen: Sequence[tuple[UUID, int]]) -> None:
        """Move ``last_seen_at`` forward for many runners at once."""
        ...

    async def mint_enrolment(self, token: EnrolmentToken) -> None: ...

    async def open_enrolment(self, token_hash: bytes) -> EnrolmentToken | None:
        """The token, if it was neither used nor has expired; only ``enrol`` makes sure of it."""
        ...
