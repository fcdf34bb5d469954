"""Watches every answer of every test: is it of the declared shape, and which code was seen where."""

import re
from typing import Any, Final

import httpx2
import msgspec
from prometheus_client import CollectorRegistry

from sexton_http.describe.examples import EXAMPLES, Example
from sexton_http.gateway.operations import Operation
from sexton_http.problems import CODES
from sexton_http.routes.table import OPERATIONS
from tests.worlds.example_recorder import record

SEEN: Final[set[tuple[str, str, str]]] = set()
"""Method, path and code of each problem that a route has answered with, since the tests began."""
JSON: Final = "application/json"
PROBLEM: Final = "application/problem+json"
OUTSIDE: Final = frozenset(
    {
        *("UZ-REQ-001", "UZ-REQ-002", "UZ-REQ-003", "UZ-REQ-004", "UZ-REQ-006"),
        *("UZ-API-005", "UZ-RUNS-410"),
    }
)
"""What may be answered where no route is."""

_ROUTES: Final = sorted(
    ((re.compile(re.sub(r"\{\w+\}", "[^/:]+", row.path)), row) for row in OPERATIONS),
    key=lambda route: len(route[1].params),
)


def note_problems(registry: CollectorRegistry) -> None:
    """Take over what a server has counted."""
    SEEN.update(
        (labels["method"], labels["route"], labels["code"])
        for labels, value in counted(registry, "sexton_http_problems_total")
        if value
    )


def counted(registry: CollectorRegistry, name: str) -> list[tuple[dict[str, str], float]]:
    """What one counter counts, without asking all others."""
    metrics = registry.restricted_registry([name]).collect()
    return [(sample.labels, sample.value) for metric in metrics for sample in metric.samples]


def route_of(method: str, path: str) -> Operation | None:
    spelled_out = False
    for pattern, operation in _ROUTES:
        if spelled_out and operation.params:
            return None
        if pattern.fullmatch(path):
            if operation.method == method:
                return operation
            if not operation.params:
                spelled_out = True
    return None


async def check_answer(answer: httpx2.Response) -> None:
    """Hold one answer against the declaration of its route. AssertionError where it is none of it."""
    request = answer.request
    if request.method == "HEAD":
        return
    media = answer.headers.get("content-type", "").partition(";")[0]
    if media in {JSON, PROBLEM}:
        await answer.aread()
    operation = route_of(request.method, request.url.path)
    where = f"{request.method} {request.url.path}: {answer.status_code}"
    if media == PROBLEM:
        _check_problem(operation, answer.status_code, answer.json(), where)
        return
    assert operation is not None, where
    assert answer.status_code in {operation.status, *operation.extra_statuses}, where
    if answer.status_code == httpx2.codes.NO_CONTENT:
        assert "content-type" not in answer.headers, where
        await answer.aread()
        record(operation, answer)
    elif operation.media == JSON and answer.status_code != httpx2.codes.NOT_MODIFIED:
        assert media == JSON, where
        check_shape(operation, answer.content)
        record(operation, answer)


def has_example(operation: Operation, answer: httpx2.Response) -> bool:
    """Whether the document shows one; AssertionError where the server now says another kind of thing."""
    example = EXAMPLES.get(operation.name, Example()).answers.get(str(answer.status_code))
    if example is not None:
        assert disagreement(example, answer.json()) == "", operation.path
    return example is not None


def disagreement(example: Any, live: Any, place: str = "$") -> str:
    """Where two documents have different kinds of values; empty when nowhere. Null and empty fit all."""
    if example is None or live is None:
        return ""
    if isinstance(example, dict) and isinstance(live, dict):
        for name in example.keys() & live.keys():
            if found := disagreement(example[name], live[name], f"{place}.{name}"):
                return found
        return ""
    if isinstance(example, list) and isinstance(live, list):
        return disagreement(example[0], live[0], f"{place}[0]") if example and live else ""
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (example, live))
    return "" if numbers or type(example) is type(live) else place


def check_shape(operation: Operation, body: bytes) -> None:
    """Nothing is missing, nothing has another type, and nothing is there that is not declared."""
    plain = msgspec.json.decode(body)
    if not operation.untraced:
        assert isinstance(plain.pop("request_id"), str), operation.path
    shaped = msgspec.json.decode(msgspec.json.encode(plain), type=operation.answer)
    assert msgspec.json.decode(msgspec.json.encode(shaped)) == plain, operation.path


def _check_problem(operation: Operation | None, status: int, problem: dict[str, Any], where: str) -> None:
    code = problem["error_code"]
    allowed = OUTSIDE if operation is None else {*operation.all_codes(), "UZ-REQ-003"}
    assert code in allowed, f"{where} {code} is not declared"
    assert status == problem["status"], where
    assert status == (CODES[code].status if operation is None else operation.status_of(code)), where
    assert problem["error"] == {
        "code": code,
        "message": problem["detail"],
        "details": problem["error"]["details"],
    }
