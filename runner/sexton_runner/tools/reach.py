"""Where the requests of a run may go, and whose certificates they trust there."""

import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import httpx2

from sexton_runner.network import Limits
from sexton_runner.tools.addresses import forbidden, host_allowed

PORTS: Final[Mapping[str, int]] = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What the agent's ``network.allow`` and the operator's settings let requests reach.

    ``allow`` are hosts as a whole; ``limits`` knows those that are allowed in part. ``allow_loopback`` and
    ``private_hosts`` (names, or ``host:port``) are the operator's: no agent opens a closed address by itself.
    ``authorities`` gives those that certificates are verified against.
    """

    allow: Sequence[str]
    allow_loopback: bool = False
    limits: Limits | None = None
    private_hosts: frozenset[str] = frozenset()
    authorities: Callable[[], ssl.SSLContext] = ssl.create_default_context

    def refusal(self, method: str, url: httpx2.URL) -> str | None:
        """Say why this request may not be made; None: it may."""
        host = url.raw_host.decode("ascii")
        if host_allowed(host, self.allow):
            return None
        if self.limits is None:
            return f"the host {host} is not in network.allow"
        path = url.raw_path.decode("ascii").partition("?")[0]
        return self.limits(method, host, url.port or PORTS[url.scheme], path)

    def closed(self, host: str, port: int, address: str) -> str | None:
        """Say why a host must not be reached at this address; None: it may.

        >>> reach = Reach(allow=["git.lan"], private_hosts=frozenset({"git.lan:8443"}))
        >>> reach.closed("git.lan", 8443, "10.0.0.7"), reach.closed("git.lan", 443, "10.0.0.7")
        (None, 'a private address')
        >>> reach.closed("git.lan", 8443, "169.254.169.254")
        'a link-local address'
        """
        name = host.lower().rstrip(".")
        private = not self.private_hosts.isdisjoint((name, f"{name}:{port}"))
        return forbidden(address, allow_loopback=self.allow_loopback or private, allow_private=private)
