"""The settings of one server, and where each may be given."""

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from sexton_actors.backlog import QueueBounds
from sexton_actors.file_bounds import FileBounds
from sexton_actors.retention_terms import RetentionTerms
from sexton_actors.terms import LOOK_EVERY_S
from sexton_cli.addresses import DEFAULT_HOST, DEFAULT_PORT, is_loopback
from sexton_http.ceilings import DEFAULT_BODY_MEMORY, DEFAULT_SHARES, Shares
from sexton_http.identity.context import MAX_IN_FLIGHT, MAX_LONG_POLLS, MAX_STREAMS, ServerOption
from sexton_http.identity.sign_in_terms import USUAL_TERMS, SignInTerms
from sexton_http.outbound.trace_address import TraceAddress
from sexton_http.wire.connection_ceilings import MAX_CONNECTIONS
from sexton_http.wire.forwarded import Network
from sexton_http.wire.tls import Tls
from sexton_runner.logs import LogSettings
from sexton_storage.objects.s3_address import S3Address
from sexton_storage.records.auth_sessions import SessionBounds
from sexton_storage.records.transcripts import TranscriptBounds
from sexton_storage.startup import BESIDE_POOL, POOL_SIZE

DEFAULT_DATABASE_WAIT_S = 30.0
DEFAULT_ANSWER_MIB = 64
DEFAULT_BUSY_AT_MS = 10.0
SPARE_CONNECTIONS = 20
"""What our own database allows beyond the server's: for commands, an administrator, and its own reserve."""
DATABASE_VARIABLE = "DATABASE_URL"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """One server. ``database_url`` None: the embedded database, kept in ``data``.

    ``in_memory``: no database at all, for a server that is forgotten with its process.
    """

    data: Path
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    in_memory: bool = False
    database_url: str | None = None
    database_wait_s: float = DEFAULT_DATABASE_WAIT_S
    """How long a start waits for a ``database_url`` that does not answer yet."""
    database_pool: int | None = None
    """Connections of each process' pool; None: as many as suit it, fewer where the database allows fewer."""
    workers: int = 1
    """Processes that serve; more than one have a parent that keeps them."""
    look_every_s: float = LOOK_EVERY_S
    """How often this node looks for what others did and could not tell it."""
    wal_archive: Path | None = None
    """A folder that gets the write-ahead log of the embedded database; None: it is not kept."""
    migrate: bool = True
    """Whether a start brings the schema up to date; False: one that is not ends the start."""
    queue_bounds: QueueBounds = field(default_factory=QueueBounds)
    """How many events may wait, and for how long."""
    files: FileBounds = field(default_factory=FileBounds)
    """How much of files is kept, and for how long."""
    files_store: S3Address | None = None
    """Where files go that are whole; None: they stay in the database."""
    archive: S3Address | Path | None = None
    """Where rows go before they are deleted by age; None: they are deleted at once."""
    transcripts: TranscriptBounds = field(default_factory=TranscriptBounds)
    """How much of what runs said and did is kept, and for how long."""
    erasures_file: Path | None = None
    """Where the list of erasures is kept beside the database; None: nowhere."""
    retention: RetentionTerms = field(default_factory=RetentionTerms)
    """What goes by age, beside files and transcripts."""
    busy_at_ms: float = DEFAULT_BUSY_AT_MS
    """The lag of the event loop at which ingress is held back; 0: it never is."""
    public_url: str | None = None
    """What links and webhook addresses begin with; None: the address it is bound to."""
    tls: Tls | None = None
    max_body_memory: int = DEFAULT_BODY_MEMORY
    """For the bodies of all requests that are being read or answered, in bytes."""
    shares: Shares = DEFAULT_SHARES
    """How much of each ceiling one caller, tenant or address may hold."""
    trusted_proxies: tuple[Network, ...] = ()
    """The proxies whose ``X-Forwarded-For`` gives the address of a client."""
    catalogue: Path | None = None
    """The file of models and prices; None: that of ``data``, if it is there, else the one shipped."""
    billing: Path | None = None
    """The file of plans and the free trial; None: the one of ``data``, if it is there."""
    traces: TraceAddress | None = None
    """The collector that traces are sent to; None: none are sent."""
    trace_link: str | None = None
    """Where a trace can be looked at, with ``{trace_id}``; None: pages show its id only."""
    log: LogSettings = field(default_factory=LogSettings)
    metrics_token: str | None = None
    """What a reader of ``/metrics`` sends, where more than this machine reaches the server."""
    access_log: bool = False
    """Whether each request has a line in the log, and not only those that were refused or failed."""
    max_answer_mib: int = DEFAULT_ANSWER_MIB
    """MiB of all large answers that are made or sent at once."""
    max_in_flight: int = MAX_IN_FLIGHT
    max_long_polls: int = MAX_LONG_POLLS
    max_streams: int = MAX_STREAMS
    max_connections: int = MAX_CONNECTIONS
    """In all; fewer where the server may not open as many files."""
    max_connections_per_address: int | None = None
    """None: half of all."""
    device_logins: SessionBounds = field(default_factory=SessionBounds)
    """How many terminals may wait for a token at once."""
    sign_ins: SignInTerms = USUAL_TERMS
    """How long browsers and terminals stay signed in."""
    hsts_subdomains: bool = False
    """Whether browsers are told that all hosts below the server's name are reached over TLS only."""
    options: tuple[ServerOption, ...] = ()
    """The options of the command as they were given, to be shown to those who look after the server."""
    identity: Path | None = None
    """The file of identity providers and issuers; None: the one of ``data``, if it is there."""

    @property
    def connections(self) -> tuple[int, int | None]:
        """How many there may be, in all and from one address."""
        return self.max_connections, self.max_connections_per_address

    @property
    def connections_needed(self) -> int:
        """How many connections to its own database there should be room for."""
        pool = POOL_SIZE if self.database_pool is None else self.database_pool
        return (self.workers + 1) * (pool + BESIDE_POOL + 1) + SPARE_CONNECTIONS

    @property
    def is_private(self) -> bool:
        """Whether nothing but this machine reaches the server, by a proxy or by itself."""
        host = None if self.public_url is None else urlsplit(self.public_url).hostname
        proxied = bool(self.trusted_proxies) or not is_loopback(host or DEFAULT_HOST)
        return is_loopback(self.host) and not proxied

    def risk(self) -> str | None:
        """What can happen to whoever uses this address from elsewhere; None where nothing can."""
        if is_loopback(self.host) or self.tls is not None or self.trusted_proxies:
            return None
        return (
            "keys, tokens and what agents say can be read and changed on the way. Give --tls-cert and "
            "--tls-key, or --trusted-proxy with the proxy that speaks TLS, or leave --host out"
        )
