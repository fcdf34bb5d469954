"""The events a runner may be given, and the labels it may carry only with permission."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final
from uuid import UUID

import msgspec

from sexton_storage.records.events import ReadyAgent
from sexton_storage.records.runners import EnrolmentToken, Runner

RESERVED: Final = "reserved:"
"""A label that begins so is carried only by a runner whose enrolment token allowed it."""


class ScopeKind(StrEnum):
    PLATFORM = "platform"
    TENANT = "tenant"
    WORKSPACE = "workspace"


class Scope(msgspec.Struct, frozen=True, gc=False):
    """A scope of events: everybody's, one tenant's, or one workspace's (its tenant is named too)."""

    tenant_id: UUID | None = None
    workspace_id: UUID | None = None

    @property
    def kind(self) -> ScopeKind:
        """How wide it is.

        >>> Scope().kind.value, Scope(UUID(int=1)).kind.value, Scope(UUID(int=1), UUID(int=2)).kind.value
        ('platform', 'tenant', 'workspace')
        """
        if self.workspace_id is not None:
            return ScopeKind.WORKSPACE
        return ScopeKind.PLATFORM if self.tenant_id is None else ScopeKind.TENANT


PLATFORM: Final = Scope()


def scope_of(of: Runner | EnrolmentToken) -> Scope:
    """Say whose events the runner, or the one that the token enrols, is given."""
    return PLATFORM if of.tenant_id is None else Scope(of.tenant_id, of.workspace_id)


def scopes_with(agent: ReadyAgent) -> tuple[Scope, Scope, Scope]:
    """Say which scopes the agent is in."""
    return PLATFORM, Scope(agent.tenant_id), Scope(agent.tenant_id, agent.workspace_id)


def is_within(scope: Scope, tenant_id: UUID | None, workspace_id: UUID | None) -> bool:
    """Say whether what belongs to them is in the scope; None: to whom is not known, or does not matter.

    >>> mine, here, there = UUID(int=1), UUID(int=2), UUID(int=3)
    >>> [is_within(s, mine, here) for s in (PLATFORM, Scope(mine), Scope(mine, here), Scope(mine, there))]
    [True, True, True, False]
    >>> is_within(Scope(UUID(int=9)), mine, here), is_within(Scope(mine, here), mine, None)
    (False, False)
    """
    return scope.tenant_id in {None, tenant_id} and scope.workspace_id in {None, workspace_id}


def without_leave(labels: Iterable[str], allowed: Iterable[str]) -> tuple[str, ...]:
    """Give the reserved ones among the labels that were not allowed.

    >>> without_leave(("gpu", "reserved:eu", "reserved:pci"), ("reserved:eu",))
    ('reserved:pci',)
    """
    leave = frozenset(allowed)
    return tuple(label for label in labels if label.startswith(RESERVED) and label not in leave)
