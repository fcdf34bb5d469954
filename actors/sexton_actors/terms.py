"""The numbers the contract fixes, each with its unit."""

LEASE_TERM_MS = 30_000
EVENT_CEILING_MS = 12 * 3600 * 1000
MAX_ATTEMPTS = 5
RUN_NANOS_PER_SEC = 100_000
GATE_TIMEOUT_DEFAULT_MS = 3600 * 1000

COUNT_MAX = 10**12
"""Tokens or milliseconds that a runner may claim for one lease: above it a price could leave its column."""
MAX_RACES = 8
"""Times a decision is made that another node overtakes; then whoever asked for it has to come again."""
LOOK_EVERY_S = 1.0
"""How often a node looks for what other nodes did, by default; mostly they have told it long before."""
RECORD_FRESH_MS = 1_000
"""How old a record may be that another node may have changed, by the same default."""

RECLAIM_INTERVAL_S = 0.5
"""Half the second within which an expired lease must be back in the queue."""
SWEEP_INTERVAL_S = 0.5
"""Gates of dead nodes are timed out within a second."""
SCHEDULE_INTERVAL_S = 5.0
"""What other nodes planned is seen within this; of its own plans a node wakes at the moment."""
SCHEDULE_MORE_S = 0.25
"""A look that found a full page of firings comes again so soon."""
PRUNE_INTERVAL_S = 60.0
TRANSCRIPTS_INTERVAL_S = 300.0
"""The look for transcripts that are past keeping reads a narrow row of each attempt that is kept."""
MORE_INTERVAL_S = 0.05
"""A round that found a full page comes again so soon: its actors have to act on the page first."""
DEADLINE_SLACK_S = 0.02
"""Looks a moment after a deadline, so that the database's clock has passed it too."""

LEASE_MEMORY_COUNT = 64
LEASE_MEMORY_BYTES = 64 * 1024
"""What a run is told of what its agent remembers; it can ask for more."""

FRAMES_KEEP_MS = 24 * 3600 * 1000
FRAMES_KEEP_COUNT = 10_000
FILES_KEEP_MS = 30 * 24 * 3600 * 1000
