"""The way out of a run's sandboxes: the door of the proxy, and what programs are told of it."""

import re
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import trio

PORT = 3128
"""Where the proxy is met inside a sandbox, which has a loopback of its own."""
BUNDLE = "ca.pem"
DOOR = "network"
"""The socket, in the run's folder, by which a sandbox hands its listener out."""
PLACE = re.compile(r"\$\{secrets\.([A-Za-z0-9_-]{1,64})\.([A-Za-z0-9_.-]{1,128})\}")
PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
BUNDLE_VARIABLES = (
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "NODE_EXTRA_CA_CERTS",
    "NPM_CONFIG_CAFILE",
    "AWS_CA_BUNDLE",
    "CARGO_HTTP_CAINFO",
)
NOT_BY_PROXY = "localhost,127.0.0.1,::1"

Judge = Callable[[str, str, int, str, str | None], Awaitable[str | None]]
"""Waits for the decision about a request, by method, host, port, path and the hash of its body.

None: it may go out; else why not.
"""
Limits = Callable[[str, str, int, str], str | None]
"""Says why a method, host, port and path are within no rule for a part of a host; None: they are."""


def _unlimited(method: str, host: str, port: int, path: str) -> str | None:
    del method, port, path
    return f"the host {host} is not in network.allow"


@dataclass(slots=True, kw_only=True)
class Network:
    """What one run has. ``serve`` takes what a sandbox hands out and serves it, until it is cancelled.

    ``variables`` are the author's own, placeholders put in; ``placeholders`` are by ``NAME.FIELD``. ``judge``
    is set by whoever carries the run out, before any program is started. ``private_hosts`` may lead to
    private addresses, and ``authorities`` are trusted: the operator's, beside the system's.
    """

    certificates: bytes
    serve: Callable[[trio.SocketListener], Awaitable[None]]
    authorities: Callable[[], ssl.SSLContext] = ssl.create_default_context
    private_hosts: frozenset[str] = frozenset()
    variables: Mapping[str, str] = field(default_factory=dict)
    placeholders: Mapping[str, str] = field(default_factory=dict, repr=False)
    judge: Judge | None = None
    limits: Limits = _unlimited

    def fill(self, text: str) -> str:
        """Put placeholders in the places of secrets; a place of no secret of the run stays as it is."""
        return filled(text, self.placeholders)

    def environment(self, *, port: int, run_dir: str) -> dict[str, str]:
        """Give the variables of every program: the proxy, the certificates, and the author's own."""
        proxy = f"http://127.0.0.1:{port}"
        return {
            **self.variables,
            **dict.fromkeys(PROXY_VARIABLES, proxy),
            **dict.fromkeys(BUNDLE_VARIABLES, f"{run_dir}/{BUNDLE}"),
            "NO_PROXY": NOT_BY_PROXY,
            "no_proxy": NOT_BY_PROXY,
            "NODE_USE_ENV_PROXY": "1",
        }


@dataclass(slots=True, kw_only=True)
class ServerNetwork:
    """The way to the MCP servers that a workspace declares: their proxy's socket, and whom to trust there.

    ``headers`` are by server, with placeholders in; ``refusals`` say by host why nothing came of a request.
    """

    headers: Mapping[str, Mapping[str, str]] = field(repr=False)
    socket: str = ""
    certificates: bytes = b""
    refusals: dict[str, str] = field(default_factory=dict)


def without_places(variables: Mapping[str, str]) -> dict[str, str]:
    """Leave out those that tell a secret: a run that reaches no host has no use for a placeholder.

    >>> without_places({"TOP": "20", "TOKEN": "${secrets.hub.token}"})
    {'TOP': '20'}
    """
    return {name: text for name, text in variables.items() if PLACE.search(text) is None}


def filled(text: str, placeholders: Mapping[str, str]) -> str:
    """Put placeholders in the places of secrets.

    >>> filled("Bearer ${secrets.hub.token} ${secrets.no.such}", {"hub.token": "sxt_1"})
    'Bearer sxt_1 ${secrets.no.such}'
    """
    return PLACE.sub(lambda place: placeholders.get(f"{place[1]}.{place[2]}", place[0]), text)
