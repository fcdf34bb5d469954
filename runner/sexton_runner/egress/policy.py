"""Decides which hosts, ports, methods and paths a run may reach."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sexton_runner.egress.hosts import is_address
from sexton_runner.egress.paths import ambiguity, lies_under
from sexton_runner.egress.refusals import Refusal
from sexton_runner.egress.seen import Reason
from sexton_runner.tools.addresses import host_allowed

ALLOW_IT = "Add it to network.allow of the agent, if the agent needs it"
OVERRIDES = frozenset(
    {
        b"x-http-method",
        b"x-http-method-override",
        b"x-method-override",
        b"x-original-url",
        b"x-rewrite-url",
    }
)
"""Headers by which some servers take another method or path than those of the request line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One entry of ``network.allow``: any rule that holds for a request lets it through.

    ``host`` is a name, or ``*.`` and a name for all below it; in ASCII. Without ``methods`` or ``paths`` all
    are allowed. ``paths`` are prefixes of whole segments, compared as they are spelled.
    """

    host: str
    ports: tuple[int, ...] = (80, 443)
    methods: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


class Place(StrEnum):
    """Where a secret may stand in a request."""

    HEADER = "header"
    QUERY = "query"
    BASIC = "basic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """A credential bound to hosts: ``placeholder`` becomes ``secret`` there, in its own place only.

    ``field`` names the header or the parameter of the query; ``BASIC`` is the password of basic
    authentication and needs none. One placeholder may have several bindings.
    """

    name: str
    placeholder: str
    secret: str
    hosts: tuple[str, ...]
    place: Place = Place.HEADER
    field: str = "authorization"

    def __repr__(self) -> str:
        return f"<Binding {self.name} to {', '.join(self.hosts)} in {self.place} {self.field}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What one run may take. Bytes are of the whole run, ``idle_s`` and ``life_s`` of a connection."""

    connections: int = 256
    connections_total: int = 5_000
    bytes_out: int = 1 << 30
    bytes_in: int = 4 << 30
    requests_per_s: float = 50.0
    idle_s: float = 300.0
    life_s: float = 3_600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a run may reach.

    ``private_hosts`` are names, or ``host:port``, that the operator lets lead to private or loopback
    addresses. With ``inspects``, TLS ends at the proxy for every host, so that gates see each request.
    """

    rules: tuple[Rule, ...]
    bindings: tuple[Binding, ...] = ()
    private_hosts: frozenset[str] = frozenset()
    inspects: bool = False
    bounds: Bounds = Bounds()


def judge_host(policy: Policy, host: str, port: int) -> Refusal | None:
    """Refuse what no rule names. ``host`` is as ``read_host`` gives it.

    >>> judge_host(Policy(rules=(Rule(host="*.example.org"),)), "a.example.org", 443)
    >>> judge_host(Policy(rules=(Rule(host="example.org"),)), "example.org", 22).why
    'the port 22 of example.org is not in network.allow'
    """
    named = [rule for rule in policy.rules if _names(rule.host, host)]
    if not named:
        why = f"the host {host} is not in network.allow"
        return Refusal(reason=Reason.HOST, why=why, advice=ALLOW_IT)
    if not any(port in rule.ports for rule in named):
        why = f"the port {port} of {host} is not in network.allow"
        return Refusal(reason=Reason.PORT, why=why, advice=ALLOW_IT)
    return None


def judge_request(
    policy: Policy, host: str, port: int, method: str, path: str, *, headers: Iterable[bytes] = ()
) -> Refusal | None:
    """Refuse a request whose method or path no rule of its host allows.

    ``path`` has no query, ``headers`` are names in lower case. Plain dots are to be taken out before: a path
    that still has them is refused.

    >>> policy = Policy(rules=(Rule(host="example.org", methods=("GET",), paths=("/docs",)),))
    >>> judge_request(policy, "example.org", 443, "GET", "/docs/index.html")
    >>> judge_request(policy, "example.org", 443, "POST", "/docs").why
    'the method POST is not allowed at example.org'
    >>> judge_request(policy, "example.org", 443, "GET", "/docs/%2e%2e/admin").why
    'the path holds hidden dots'
    """
    if refusal := judge_host(policy, host, port):
        return refusal
    if not reads_requests(policy, host, port):
        return None
    if OVERRIDES.intersection(headers):
        return Refusal(
            reason=Reason.METHOD,
            why="a header asks the server for another method or path than the request line",
            advice="Send the method and the path in the request line",
        )
    if fault := ambiguity(path):
        advice = "Send the path in its plain form"
        return Refusal(reason=Reason.PATH, why=f"the path holds {fault}", advice=advice)
    rules = rules_for(policy, host, port)
    fitting = [rule for rule in rules if not rule.methods or method in rule.methods]
    if not fitting:
        why = f"the method {method} is not allowed at {host}"
        return Refusal(reason=Reason.METHOD, why=why, advice=ALLOW_IT)
    if not any(not rule.paths or lies_under(path, rule.paths) for rule in fitting):
        why = f"the path {path} is not allowed for {method} at {host}"
        return Refusal(reason=Reason.PATH, why=why, advice=ALLOW_IT)
    return None


def rules_for(policy: Policy, host: str, port: int) -> list[Rule]:
    """Give the rules that are about this host and port."""
    return [rule for rule in policy.rules if _names(rule.host, host) and port in rule.ports]


def bindings_for(bindings: Sequence[Binding], host: str) -> list[Binding]:
    """Give the credentials that may be sent to this host."""
    return [one for one in bindings if any(_names(name, host) for name in one.hosts)]


def reads_requests(policy: Policy, host: str, port: int) -> bool:
    """Tell whether requests to this host are held against methods, paths or gates.

    >>> reads_requests(Policy(rules=(Rule(host="a.org"), Rule(host="a.org", methods=("GET",)))), "a.org", 443)
    False
    """
    rules = rules_for(policy, host, port)
    return policy.inspects or all(rule.methods or rule.paths for rule in rules)


def opens_tls(policy: Policy, host: str, port: int) -> bool:
    """Tell whether TLS to this host ends at the proxy: only where something is read or put in."""
    return reads_requests(policy, host, port) or bool(bindings_for(policy.bindings, host))


def _names(entry: str, host: str) -> bool:
    # Below an address there is nothing.
    return (entry == host) if is_address(host) else host_allowed(host, [entry])
