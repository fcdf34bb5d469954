"""What of the vault, and of what the agent remembers, goes out with a lease."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from sexton_actors.manifest.model import Manifest
from sexton_actors.terms import LEASE_MEMORY_BYTES, LEASE_MEMORY_COUNT
from sexton_actors.world import World
from sexton_storage.records.grants import Grant, GrantStatus
from sexton_storage.records.memories import Memory

NONE = "none"
"""The status of a service that nobody has asked for."""


class MissingCredential(msgspec.Struct, frozen=True):
    """The run must not start without it."""

    name: str
    label: str = "secret_missing"

    @property
    def detail(self) -> str:
        return f"The vault has no credential named {self.name}."


class CredentialNames(NamedTuple):
    """Credentials by name: those without which nothing runs, and those that are lent if there are any."""

    needed: tuple[str, ...]
    optional: tuple[str, ...]


def grant_statuses(manifest: Manifest, grants: Sequence[Grant]) -> dict[str, str]:
    """Each service that the manifest names, or the agent asked for, with the status of its grant."""
    return dict.fromkeys(manifest.integrations, NONE) | {g.service: g.status.value for g in grants}


def credential_names(manifest: Manifest, services: Mapping[str, str]) -> CredentialNames:
    """What may leave the vault: a service's credential, which is the one of its name, only when granted."""
    granted = [service for service, status in services.items() if status == GrantStatus.APPROVED]
    needed = (*manifest.ungated_credentials, *(name for name in manifest.credentials if name in granted))
    needed = tuple(dict.fromkeys(needed))
    return CredentialNames(needed, tuple(name for name in granted if name not in needed))


async def open_credentials(
    workspace_id: UUID, names: CredentialNames, world: World
) -> dict[str, Mapping[str, Any]] | MissingCredential:
    """The credentials' data by name."""
    secrets: dict[str, Mapping[str, Any]] = {}
    for name in (*names.needed, *names.optional):
        data = await world.secrets.open(workspace_id, name)
        if data is not None:
            secrets[name] = data
        elif name in names.needed:
            return MissingCredential(name)
    return secrets


async def memories_payload(zombie_id: UUID, world: World) -> list[dict[str, Any]]:
    """As much of what the agent remembers as a lease holds."""
    found = await world.storage.memories.of_lease(zombie_id, limit=LEASE_MEMORY_COUNT)
    return [memory_payload(entry) for entry in within(found, LEASE_MEMORY_BYTES)]


def within(entries: Sequence[Memory], limit: int) -> list[Memory]:
    """The first of them, as long as keys and contents have at most that many bytes.

    >>> [m.key for m in within([Memory(UUID(int=1), key, "x" * 9, "core", 0) for key in "abc"], 20)]
    ['a', 'b']
    """
    fitting, size = [], 0
    for entry in entries:
        size += len(entry.key.encode()) + len(entry.content.encode())
        if size > limit:
            break
        fitting.append(entry)
    return fitting


def memory_payload(entry: Memory) -> dict[str, Any]:
    return {
        "key": entry.key,
        "content": entry.content,
        "category": entry.category,
        "updated_at": entry.updated_at,
    }
