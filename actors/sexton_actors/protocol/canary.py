"""What can be asked of an agent about a version that is tried out."""

from uuid import UUID

import msgspec

from sexton_actors.canaries.transitions import Wish
from sexton_actors.protocol.attributed import Attributed
from sexton_actors.protocol.zombie import Configured
from sexton_actors.refusal import Refusal
from sexton_engine import Message
from sexton_storage.records.zombies import Zombie


class StartCanary(Attributed, Message[Zombie | Refusal], frozen=True):
    """Try out one of the agent's versions on a share of its events, as whoever may grant what it names."""

    version: int
    """The number of the candidate."""
    wish: Wish
    by: str


class PromoteCanary(Attributed, Message[Configured | Refusal], frozen=True):
    """Make the version that is on trial the active one."""

    by: str


class WithdrawCanary(Attributed, Message[Zombie | Refusal], frozen=True):
    """End the trial; all events go to the active version again."""

    by: str
    reason: str = ""


class JudgeCanary(msgspec.Struct, Message[None], frozen=True):
    """End this trial, if its guard says so."""

    trial_id: UUID


CanaryMessage = StartCanary | PromoteCanary | WithdrawCanary | JudgeCanary
