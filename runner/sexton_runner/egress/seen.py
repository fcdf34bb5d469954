"""What the proxy tells about each connection and request, and what it asks before a request goes out."""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """How a connection or a request ended. ``FAILED``: it was allowed, and the network or a server failed."""

    ALLOWED = "allowed"
    REFUSED = "refused"
    BOUND = "bound"
    FAILED = "failed"


class Reason(StrEnum):
    """Why not, as a short word for metrics; ``Seen.why`` says it in a sentence."""

    NONE = ""
    ADDRESS = "address"
    ANSWER = "answer"
    BODY = "body"
    BYTES_IN = "bytes_in"
    BYTES_OUT = "bytes_out"
    CERTIFICATE = "certificate"
    CONNECT = "connect"
    CONNECTIONS = "connections"
    CONNECTIONS_TOTAL = "connections_total"
    FAULT = "fault"
    GATE = "gate"
    HEAD = "head"
    HOST = "host"
    HOST_HEADER = "host_header"
    IDLE = "idle"
    LIFE = "life"
    METHOD = "method"
    NAME = "name"
    NOT_TLS = "not_tls"
    PATH = "path"
    PORT = "port"
    RATE = "rate"
    SECRET = "secret"  # noqa: S105  (the name of a reason)
    SMUGGLING = "smuggling"
    SNI = "sni"
    TLS = "tls"
    UPGRADE = "upgrade"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One request, or one connection that passed through or came to nothing.

    ``host`` and what follows are empty where it did not get so far. ``path`` has no query. ``bytes_in`` and
    ``bytes_out`` count what came from the server and what went to it. ``count`` is more than 1 where refusals
    of one kind within a second are told together.
    """

    host: str = ""
    port: int = 0
    method: str = ""
    path: str = ""
    address: str = ""
    verdict: Verdict
    reason: Reason = Reason.NONE
    why: str = ""
    bytes_in: int = 0
    bytes_out: int = 0
    seconds: float = 0.0
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request that waits for leave. ``path`` has no query, ``body_sha256`` is of a short body only."""

    method: str
    host: str
    port: int
    path: str
    body_sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether the request may go out; ``why`` is told to the program when it may not."""

    allowed: bool
    why: str = ""
