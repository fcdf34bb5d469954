"""Carries calls to a server over HTTP, and tells as a fault what goes wrong on the way."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx2

from sexton_cli.certificate_file import kept_certificate
from sexton_cli.data_folder import DATA_VARIABLE, default_data
from sexton_cli.exits import CONFIG, USAGE, Fault
from sexton_cli.problems import NotSexton, Unreachable, Untrusted
from sexton_runner.trust import fingerprint_of, trust_for, untrusted

CONNECT_S: Final = 5.0
ANSWER_S: Final = 35.0
"""The server's own deadline is 30 s."""


class HttpConnection:
    """The way to one server, over HTTP."""

    def __init__(self, http: httpx2.Client, base_url: str) -> None:
        self._http = http
        self._base_url = base_url

    def __repr__(self) -> str:
        return f"<HttpConnection to {self._base_url}>"

    @contextmanager
    def stream(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Iterator[httpx2.Response]:
        with (
            self._faults_told(),
            self._http.stream(method, f"{self._base_url}{path}", content=body, headers=headers) as response,
        ):
            yield response

    @contextmanager
    def events(self, path: str, headers: Mapping[str, str]) -> Iterator[httpx2.EventSource]:
        with self._faults_told(), self._http.sse(f"{self._base_url}{path}", headers=headers) as source:
            yield source

    @contextmanager
    def _faults_told(self) -> Iterator[None]:
        try:
            yield
        except httpx2.TransportError as fault:
            # Its text, not its request: that bears the token.
            why = str(fault) or type(fault).__name__
            mistrust = untrusted(fault)
            if mistrust is not None:
                raise Untrusted(self._base_url, mistrust, fingerprint_of(self._base_url)) from None
            raise Unreachable(self._base_url, why) from None
        except httpx2.DecodingError:
            raise NotSexton(self._base_url, "the answer is garbled") from None
        except httpx2.InvalidURL as fault:
            raise Fault(f"{self._base_url}: {fault}", "Check the address.", status=USAGE) from None


@contextmanager
def open_connection(base_url: str) -> Iterator[HttpConnection]:
    """A connection to this address; raises Fault where this machine's settings are wrong."""
    timeout = httpx2.Timeout(ANSWER_S, connect=CONNECT_S)
    try:
        trusted = trust_for(base_url, _kept_certificate(base_url))
        http = httpx2.Client(timeout=timeout, verify=trusted)
    except (OSError, ValueError, httpx2.InvalidURL) as fault:
        # It reads the environment: certificates to trust, and proxies.
        way_out = "Fix SSL_CERT_FILE, SSL_CERT_DIR or the proxy variables."
        raise Fault(f"no connection can be made: {fault}", way_out, status=CONFIG) from fault
    with http:
        yield HttpConnection(http, base_url)


def _kept_certificate(base_url: str) -> Path | None:
    """The certificate of a server of this machine's own user, which nobody has to vouch for."""
    if not base_url.startswith("https:"):
        return None
    return kept_certificate(Path(os.environ.get(DATA_VARIABLE) or default_data()), base_url)
