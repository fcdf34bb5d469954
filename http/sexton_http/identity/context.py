"""What the wing is given by the composition root."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol
from uuid import UUID

import msgspec
import trio
from prometheus_client import CollectorRegistry

from sexton_actors.plans import DEFAULT_TERMS, BillingTerms
from sexton_actors.world import World
from sexton_engine import ActorSystem
from sexton_http.ceilings import DEFAULT_BODY_MEMORY, DEFAULT_SHARES, Shares
from sexton_http.identity.auth_keys import AuthKeys
from sexton_http.identity.sign_in_terms import USUAL_TERMS, SignInTerms
from sexton_http.outbound.previews import Previewer
from sexton_http.outbound.slack import Slack
from sexton_http.wire.forwarded import Network
from sexton_http.wire.loop_turns import LoopTurns
from sexton_http.wire.open_connections import OpenConnections
from sexton_http.wire.stop_signal import Stop
from sexton_storage.records.tenants import PlanTier
from sexton_storage.records.users import Role

MAX_IN_FLIGHT: Final = 1024
MAX_LONG_POLLS: Final = 8192
MAX_STREAMS: Final = 2048
VERSION: Final = "0.1.0"


@dataclass(frozen=True, slots=True)
class Claims:
    """What a verified user token says. ``role`` is as claimed: it need not exist here."""

    issuer: str
    subject: str
    tenant_id: UUID
    role: str
    workspace_id: UUID | None
    platform_admin: bool
    expires_at: int
    """Unix seconds."""
    browser: UUID | None = None
    """The browser session that the token ends with; of the built-in issuer only."""
    device: UUID | None = None
    """The auth session of the terminal that it was made for; of the built-in issuer only."""


class Issuer(Protocol):
    """Whoever signs user tokens: the built-in one, or an identity provider."""

    @property
    def name(self) -> str:
        """The ``iss`` of its tokens."""
        ...

    async def verify(self, token: str, now_s: float) -> Claims:
        """Check all of a token. Raises ``Problem`` with UZ-AUTH-002, -003 or -004."""
        ...


class Signer(Issuer, Protocol):
    """The built-in issuer, which also mints."""

    def mint(
        self,
        *,
        subject: str,
        tenant_id: UUID,
        role: Role,
        now_s: float,
        workspace_id: UUID | None = None,
        platform_admin: bool = False,
        browser: UUID | None = None,
        device: UUID | None = None,
    ) -> str: ...

    @property
    def jwks(self) -> Mapping[str, object]:
        """The public half, as ``/.well-known/jwks.json`` shows it."""
        ...


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who comes back from an identity provider."""

    subject: str
    """Whom the provider knows by this name, with the provider's own; the same for ever."""
    name: str
    """To be shown."""


class Provider(Protocol):
    """A place elsewhere where people sign in."""

    @property
    def name(self) -> str:
        """As it stands in addresses."""
        ...

    @property
    def label(self) -> str:
        """As people read it."""
        ...

    @property
    def issuer(self) -> str | None:
        """What it calls itself when it sends somebody back; None when it does not."""
        ...

    async def depart(self, *, state: str, nonce: str, challenge: str, redirect_uri: str) -> str:
        """Where to send the browser. Raises Unreachable."""
        ...

    async def arrive(
        self, *, code: str, verifier: str, nonce: str, redirect_uri: str, now_s: float
    ) -> Person:
        """Who has come back. Raises Unreachable, and Problem when the answer cannot be trusted."""
        ...


def plan_rates(terms: BillingTerms = DEFAULT_TERMS) -> dict[PlanTier, int | None]:
    """Requests a second by plan, None for no limit."""
    return {tier: limits.requests_per_second for tier, limits in terms.plans.items()}


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """Bounds of the front end; rates are requests a second, None for no limit."""

    base_url: str
    plan_rates: Mapping[PlanTier, int | None] = field(default_factory=plan_rates)
    address_rate: int | None = 50
    """For callers without a token."""
    max_in_flight: int = MAX_IN_FLIGHT
    max_long_polls: int = MAX_LONG_POLLS
    max_streams: int = MAX_STREAMS
    max_answer_bytes: int = 64 * 1024 * 1024
    """Bytes of all answers that are being made or sent."""
    busy_at_s: float | None = None
    """The lag of the event loop at which ingress is held back; None: it never is."""
    max_body_memory: int = DEFAULT_BODY_MEMORY
    """For the bodies of all requests that are being read or answered, in bytes."""
    shares: Shares = DEFAULT_SHARES
    """How each of these is divided among callers."""
    sign_ins: SignInTerms = USUAL_TERMS
    """How long browsers and terminals stay signed in."""
    hsts_subdomains: bool = False
    """Whether browsers are told that all hosts below this name are reached over TLS only."""
    request_s: float = 30.0
    stream_heartbeat_s: float = 15.0
    trusted_proxies: tuple[Network, ...] = ()
    """The proxies whose ``Forwarded`` or ``X-Forwarded-For`` is believed."""
    open_metrics: bool = True
    """Whether anybody may read ``/metrics``: only this machine reaches the server."""
    metrics_token: str | None = None
    """What a reader of ``/metrics`` sends elsewhere; None: nobody may read it there."""
    access_log: bool = False
    """Whether each request has a line in the log, and not only those that were refused or failed."""
    trace_link: str | None = None
    """Where a trace can be looked at, with ``{trace_id}`` in it; None: nowhere that is known here."""


class ServerOption(msgspec.Struct, frozen=True):
    """One option of the command that started the server, as people who look after it see it."""

    name: str
    """As it is written: `--max-in-flight`."""
    variable: str
    """The variable of the environment that sets it, too; empty: none does."""
    value: str
    """As text; of a secret only whether it is set."""
    source: str
    """`option`, `environment` or `default`."""
    says: str
    """What it is for."""


class WorkerHealth(msgspec.Struct, frozen=True):
    """One of the processes that serve together."""

    worker: int
    state: str
    up: bool
    """It serves, and has said so within two seconds."""
    restarts: int
    """Processes that this worker's place has had before."""


class Siblings(Protocol):
    """The workers of one server, this one among them."""

    async def text(self, encode: Callable[[CollectorRegistry], bytes], *, by_worker: bool) -> bytes:
        """The metrics of all, added up or apart, as Prometheus reads them."""
        ...

    def health(self) -> list[WorkerHealth]:
        """How each of them is."""
        ...

    def keep(self) -> object:
        """Have the sums hold what this one has counted, whatever becomes of it."""
        ...


class Questions(Protocol):
    """The way to the workers of one server, this one among them."""

    @property
    def worker(self) -> int:
        """The number of this process."""
        ...

    def up(self) -> list[int]:
        """Those that serve."""
        ...

    async def ask(self, worker: int, question: bytes) -> bytes | None:
        """What that one answers; None when it does not."""
        ...


class SeenNode(msgspec.Struct, frozen=True):
    """A server of this database, as another one knows it."""

    node: UUID
    host: str
    version: str
    started_at: int
    heard_ago_s: float
    is_silent: bool
    """It has not said for 16 s that it is there: what it does is not known."""


class Nodes(Protocol):
    """The way to the other servers of the database."""

    @property
    def node(self) -> UUID:
        """The id of this one."""
        ...

    async def seen(self) -> Sequence[SeenNode]:
        """All that were heard within a day, this one first."""
        ...

    async def ask(self, node_id: UUID, question: bytes, within_s: float) -> bytes:
        """What that one answers. Raises Problem when it is not there, or does not answer."""
        ...


@dataclass(frozen=True, slots=True)
class HttpContext:
    """One for a server; ``stop`` is set when it shuts down, and ends streams and long polls."""

    system: ActorSystem
    world: World
    issuer: Signer
    registry: CollectorRegistry
    settings: HttpSettings
    stop: Stop
    keys: AuthKeys
    nodes: Nodes
    monotonic: Callable[[], float] = trio.current_time
    other_issuers: tuple[Issuer, ...] = ()
    providers: tuple[Provider, ...] = ()
    previewer: Previewer | None = None
    """None when this server has no access to a language model."""
    catalogue_key: str = ""
    """Part of the public catalogue's address; empty: it is not shown."""
    slack: Slack | None = None
    """The server's own Slack app; None: there is none."""
    turns: LoopTurns | None = None
    """What measures the event loop; None: nothing does, and ingress is never held back."""
    options: tuple[ServerOption, ...] = ()
    """What the server was started with, for platform admins; of several workers the whole server's."""
    connections: OpenConnections = field(default_factory=OpenConnections)
    siblings: Siblings | None = None
    """None for a server of one process."""
    questions: Questions | None = None
    """None for a server of one process."""
    spell_id: Callable[[], str] | None = None
    """Makes an id that is only told; None: one that is made like all others is spelled."""


@dataclass(frozen=True, slots=True)
class Documents:
    """What is made once from the declarations and given out as it is."""

    openapi: bytes
    docs: bytes
    errors: bytes
    document: Mapping[str, Any]
    """The OpenAPI document that ``openapi`` is the text of, but for the server's address."""
    operations: Mapping[str, Any]
    """By its name each ``Operation`` that the document describes."""
    tools: Mapping[str, Any] = field(default_factory=dict)
    """By its name each ``Tool`` that assistants are offered."""
