"""What an operator may choose about the network of runs."""

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sexton_runner.errors import BadSettings

PREFIX = "SEXTON_EGRESS_"
PRIVATE_HOSTS = f"{PREFIX}PRIVATE_HOSTS"
CA_BUNDLE = f"{PREFIX}CA_BUNDLE"
_HOST = re.compile(r"(?=.{1,253}(?::|$))[a-z0-9_-]+(?:\.[a-z0-9_-]+)*(?::[1-9][0-9]{0,4})?")
_BEGIN = b"-----BEGIN CERTIFICATE-----"
ROOTS = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
"""Where systems keep the authorities that they trust, as one file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressSettings:
    """Bounds of one run, and what runs may reach beyond public addresses.

    ``private_hosts`` are names, or ``host:port``, that may lead to private or loopback addresses.
    ``ca_bundle`` is a PEM file with authorities that are trusted beside the system's.
    """

    private_hosts: frozenset[str] = frozenset()
    ca_bundle: Path | None = None
    connections: int = 256
    connections_total: int = 5_000
    bytes_out: int = 1 << 30
    bytes_in: int = 4 << 30
    requests_per_s: int = 50
    idle_s: int = 300

    @property
    def bounds(self) -> dict[str, int]:
        """Give the bounds by name."""
        return {name: getattr(self, name) for name in BOUNDS}

    def roots(self) -> bytes:
        """Give the system's authorities and the operator's own, in PEM; empty where there are none."""
        parts = [file.read_bytes() for file in (system_roots(), self.ca_bundle) if file is not None]
        return b"\n".join(parts)


BOUNDS: Mapping[str, tuple[int, int]] = {
    "connections": (1, 256),
    "connections_total": (1, 1_000_000),
    "bytes_out": (1, 1 << 50),
    "bytes_in": (1, 1 << 50),
    "requests_per_s": (1, 10_000),
    "idle_s": (1, 3_600),
}
"""The least and the most of each. A supervisor has 1,024 files, and a connection takes up to three."""
MEANINGS: Mapping[str, str] = {
    "connections": "connections of a run at a time",
    "connections_total": "connections of a run in all",
    "bytes_out": "bytes that a run may send to servers",
    "bytes_in": "bytes that a run may get from servers",
    "requests_per_s": "requests of a run in a second",
    "idle_s": "seconds that a connection may rest",
}


def read_egress_settings(environment: Mapping[str, str]) -> EgressSettings:
    """Read what an operator has set; raises ``BadSettings``.

    >>> sorted(read_egress_settings({"SEXTON_EGRESS_PRIVATE_HOSTS": "git.lan, Build.lan:8443"}).private_hosts)
    ['build.lan:8443', 'git.lan']
    """
    bundle = environment.get(CA_BUNDLE)
    bounds = {name: _bound(environment, name) for name in BOUNDS if _variable(name) in environment}
    return EgressSettings(
        private_hosts=_hosts(environment.get(PRIVATE_HOSTS, "")),
        ca_bundle=None if not bundle else _bundle(Path(bundle)),
        **bounds,
    )


def variables() -> dict[str, str]:
    """Give each variable with its meaning, in words for an operator.

    >>> variables()["SEXTON_EGRESS_IDLE_S"]
    'seconds that a connection may rest, 1 to 3600 (default: 300)'
    """
    usual = EgressSettings().bounds
    bounds = {
        _variable(name): f"{words}, {BOUNDS[name][0]} to {BOUNDS[name][1]} (default: {usual[name]})"
        for name, words in MEANINGS.items()
    }
    return {
        PRIVATE_HOSTS: "names, or host:port, with commas between, that may lead runs to private addresses",
        CA_BUNDLE: "PEM file with authorities that runs trust beside the system's",
        **bounds,
    }


def system_roots() -> Path | None:
    """Give the file of the authorities that this system trusts."""
    named = ssl.get_default_verify_paths().cafile
    return next((Path(file) for file in (named, *ROOTS) if file and Path(file).is_file()), None)


def _variable(name: str) -> str:
    return f"{PREFIX}{name.upper()}"


def _hosts(text: str) -> frozenset[str]:
    hosts = frozenset(part.strip().lower() for part in text.split(",") if part.strip())
    for host in sorted(hosts):
        if not _HOST.fullmatch(host):
            raise BadSettings(
                f"{PRIVATE_HOSTS}: {host!r} is no name of a host, nor a name, a colon and a port"
            )
    return hosts


def _bundle(file: Path) -> Path:
    try:
        content = file.read_bytes()
        if _BEGIN not in content:
            raise BadSettings(f"{CA_BUNDLE}: {file} holds no certificate in PEM")
        ssl.create_default_context(cadata=content.decode("ascii", "ignore"))
    except (OSError, ssl.SSLError) as fault:
        raise BadSettings(f"{CA_BUNDLE}: {file} cannot be used: {fault}") from fault
    return file


def _bound(environment: Mapping[str, str], name: str) -> int:
    least, most = BOUNDS[name]
    text = environment[_variable(name)]
    if not (text.isascii() and text.isdecimal() and least <= int(text) <= most):
        raise BadSettings(f"{_variable(name)} must be a whole number from {least} to {most}")
    return int(text)
