"""What a journal tells about itself."""

from msgspec import Struct

from sexton_storage.spread import SpreadStatistics

NOTHING = SpreadStatistics()


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
    set_aside: int = 0
    """Writes that waited apart from the others, as somebody held rows of their tenant."""
    sizes: SpreadStatistics = NOTHING
    """Writes of a committed batch."""
    spans: SpreadStatistics = NOTHING
    """Seconds of a committed batch."""
    oldest_s: float = 0.0
    """How long the oldest of the writes that wait has waited."""


class JournalStatistics(Struct, frozen=True):
    hot: LaneStatistics
    bulk: LaneStatistics


class SignalStatistics(Struct, frozen=True):
    """What this node and the others tell one another."""

    peers: int = 0
    """Other nodes that were heard of late."""
    sent: int = 0
    heard: int = 0
    dropped: int = 0
    """Not sent, since too many waited: seen at the others' next look."""
    lost: int = 0
    """Connections for them that were given up; what was told meanwhile is seen at the next look."""


class StorageStatistics(Struct, frozen=True):
    """What a node asks of its database, beside the journal."""

    journal: JournalStatistics
    outstanding: int
    """Units of work that wait for the database, those of the journal included."""
    connections: int
    """The pool's connections in use now."""
    connections_max: int
    waits: SpreadStatistics
    """Seconds that a unit of work waited for a connection."""
    signals: SignalStatistics = SignalStatistics()
