"""Pins an agent to its active version, and keeps the files that it is given meanwhile."""

from typing import assert_never

from msgspec.structs import replace

from sexton_actors.canaries.record import canary_on_trial
from sexton_actors.pins import Pin, changed_frame, holding, kept_as, pin_of, pinned
from sexton_actors.protocol import pins as m
from sexton_actors.refusal import Refusal
from sexton_actors.zombie import transitions
from sexton_actors.zombie.compiled_version import Compiled
from sexton_actors.zombie.record import Decision, HeldZombie
from sexton_actors.zombie.transitions import Change, Unchanged
from sexton_storage.records.configs import ConfigStatus, ConfigVersion
from sexton_storage.records.zombies import Zombie


async def change_pin(held: HeldZombie, message: m.PinMessage) -> Zombie | Refusal:
    match message:
        case m.PinAgent():
            return await held.change(lambda zombie, now: _pin(zombie, message, now))
        case m.UnpinAgent():
            return await held.change(lambda zombie, now: _unpin(zombie, message, now))
        case _:
            assert_never(message)


def _pin(zombie: Zombie, message: m.PinAgent, now: int) -> Decision:
    if refusal := transitions.may_be_configured(zombie):
        return refusal
    known, canary = pin_of(zombie.pin), canary_on_trial(zombie.canary)
    wanted = Pin(message.version, now, message.by, message.reason)
    pin = pinned(
        known, wanted, active=zombie.config_revision, on_trial=None if canary is None else canary.version
    )
    if isinstance(pin, Refusal):
        return pin
    return Unchanged() if pin == known else with_pin(zombie, pin, message.by, now)


def _unpin(zombie: Zombie, message: m.UnpinAgent, now: int) -> Decision:
    return with_pin(zombie, None, message.by, now) if zombie.pin else Unchanged()


def with_pin(zombie: Zombie, pin: Pin | None, by: str, now: int) -> Change:
    """The agent's record with another pin, or with none."""
    changed = replace(zombie, pin=kept_as(pin), version=zombie.version + 1, updated_at=now)
    return Change(changed, (changed_frame(zombie, pin, by, now),))


async def newest_files(held: HeldZombie, zombie: Zombie, active: ConfigVersion) -> ConfigVersion:
    """The files that the agent was given last: of a pinned one they may wait. Raises StorageUnavailable."""
    pin = pin_of(zombie.pin)
    if pin is None or pin.held_version is None:
        return active
    waiting = await held.world.storage.zombies.load_version(zombie.id, pin.held_version)
    return active if waiting is None else waiting


async def hold_files(held: HeldZombie, zombie: Zombie, pin: Pin, compiled: Compiled) -> Pin:
    """Keep the files as a version that waits, once however often this is tried. Raises StorageError."""
    config, zombies = compiled.config, held.world.storage.zombies
    for newest in await zombies.list_configs(zombie.id, limit=1):
        same = (newest.source_markdown, newest.trigger_markdown) == (
            config.source_markdown,
            config.trigger_markdown,
        )
        if same and newest.status is ConfigStatus.COMPILED:
            return holding(pin, newest.revision)
    await zombies.keep_config(config, None)
    return holding(pin, config.revision)
