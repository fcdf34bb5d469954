"""An agent's record as an actor holds it, with its manifest."""

from typing import Final

from sexton_actors.held.record import Held
from sexton_actors.manifest.model import Manifest, from_json
from sexton_actors.refusal import Refusal
from sexton_actors.run_versions import RunVersion
from sexton_actors.world import World
from sexton_engine import Context
from sexton_storage.records.zombies import Zombie

VERSIONS_KEPT: Final = 4
"""How many versions beside the active one an actor keeps at hand."""


class HeldAgent(Held[Zombie]):
    """As fresh as this node keeps records: another node may have changed it."""

    __slots__ = ("_versions", "manifest", "workspace_paused")

    subject = "The agent's record"

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context, world, fresh_ms=world.fresh_ms)
        self.manifest: Manifest | None = None
        self.workspace_paused = False
        """As of the last read."""
        self._versions: dict[int, RunVersion] = {}
        """Versions that events have asked for, by their numbers; the files of a version never change."""

    def unknown(self) -> Refusal:
        return Refusal("UZ-ZMB-009", f"There is no agent {self.id}.")

    async def _read(self) -> Zombie | None:
        found = await self.world.storage.zombies.load_with_pause(self.id, self.record)
        if found is None:
            return None
        zombie, self.workspace_paused = found
        return zombie

    def _version(self, record: Zombie) -> int:
        return record.version

    def _may_have_changed(self, mark: int) -> bool:
        return self.world.changed_records.since(mark, self.id)

    def adopt(self, record: Zombie) -> Zombie:
        """Take the record over; the manifest is read again when the configuration has changed."""
        if self.record is None or record.config_version_id != self.record.config_version_id:
            self.manifest = from_json(record.compiled)
        return super().adopt(record)

    def forget(self) -> None:
        """There is none, or it was purged."""
        super().forget()
        self.manifest = None
        self._versions.clear()

    async def version(self, number: int) -> RunVersion | Refusal:
        """The agent's version of this number, if it was ever compiled. Raises StorageUnavailable."""
        known = self._versions.get(number)
        if known is not None:
            return known
        config = await self.world.storage.zombies.load_version(self.id, number)
        if config is None:
            return Refusal("UZ-HARNESS-001", f"The agent has no version {number}.")
        if not config.compiled:
            return Refusal("UZ-HARNESS-002", f"Version {number} is {config.status}; compile it first.")
        if len(self._versions) >= VERSIONS_KEPT:
            self._versions.clear()
        found = self._versions[number] = RunVersion(config.id, number, from_json(config.compiled))
        return found
