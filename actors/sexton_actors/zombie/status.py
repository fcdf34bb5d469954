"""Changes what an agent may do, and the token by which people approve for it."""

from sexton_actors.protocol import zombie as m
from sexton_actors.refusal import Refusal
from sexton_actors.zombie import transitions
from sexton_actors.zombie.record import HeldZombie


async def change_status(held: HeldZombie, message: m.ChangeStatus) -> m.StatusChanged | Refusal:
    """As a person asks: active, stopped or killed."""
    changed = await held.change(
        lambda zombie, now: transitions.change_status(zombie, message.status, message.by, now)
    )
    return changed if isinstance(changed, Refusal) else m.StatusChanged(changed)


async def pause(held: HeldZombie, message: m.Pause) -> Refusal | None:
    """The platform's own stop; None when the agent is stopped."""
    paused = await held.change(lambda zombie, now: transitions.pause(zombie, message.reason, now))
    return paused if isinstance(paused, Refusal) else None


async def rotate_token(held: HeldZombie, message: m.RotateToken) -> m.TokenRotated | Refusal:
    """The old approval token opens nothing from then on."""
    rotated = await held.change(lambda zombie, now: transitions.rotate_token(zombie, message.token_hash, now))
    return rotated if isinstance(rotated, Refusal) else m.TokenRotated(rotated)
