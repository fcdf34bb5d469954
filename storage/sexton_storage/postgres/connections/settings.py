"""How storage uses its database; the defaults suit one node and its embedded server."""

from dataclasses import dataclass

from sexton_storage.startup import POOL_SIZE


@dataclass(frozen=True, slots=True)
class PostgresSettings:
    """Bounds of the connections and of the journal; seconds and counts."""

    pool_size: int = POOL_SIZE
    """Connections for everything but the journal, which has two of its own, and signals, which have one."""
    patience_s: float = 5.0
    """How long a call waits for a database that is away before it raises StorageUnavailable."""
    connect_s: float = 60.0
    """How long opening waits for a database that does not answer yet."""
    statement_s: float = 30.0
    """How long until a statement is given up: the connection is taken for lost."""
    read_s: float = 10.0
    """How long until a unit of work that only reads, or is to be short, is given up in the same way.

    This is measured here, for a server that hangs keeps no time.
    """
    hot_batch: int = 512
    """Writes of the hot lane in one transaction, at most."""
    bulk_batch: int = 64
    """The batch size of the bulk lane, whose writes carry many frames each."""
    queue_limit: int = 16_384
    """Writes that may wait in a lane; one more is refused at once."""
    drain_s: float = 5.0
    """How long closing waits for the writes that are queued."""
    signals: bool = True
    """Whether this node hears of other nodes at once, over one more connection; a visitor need not."""
    heartbeat_s: float = 5.0
    """How often an idle lane looks at its connection and at the database's clock."""


BACKOFF_FIRST_S = 0.02
BACKOFF_MAX_S = 0.5
"""Pauses between attempts to reach a database that is away."""
