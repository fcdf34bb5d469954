"""Takes people's word on whether an agent may be lent the credentials that its files name."""

from msgspec.structs import replace

from sexton_actors.loans import (
    CredentialGrant,
    changed_frames,
    decide,
    grants_in,
    grants_of,
    kept_as,
    reach_of,
)
from sexton_actors.manifest.model import Manifest, from_json
from sexton_actors.protocol import zombie as m
from sexton_actors.refusal import Refusal
from sexton_actors.zombie.record import Decision, HeldZombie
from sexton_actors.zombie.transitions import Change, Unchanged, may_be_configured
from sexton_storage.records.zombies import Zombie


async def decide_credential(held: HeldZombie, message: m.DecideCredential) -> CredentialGrant | Refusal:
    """What waits for it is looked at again with the next claim."""
    zombie = await held.change(lambda zombie, now: changed(zombie, message, now))
    if isinstance(zombie, Refusal):
        return zombie
    found = _find(zombie, from_json(zombie.compiled), message.credential)
    return found or _unknown(message)


def changed(zombie: Zombie, message: m.DecideCredential, now: int) -> Decision:
    """The agent with the grant as it will be, and the frame that says so."""
    manifest = from_json(zombie.compiled)
    found = _find(zombie, manifest, message.credential)
    refusal = may_be_configured(zombie)
    if found is None or refusal:
        return refusal or _unknown(message)
    decided = decide(found, message.status, reach_of(manifest), message.by, now)
    if isinstance(decided, Refusal):
        return decided
    if decided == found:
        return Unchanged()
    lending = kept_as((grants_in(zombie.lending) | {found.credential: decided}).values())
    after = replace(zombie, lending=lending, version=zombie.version + 1, updated_at=now)
    return Change(after, changed_frames(zombie.id, zombie.lending, lending, message.by, now))


def _find(zombie: Zombie, manifest: Manifest, credential: str) -> CredentialGrant | None:
    grants = grants_of(zombie.lending, manifest)
    return next((grant for grant in grants if grant.credential == credential), None)


def _unknown(message: m.DecideCredential) -> Refusal:
    return Refusal("UZ-APPROVAL-002", f"The agent's files ask for no credential {message.credential}.")
