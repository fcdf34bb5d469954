"""The options that say where traces go."""

import os
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

import click

from sexton_actors.traces.content import ContentMode
from sexton_http.outbound.trace_address import BadEndpoint, TraceAddress, read_endpoint

Option = Callable[[Any], Any]

HEADERS_VARIABLE: Final = "OTEL_EXPORTER_OTLP_HEADERS"
PLACE: Final = "{trace_id}"

TRACE_OPTIONS: Final[tuple[Option, ...]] = (
    click.option(
        "--otlp-endpoint",
        metavar="URL",
        envvar="OTEL_EXPORTER_OTLP_ENDPOINT",
        help="OpenTelemetry collector for traces, by OTLP over HTTP, such as http://localhost:4318.",
    ),
    click.option(
        "--otlp-content",
        type=click.Choice([one.value for one in ContentMode]),
        default=ContentMode.NONE.value,
        show_default=True,
        envvar="SEXTON_OTLP_CONTENT",
        help="What traces tell of prompts, answers and calls: nothing, their lengths, or the redacted texts.",
    ),
    click.option(
        "--trace-link",
        metavar="URL",
        envvar="SEXTON_TRACE_LINK",
        help="Where a trace can be looked at, such as https://traces.example.com/trace/{trace_id}.",
    ),
)


def take_traces(given: dict[str, object]) -> dict[str, object]:
    """What the options say, taken out of ``given``, as the fields of ``NodeSettings`` that they fill."""
    endpoint, content, link = (given.pop(name) for name in ("otlp_endpoint", "otlp_content", "trace_link"))
    return {
        "traces": _address(str(endpoint), ContentMode(str(content))) if endpoint else None,
        "trace_link": _link(str(link)) if link else None,
    }


def _address(endpoint: str, content: ContentMode) -> TraceAddress:
    try:
        return read_endpoint(endpoint, os.environ.get(HEADERS_VARIABLE, ""), content)
    except BadEndpoint as fault:
        raise click.UsageError(f"--otlp-endpoint: {fault}") from fault


def _link(template: str) -> str:
    """Check the template of a link.

    >>> _link("https://traces.example.com/{trace_id}")
    'https://traces.example.com/{trace_id}'
    """
    try:
        parts = urlsplit(template)
    except ValueError as fault:
        raise click.UsageError(f"--trace-link: {fault}") from fault
    if parts.scheme not in {"http", "https"} or not parts.hostname or template.count(PLACE) != 1:
        raise click.UsageError(f"--trace-link: an http or https address with {PLACE} in it, once")
    return template
