"""All that is fuzzed: each is one function of bytes, which raises where two readings differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tests.fuzz import of_actors, of_http, of_http2, of_runner

TARGETS: Final[Mapping[str, Callable[[bytes], None]]] = {
    "command_lines": of_runner.command_lines,
    "cursor": of_http.cursor,
    "egress_heads": of_runner.egress_heads,
    "filters": of_actors.filters,
    "forms": of_http.forms,
    "headers": of_http.headers,
    "hellos": of_runner.hellos,
    "http1": of_http.http1,
    "http2": of_http2.http2,
    "ids": of_http.ids,
    "json_bodies": of_http.json_bodies,
    "manifests": of_actors.manifests,
    "schedules": of_actors.schedules,
    "streams": of_runner.streams,
    "targets": of_runner.targets,
    "webhooks": of_actors.webhooks,
}
