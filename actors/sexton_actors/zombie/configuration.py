"""Gives an agent other files: at once, or as a version that is drafted, compiled and activated."""

from collections.abc import Awaitable, Callable
from uuid import UUID

import msgspec
from msgspec.structs import replace

from sexton_actors.canaries.transitions import Ending
from sexton_actors.loans import Files, after_files, changed_frames
from sexton_actors.manifest.model import from_json
from sexton_actors.manifest.problems import ManifestRejected
from sexton_actors.pins import Pin, holding, may_become_active, pin_of
from sexton_actors.protocol import zombie as m
from sexton_actors.refusal import Refusal
from sexton_actors.run_versions import RunVersion
from sexton_actors.zombie import transitions, versions
from sexton_actors.zombie.canary_ends import ended_by_activation
from sexton_actors.zombie.compiled_version import Compiled
from sexton_actors.zombie.pins import hold_files, newest_files, with_pin
from sexton_actors.zombie.record import Decision, HeldZombie
from sexton_actors.zombie.transitions import Change, Unchanged
from sexton_actors.zombie.versions import Secrets
from sexton_storage.records.configs import ConfigStatus, ConfigVersion
from sexton_storage.records.improvement import Proposal
from sexton_storage.records.zombies import Zombie, ZombieStatus


class Next(msgspec.Struct, frozen=True):
    """What an agent is to be given: a version, and the proposal that it comes from, as decided."""

    compiled: Compiled
    proposal: Proposal | None = None
    ending: Ending | None = None
    """How the trial of this version ends with it."""


class Waiting(msgspec.Struct, frozen=True):
    """What a pinned agent is given: its files wait as a version."""

    pin: Pin


class Activator(msgspec.Struct, frozen=True):
    """Who makes a version active; with ``may_grant`` what its files name is granted with it."""

    by: str
    may_grant: bool


Choose = Callable[[Zombie, int], Awaitable[Next | Waiting | Unchanged | Refusal]]


class Configuration:
    """Every way to another active version goes through here."""

    def __init__(self, held: HeldZombie) -> None:
        self._held = held

    def __repr__(self) -> str:
        return f"<Configuration {self._held!r}>"

    # --- at once --------------------------------------------------------------------------------------------

    async def reconfigure(self, message: m.Reconfigure) -> m.Configured | Refusal:
        """New files are a new version, compiled and active in one commit; the same files change nothing.

        Those of a pinned agent are kept as a version that waits.
        """
        if message.status == ZombieStatus.KILLED:
            return Refusal("UZ-REQ-001", "/status: one request cannot kill an agent and give it new files.")

        async def choose(zombie: Zombie, now: int) -> Next | Waiting | Unchanged | Refusal:
            active = await self._held.world.storage.zombies.load_config(zombie.config_version_id)
            if active is None:
                return self._held.unknown()
            newest = await newest_files(self._held, zombie, active)
            source, trigger = message.source_markdown, message.trigger_markdown
            files = (
                newest.source_markdown if source is None else source,
                newest.trigger_markdown if trigger is None else trigger,
            )
            if files == (newest.source_markdown, newest.trigger_markdown):
                return Unchanged()
            pin = pin_of(zombie.pin)
            if pin is not None and files == (active.source_markdown, active.trigger_markdown):
                return Waiting(holding(pin, active.revision))
            compiled = await self.compiled(files, now, message.by)
            if isinstance(compiled, ManifestRejected):
                return versions.refused(compiled)
            if pin is not None:
                return Waiting(await hold_files(self._held, zombie, pin, compiled))
            return Next(compiled)

        by = Activator(message.by, may_grant=message.may_grant)
        return await self.activate(choose, by, message.status)

    async def compiled(self, files: tuple[str, str], now: int, author: str) -> Compiled | ManifestRejected:
        """The agent's next version of these files."""
        return versions.compile_version(await self._draft(files, now, author))

    async def _draft(self, files: tuple[str, str], now: int, author: str) -> ConfigVersion:
        world, zombie_id = self._held.world, self._held.id
        revision = await world.storage.zombies.newest_revision(zombie_id) + 1
        return versions.draft(world.new_id(), zombie_id, revision, files, now, author=author)

    async def activate(
        self, choose: Choose, activator: Activator, status: str | None = None
    ) -> m.Configured | Refusal:
        """Make what ``choose`` says the active version; asked again when the record has changed meanwhile."""
        made: list[tuple[Compiled, Secrets]] = []
        by = activator.by

        async def consider(zombie: Zombie, now: int) -> Decision:
            made.clear()
            asked = transitions.change_status(zombie, status, by, now) if status else Unchanged()
            refusal = transitions.may_be_configured(zombie)
            if refusal or isinstance(asked, Refusal):
                return refusal or asked
            chosen = await choose(zombie, now)
            before = asked.zombie if isinstance(asked, Change) else zombie
            if isinstance(chosen, Waiting):
                waits = with_pin(replace(before, version=zombie.version), chosen.pin, by, now)
                return replace(
                    waits, frames=(*(asked.frames if isinstance(asked, Change) else ()), *waits.frames)
                )
            if not isinstance(chosen, Next):
                return asked if isinstance(chosen, Unchanged) else chosen
            config = chosen.compiled.config
            if refusal := may_become_active(pin_of(zombie.pin), config.revision):
                return refusal
            manifest = chosen.compiled.manifest
            world = self._held.world
            if refusal := await world.entitlements.may_hold(
                zombie.tenant_id, manifest, from_json(zombie.compiled)
            ):
                return refusal
            secrets = versions.url_secrets(manifest, zombie.url_secret_hashes, world.new_token)
            made.append((chosen.compiled, secrets))
            lending = after_files(zombie.lending, Files(manifest, by, activator.may_grant), now)
            change = transitions.reconfigure(before, chosen.compiled, secrets.hashes, by, now)
            granted = changed_frames(zombie.id, zombie.lending, lending, by, now)
            version = RunVersion(config.id, config.revision, manifest)
            trial = await ended_by_activation(world, zombie, version, by=by, ending=chosen.ending, now=now)
            return replace(
                change,
                zombie=replace(
                    change.zombie, version=zombie.version + 1, lending=lending, canary=trial.canary
                ),
                frames=(
                    *(asked.frames if isinstance(asked, Change) else ()),
                    *change.frames,
                    *granted,
                    *trial.frames,
                ),
                proposal=chosen.proposal,
                notice=trial.notice,
            )

        zombie = await self._held.change_after(consider)
        if isinstance(zombie, Refusal):
            return zombie
        return self._configured(zombie, *made[0]) if made else m.Configured(zombie)

    def _configured(self, zombie: Zombie, compiled: Compiled, secrets: Secrets) -> m.Configured:
        paths = versions.webhook_paths(zombie.id, compiled.manifest, secrets.new)
        return m.Configured(zombie, paths, new_secrets=bool(secrets.new))

    # --- step by step ---------------------------------------------------------------------------------------

    async def draft(self, message: m.DraftVersion) -> ConfigVersion | Refusal:
        files = (message.source_markdown, message.trigger_markdown)
        zombies = self._held.world.storage.zombies

        async def keep(zombie: Zombie, now: int) -> ConfigVersion | Refusal:
            if refusal := transitions.may_be_configured(zombie):
                return refusal
            newest = await zombies.list_configs(zombie.id, limit=1)
            for config in newest:
                same = files == (config.source_markdown, config.trigger_markdown)
                if same and config.status is ConfigStatus.DRAFT:
                    return config
            config = await self._draft(files, now, message.by)
            await zombies.keep_config(config, None)
            return config

        return await self._held.until_kept(keep)

    async def compile(self, message: m.CompileVersion) -> ConfigVersion | Refusal:
        async def keep(zombie: Zombie, _now: int) -> ConfigVersion | Refusal:
            if refusal := transitions.may_be_configured(zombie):
                return refusal
            config = await self._version(zombie, message.config_version_id)
            if isinstance(config, Refusal) or config.status is not ConfigStatus.DRAFT:
                return config
            judged = versions.judged(config)
            await self._held.world.storage.zombies.keep_config(judged, ConfigStatus.DRAFT)
            return judged

        return await self._held.until_kept(keep)

    async def activate_version(self, message: m.ActivateVersion) -> m.Configured | Refusal:
        async def choose(zombie: Zombie, _now: int) -> Next | Unchanged | Refusal:
            config = await self._version(zombie, message.config_version_id)
            if isinstance(config, Refusal):
                return config
            if config.id == zombie.config_version_id:
                return Unchanged()
            if refusal := versions.may_activate(config):
                return refusal
            compiled = versions.compile_version(config)
            if isinstance(compiled, ManifestRejected):
                return versions.not_compiled(config, versions.findings(compiled))
            return Next(compiled)

        return await self.activate(choose, Activator(message.by, may_grant=message.may_grant))

    async def _version(self, zombie: Zombie, config_version_id: UUID) -> ConfigVersion | Refusal:
        config = await self._held.world.storage.zombies.load_config(config_version_id)
        if config is None or config.zombie_id != zombie.id:
            return Refusal("UZ-HARNESS-001", f"The agent has no version {config_version_id}.")
        return config
