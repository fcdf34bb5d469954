"""Where traces are sent, and with which headers, as OpenTelemetry's variables say it."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec

from sexton_actors.traces.content import ContentMode

TRACES_PATH: Final = "/v1/traces"


class BadEndpoint(Exception):
    """It is no address of a collector; the text says why."""


class TraceAddress(msgspec.Struct, frozen=True):
    """A collector. Its headers may hold a token, so it shows none of them."""

    url: str
    headers: Mapping[str, str]
    content: ContentMode = ContentMode.NONE

    def __repr__(self) -> str:
        return f"<TraceAddress {self.url}>"


def read_endpoint(endpoint: str, headers: str, content: ContentMode) -> TraceAddress:
    """Read the address of a collector, to which the path of traces is added. Raises BadEndpoint.

    >>> read_endpoint("http://localhost:4318/", "authorization=Bearer%20x", ContentMode.NONE)
    <TraceAddress http://localhost:4318/v1/traces>
    >>> read_endpoint("localhost:4317", "", ContentMode.NONE)
    Traceback (most recent call last):
    sexton_http.outbound.trace_address.BadEndpoint: it must begin with http:// or https:// and name a host
    """
    try:
        parts = urlsplit(endpoint)
        fits = (
            parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port)
        )
    except ValueError as fault:
        raise BadEndpoint(str(fault)) from fault
    if not fits:
        raise BadEndpoint("it must begin with http:// or https:// and name a host")
    if parts.username is not None or parts.query or parts.fragment:
        raise BadEndpoint("it must have no user, query or fragment; OTEL_EXPORTER_OTLP_HEADERS is for tokens")
    return TraceAddress(endpoint.rstrip("/") + TRACES_PATH, read_headers(headers), content)


def read_headers(text: str) -> dict[str, str]:
    """Read ``name=value,name=value``, with values percent-encoded. Raises BadEndpoint.

    >>> read_headers("api-key=a%2Cb, x=1"), read_headers("")
    ({'api-key': 'a,b', 'x': '1'}, {})
    """
    headers = {}
    for pair in filter(None, map(str.strip, text.split(","))):
        name, sign, value = pair.partition("=")
        name, value = name.strip().lower(), unquote(value.strip())
        known = name.replace("-", "").replace("_", "").isalnum() and name.isascii()
        if not sign or not known or not value.isascii() or not value.isprintable():
            raise BadEndpoint("OTEL_EXPORTER_OTLP_HEADERS must be name=value pairs with commas between them")
        headers[name] = value
    return headers
