"""What a journal tells about itself."""

from msgspec import Struct


class LaneStatistics(Struct, frozen=True):
    """One lane of the journal since it was opened."""

    depth: int
    """Writes that wait, those of the batch on its way included."""
    batches: int
    writes: int
    largest_batch: int
    seconds: float
    """Spent on committed batches, from the first statement to the commit."""
    retries: int
    """Batches that ran again: connection lost, deadlock, or singly after a refusal."""
    refused: int
    """Writes that the database would not take."""
    settled: int
    """Commits whose outcome was unknown and was asked for."""
    outages: int
    """Times the database went away."""


class JournalStatistics(Struct, frozen=True):
    hot: LaneStatistics
    bulk: LaneStatistics
