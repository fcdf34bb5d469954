"""No answer of any route is kept by a cache, guessed at, or told to other sites."""

from collections import defaultdict

import httpx2
import pytest

from sexton_http.gateway.operations import Operation, Wait
from sexton_http.routes.table import OPERATIONS
from tests.http.test_http_matrix import UNKNOWN, address
from tests.worlds import every_route
from tests.worlds.http import open_http_world

TOLD = ("cache-control", "x-content-type-options", "referrer-policy", "strict-transport-security")


def kind_of(answer: httpx2.Response) -> str:
    media = answer.headers.get("content-type", "nothing").partition(";")[0]
    return f"{answer.status_code // 100}xx {media}"


def safe(answer: httpx2.Response) -> list[str]:
    """What an answer lacks; public documents may be kept, and pages tell their own site where they are."""
    told = {name: answer.headers.get(name) for name in TOLD}
    kept = told["cache-control"] in {"no-store", "no-cache"} or answer.url.path.startswith(
        ("/.well-known/", "/_um/")
    )
    checks = {
        "cache-control": kept,
        "x-content-type-options": told["x-content-type-options"] == "nosniff",
        "referrer-policy": told["referrer-policy"] in {"no-referrer", "same-origin"},
    }
    return [f"{answer.request.method} {answer.url.path}: {name}" for name, well in checks.items() if not well]


async def test_every_route_has_them_whatever_it_answers() -> None:
    kinds: dict[str, set[tuple[str | None, ...]]] = defaultdict(set)
    lacking: list[str] = []
    async with open_http_world(address_rate=None) as world:

        async def look(answer: httpx2.Response) -> None:
            kinds[kind_of(answer)].add(tuple(answer.headers.get(name) for name in TOLD))
            lacking.extend(safe(answer))

        world.http.event_hooks["response"].append(look)
        await every_route.take(world)
        seen = 0
        for operation in OPERATIONS:
            seen += 1
            async with world.http.stream(
                operation.method, address(operation, world, str(UNKNOWN)), headers=_token(operation)
            ):
                pass
        for method, path in (("GET", "/nowhere"), ("PUT", "/healthz"), ("GET", "/v1/agents/%00")):
            await world.call(method, path)
    for kind, headers in sorted(kinds.items()):
        for values in sorted(headers, key=str):
            print(f"{kind:<36}", *(f"{value or '-':<24}" for value in values))  # noqa: T201 - for who looks with -s

    assert lacking == []
    assert seen == len(OPERATIONS)
    assert {"2xx application/json", "4xx application/problem+json", "2xx text/html"} <= set(kinds)


def _token(operation: Operation) -> dict[str, str]:
    """A stream that opens is not read; whoever has no token is told so with the same headers."""
    return {"authorization": "Bearer nobody"} if operation.wait is not Wait.STREAM else {}


@pytest.mark.parametrize(
    ("base_url", "told"), [("https://a.example", "max-age=31536000"), ("http://a", None)]
)
async def test_a_server_that_people_reach_over_tls_says_so(base_url: str, told: str | None) -> None:
    async with open_http_world(base_url=base_url) as world:
        answers = [await world.get("/healthz"), await world.get("/nowhere"), await world.get("/sign-in")]

    assert {answer.headers.get("strict-transport-security") for answer in answers} == {told}


async def test_hosts_below_the_server_s_name_are_spoken_for_where_the_operator_says_so() -> None:
    async with open_http_world(base_url="https://sexton.example", hsts_subdomains=True) as world:
        answers = [await world.get("/healthz"), await world.get("/nowhere"), await world.get("/sign-in")]
    async with open_http_world(hsts_subdomains=True) as plain:
        without = await plain.get("/healthz")
    told = {answer.headers.get("strict-transport-security") for answer in answers}

    assert told == {"max-age=31536000; includeSubDomains"}
    assert "strict-transport-security" not in without.headers
