"""The version of an agent that a run is given: the active one, or another that its event asks for."""

from uuid import UUID

import msgspec

from sexton_actors.loans import withheld
from sexton_actors.manifest.model import Manifest
from sexton_actors.manifest.resources import needs_of
from sexton_storage.records.zombies import Zombie

CANNOT_RUN = "UZ-HARNESS-003"


class RunVersion(msgspec.Struct, frozen=True):
    """One version of an agent's files, ready to be run."""

    config_version_id: UUID
    number: int
    """The place that it has among the agent's versions, from 1."""
    manifest: Manifest


def active_version(zombie: Zombie, manifest: Manifest) -> RunVersion:
    """Give the version that an event is run under which asks for none."""
    return RunVersion(zombie.config_version_id, zombie.config_revision, manifest)


def fault_of(zombie: Zombie, version: RunVersion) -> str | None:
    """Say why the agent cannot be run under one of its versions now; None: it can.

    Runners are found for the active version, so another must be content with the same ones.
    """
    manifest = version.manifest
    if version.config_version_id == zombie.config_version_id:
        return None
    if missing := withheld(zombie.lending, manifest):
        return f"Version {version.number} needs {', '.join(missing)}, which the agent may not be lent."
    if other := [need for need in needs_of(manifest) if need not in zombie.required_tags]:
        detail = f"Version {version.number} needs a runner with {', '.join(other)}"
        return f"{detail}, which the active version does not ask for."
    if zombie.allows_unsandboxed and not manifest.allow_unsandboxed:
        return f"Version {version.number} needs a sandbox, and the active version may be run without one."
    return None
