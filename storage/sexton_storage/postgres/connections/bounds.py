"""How long a connection may hold others up, and how soon one that leads nowhere is noticed.

A lease lasts 30 s. Whatever holds a row's lock and does not move is ended within a tenth of that: the server
ends the session of a node that froze, and a node gives up a server that froze. So no renewal comes too late.
"""

from collections.abc import Mapping
from typing import Final

STALL_MS: Final = 2_500
"""What the server allows a session that holds locks: to idle in a transaction, a statement, a transaction."""
GIVE_UP_S: Final = 2.9
"""What a node allows a batch: a little more than the server does, whose own word is better than our guess."""
LANE_LOCK_MS: Final = 100
"""How long a batch waits for a row. Other nodes' batches hold one for a few ms; whoever holds it longer is
stuck, and only the writes of that tenant wait for it."""
LOCK_MS: Final = 2_000
"""How long other work waits for a row: whoever asked is told before a statement is cut."""
CONNECT_S: Final = 2.0
"""For each host of the address: one that is silent must not keep us from the next."""
NEXT_HOST_S: Final = 0.25
"""How long without an answer until the next host is asked as well."""
KEEPALIVE_IDLE_S: Final = 1
KEEPALIVE_EVERY_S: Final = 1
KEEPALIVES: Final = 1
"""A peer that does not answer a probe after a second of silence is gone: two seconds in all."""

_COMMON: Final[Mapping[str, str]] = {
    "jit": "off",
    "timezone": "UTC",
    # A commit that a standby may not have is told as a warning.
    "client_min_messages": "warning",
    "idle_in_transaction_session_timeout": str(STALL_MS),
    # Of no effect on a Unix socket.
    "tcp_keepalives_idle": str(KEEPALIVE_IDLE_S),
    "tcp_keepalives_interval": str(KEEPALIVE_EVERY_S),
    "tcp_keepalives_count": str(KEEPALIVES),
    "tcp_user_timeout": str(STALL_MS),
}
LANE_SESSION: Final[Mapping[str, str]] = {
    **_COMMON,
    "lock_timeout": str(LANE_LOCK_MS),
    "statement_timeout": str(STALL_MS),
    "transaction_timeout": str(STALL_MS),
}
SIGNALS_SESSION: Final[Mapping[str, str]] = {
    **LANE_SESSION,
    # A notification writes nothing that would have to survive a crash; its commit need not wait for the disk.
    "synchronous_commit": "off",
}
MIGRATION_SESSION: Final[Mapping[str, str]] = {
    **_COMMON,
    # An index of a large table takes as long as it takes, and a migration waits for whoever reads.
    "idle_in_transaction_session_timeout": "0",
    "lock_timeout": "0",
    "statement_timeout": "0",
    "transaction_timeout": "0",
}
UNKNOWN_BEFORE: Final[Mapping[str, int]] = {"transaction_timeout": 17}
"""Settings, each with the release of PostgreSQL that brought it."""
BEGIN: Final = f"BEGIN; SET LOCAL statement_timeout = {STALL_MS}"
"""A transaction that changes rows: others may be waiting for them."""


def pool_session(read_s: float, long_s: float) -> Mapping[str, str]:
    """Bounds of the pool's connections. A read locks nothing that others want, so it has longer.

    >>> pool_session(10, 30)["statement_timeout"], pool_session(10, 30)["transaction_timeout"]
    ('10000', '30000')
    """
    return {
        **_COMMON,
        # Plans are kept: one that was made while a queue was empty must not read all of it when it is long.
        "enable_seqscan": "off",
        "lock_timeout": str(LOCK_MS),
        "statement_timeout": str(int(read_s * 1000)),
        "transaction_timeout": str(int(long_s * 1000)),
    }


def begin_long(long_s: float) -> str:
    """Begin a transaction of many rows that nobody else wants: a purge, a sweep.

    >>> begin_long(30)
    'BEGIN; SET LOCAL statement_timeout = 30000'
    """
    return f"BEGIN; SET LOCAL statement_timeout = {int(long_s * 1000)}"
