"""What can be asked of an agent about the version that it is pinned to."""

from sexton_actors.protocol.attributed import Attributed
from sexton_actors.refusal import Refusal
from sexton_engine import Message
from sexton_storage.records.zombies import Zombie


class PinAgent(Attributed, Message[Zombie | Refusal], frozen=True):
    """Have it work by its active version, whatever files it is given."""

    version: int
    """The number of the active version: should another be active by now, nothing is pinned."""
    reason: str
    by: str


class UnpinAgent(Attributed, Message[Zombie | Refusal], frozen=True):
    """Let it go; the active version stays until another is activated."""

    by: str


PinMessage = PinAgent | UnpinAgent
