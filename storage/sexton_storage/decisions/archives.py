"""What is to be done next with a batch of the archive."""

from enum import Enum, auto

from sexton_storage.records.archives import ArchiveStatus


class Step(Enum):
    WRITE = auto()
    """Send the objects."""
    READ_BACK = auto()
    """Read the objects, compare them with what was sent, then write the manifest, and read that."""
    DROP = auto()
    """Look that the manifest is still there, and delete the rows."""


def next_step(status: ArchiveStatus) -> Step | None:
    """None: it is over. Whoever takes a batch over begins here, wherever the one before was stopped.

    >>> next_step(ArchiveStatus.COLLECTED), next_step(ArchiveStatus.DROPPED)
    (<Step.WRITE: 1>, None)
    """
    match status:
        case ArchiveStatus.COLLECTED:
            return Step.WRITE
        case ArchiveStatus.WRITTEN:
            return Step.READ_BACK
        case ArchiveStatus.VERIFIED:
            return Step.DROP
        case ArchiveStatus.DROPPED:
            return None
