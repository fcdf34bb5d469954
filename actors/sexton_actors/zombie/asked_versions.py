"""Whether an agent may be asked to work under one of its versions."""

from sexton_actors.refusal import Refusal
from sexton_actors.run_versions import CANNOT_RUN, RunVersion, fault_of
from sexton_actors.zombie.record import HeldZombie
from sexton_storage.records.zombies import Zombie


async def askable(held: HeldZombie, zombie: Zombie, number: int) -> RunVersion | Refusal:
    """Give the version, if the agent can be run under it as it is now. Raises StorageUnavailable."""
    version = await held.version(number)
    if isinstance(version, Refusal):
        return version
    if detail := fault_of(zombie, version):
        return Refusal(CANNOT_RUN, detail)
    refusal = await held.world.entitlements.may_hold(zombie.tenant_id, version.manifest, held.manifest)
    return version if refusal is None else Refusal(CANNOT_RUN, refusal.detail)


async def refused_version(held: HeldZombie, zombie: Zombie, number: int | None) -> Refusal | None:
    """None when no version is asked for, or one that may be. Raises StorageUnavailable."""
    if number is None:
        return None
    found = await askable(held, zombie, number)
    return found if isinstance(found, Refusal) else None
