"""One matcher decides which route a request is for, and Quart's own map agrees with it."""

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st
from prometheus_client import CollectorRegistry
from werkzeug.exceptions import HTTPException
from werkzeug.routing import MapAdapter

from sexton_http.describe.documents import make_documents
from sexton_http.gateway.operations import Operation
from sexton_http.gateway.pipeline import Mounted
from sexton_http.gateway.quart_mount import ALL_METHODS, make_quart
from sexton_http.gateway.route_matcher import RouteMatcher
from sexton_http.gateway.services import make_services
from sexton_http.routes.removed import PREFIXES, gone
from sexton_http.routes.table import OPERATIONS
from tests.thorough import examples
from tests.worlds.http import HttpWorld

PARTS = sorted({part for row in OPERATIONS for part in row.path.split("/") if "{" not in part})
VALUES = [*PARTS, "a0", "a:b", ":approve", "a0:approve", "a0:approve:deny", "", " ", "{x}"]
"""What may stand instead of a parameter, the literal parts of other routes among it."""


@pytest.fixture
def both(world: HttpWorld) -> tuple[RouteMatcher, MapAdapter]:
    services = make_services(replace(world.ctx, registry=CollectorRegistry()), make_documents(OPERATIONS, ""))
    routes = [Mounted(operation, services) for operation in OPERATIONS]
    quart = make_quart(services, routes, removed=PREFIXES, gone=gone)
    return RouteMatcher(routes), quart.url_map.bind("sexton.test")


async def test_every_route_is_found_by_its_own_path(both: tuple[RouteMatcher, MapAdapter]) -> None:
    matcher, _ = both
    for row in OPERATIONS:
        found = matcher.find(row.method, example(row))
        assert found is not None, row.path
        assert found[0].operation is row
        assert dict(found[1]) == dict.fromkeys(row.params, "a0")

    assert matcher.find("GET", "/v1/runners/me/leases") is None
    assert matcher.find("POST", "/v1/webhooks//github") is None
    assert matcher.find("POST", "/v1/webhooks/a:b") is None
    assert matcher.find("HEAD", "/healthz") == matcher.find("GET", "/healthz")


async def test_the_matcher_and_quart_find_the_same_route(both: tuple[RouteMatcher, MapAdapter]) -> None:
    matcher, adapter = both

    @settings(max_examples=examples(500), deadline=None)
    @given(data=st.data())
    def agree(data: st.DataObject) -> None:
        row = data.draw(st.sampled_from(OPERATIONS))
        method = data.draw(st.sampled_from([row.method, *ALL_METHODS]))
        path = "/" + "/".join(filled(row, data))

        found = matcher.find(method, path)

        assert (None if found is None else endpoint(found[0].operation)) == by_quart(adapter, method, path)
        if found is not None:
            assert dict(found[1]) == params_by_quart(adapter, method, path)

    agree()


def filled(row: Operation, data: st.DataObject) -> Iterator[str]:
    for part in row.path.split("/")[1:]:
        yield re.sub(r"\{\w+\}", lambda _: data.draw(st.sampled_from(VALUES)), part)


def by_quart(adapter: MapAdapter, method: str, path: str) -> str | None:
    """The endpoint; None where Quart itself says that there is no such route, or no such method."""
    try:
        found = adapter.match(path, method)[0]
    except HTTPException:
        return None
    return None if found.startswith(("not here", "removed")) else str(found)


def params_by_quart(adapter: MapAdapter, method: str, path: str) -> dict[str, object]:
    return dict(adapter.match(path, method)[1])


def endpoint(operation: Operation) -> str:
    return f"{operation.method} {operation.path}"


def example(row: Operation) -> str:
    return re.sub(r"\{(\w+)\}", "a0", row.path)
