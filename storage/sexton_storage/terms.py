"""The numbers of the contract that storage keeps, each with its unit."""

DEDUP_WINDOW_MS = 24 * 3600 * 1000
KEY_KEEP_MS = 24 * 3600 * 1000
"""How long a key stands for its first request."""
KEY_STALE_MS = 60_000
"""A request that is under way for longer than this has died with its server."""
KEY_SOON_MS = 5_000
"""As long, for a request whose key is kept with what it makes: should it live on, nothing is made twice."""
KEY_OPEN_MS = 10 * 60_000
"""How long the outcome of a request that must not be done twice stays open; then its key is free again."""
MEMORY_LIMIT = 1_000
"""Entries of one agent."""
QUERY_WORDS = 16
"""Words of a query that are looked for; each costs a look through all that the agent remembers."""
DAILY_KEEP_MS = 72 * 3600 * 1000
"""How long a ``daily`` entry lives after its last change."""
FOLLOW_UPS_LIMIT = 16
"""The follow-ups of one agent that may wait; one more is refused."""
FOLLOW_UPS_KEEP_MS = 30 * 24 * 3600 * 1000
"""How long one that is over is known, so that a run that starts over does not request it again."""
GRANTS_LIMIT = 64
"""Services that one agent may have asked for; one more is refused."""
ONLINE_MS = 90_000
"""A runner that was heard of within this is online."""
CHANGES_KEEP_MS = 90 * 24 * 3_600_000
"""How long changes of a runner's standing are kept."""
AUTH_SESSION_KEEP_MS = 3600 * 1000
"""How long a session that is over can still be asked about."""
PENDING_KEPT = 50
"""Undecided proposals of an agent; one more rejects the oldest."""
REJECTIONS_TOLD = 10
"""Rejections that one run is told of, the oldest first; the next run is told of more."""
RATE_EVENTS = 20
"""Events on each side of the last applied proposal whose success is compared."""
MIN_CONTEXT_TOKENS = 512
MAX_CONTEXT_TOKENS = 8192
DEFAULT_CONTEXT_TOKENS = 2048
CONFIGS_KEPT = 1000
"""Versions of an agent that are kept beside its active one; the oldest go first."""
KILL_FRAMES_MAX = 10_000
"""Ends that a kill writes to the stream, of the newest events: as many frames as are kept of an agent."""
COUNT_KEEP_DAYS = 7
"""Only today's count is asked for."""
JOBS_KEEP_MS = 90 * 24 * 3_600_000
"""How long a bulk job that is over is known."""
EVENTS_COUNTED = 1_000_000
"""The events that are counted before a bulk job; of more, nobody is told how many."""
HOURS_KEEP = 48
"""Hours of which the failures of a group are counted one by one."""
RESTORE_MARK = "sexton_restore_unfinished"
"""A table that is there while rows are restored: no server starts on such a database."""
LAST_BACKUP = "last_backup"
"""The setting that says when the last backup was made; Unix ms, as text."""
