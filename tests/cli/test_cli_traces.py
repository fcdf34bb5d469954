"""The options of traces: what is refused at the start, and what is never shown."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import click
import pytest

from sexton_actors.traces.content import ContentMode
from sexton_cli.commands.shown_options import shown_options
from sexton_cli.commands.trace_options import HEADERS_VARIABLE, TRACE_OPTIONS, take_traces
from sexton_cli.exits import StartupFault
from sexton_cli.ground import _check_traces
from sexton_cli.settings import NodeSettings
from sexton_http.outbound.trace_address import TraceAddress


def given(*words: str) -> click.Context:
    command = click.Command("serve", callback=lambda **_: None)
    for option in reversed(TRACE_OPTIONS):
        command = option(command)
    return command.make_context("serve", list(words))


def taken(*words: str) -> dict[str, object]:
    return take_traces(dict(given(*words).params))


def test_traces_are_off_unless_a_collector_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)

    assert taken() == {"traces": None, "trace_link": None}

    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector.example:4318/otlp/")
    monkeypatch.setenv(HEADERS_VARIABLE, "Authorization=Bearer%20s3cret")
    address = taken("--otlp-content", "full")["traces"]

    assert isinstance(address, TraceAddress)
    assert (address.url, address.content) == (
        "https://collector.example:4318/otlp/v1/traces",
        ContentMode.FULL,
    )
    assert address.headers == {"authorization": "Bearer s3cret"}
    assert "s3cret" not in repr(address) + repr(shown_options(given()))


@pytest.mark.parametrize(
    ("words", "headers"),
    [
        (("--otlp-endpoint", "localhost:4317"), ""),
        (("--otlp-endpoint", "ftp://localhost"), ""),
        (("--otlp-endpoint", "http://"), ""),
        (("--otlp-endpoint", "http://[::1"), ""),
        (("--otlp-endpoint", "http://host:99999"), ""),
        (("--otlp-endpoint", "http://ada:pw@host"), ""),
        (("--otlp-endpoint", "http://host?x=1"), ""),
        (("--otlp-endpoint", "http://host"), "no pair"),
        (("--otlp-endpoint", "http://host"), "a=b%0D%0Ac: d"),
        (("--otlp-endpoint", "http://host"), "a b=c"),
        (("--trace-link", "https://traces.example.com"), ""),
        (("--trace-link", "javascript:alert('{trace_id}')"), ""),
    ],
)
def test_an_address_that_cannot_be_meant_ends_the_start(
    words: tuple[str, ...], headers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HEADERS_VARIABLE, headers)

    with pytest.raises(click.UsageError):
        taken(*words)


def test_without_the_extra_a_server_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    address = TraceAddress("http://localhost:4318/v1/traces", {})
    _check_traces(NodeSettings(data=Path(), traces=address))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)

    _check_traces(NodeSettings(data=Path()))
    with pytest.raises(StartupFault, match="install sexton with the extra otel"):
        _check_traces(NodeSettings(data=Path(), traces=address))
