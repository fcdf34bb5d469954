"""The numbers the contract fixes, each with its unit."""

LEASE_TERM_MS = 30_000
EVENT_CEILING_MS = 12 * 3600 * 1000
MAX_ATTEMPTS = 5
RUN_NANOS_PER_SEC = 100_000
GATE_TIMEOUT_DEFAULT_MS = 3600 * 1000

RECLAIM_INTERVAL_S = 0.5
"""Half the second within which an expired lease must be back in the queue."""
SWEEP_INTERVAL_S = 0.5
"""Gates of dead nodes are timed out within a second."""
RESCAN_INTERVAL_S = 1.0
"""What other nodes made ready is seen within a second."""
PRUNE_INTERVAL_S = 60.0

FRAMES_KEEP_MS = 24 * 3600 * 1000
FRAMES_KEEP_COUNT = 10_000
