"""What a call makes of answers good, bad and late."""

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from sexton_cli.client import MAX_ANSWER_BYTES, TRIES, Client, field
from sexton_cli.connection import HttpConnection
from sexton_cli.exits import FAILED, NO_PERMISSION, PROTOCOL, UNAVAILABLE, Fault
from sexton_cli.problems import NotSexton, Refused, Unreachable

BASE = "http://sexton.test"
TOKEN = "zmb_t_" + "5" * 64
Answer = Callable[[httpx2.Request], httpx2.Response]


class Line:
    """A client, the calls that left it, and how long it slept."""

    def __init__(self, *answers: httpx2.Response | Exception) -> None:
        self._answers = list(answers)
        self.calls: list[httpx2.Request] = []
        self.slept: list[float] = []
        http = httpx2.Client(transport=httpx2.MockTransport(self._answer))
        self.client = Client(HttpConnection(http, BASE), BASE, TOKEN, sleep=self.slept.append)

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.calls.append(request)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def problem(status: int, code: str, **headers: str) -> httpx2.Response:
    body = {
        "error_code": code,
        "title": "T",
        "detail": "what happened",
        "request_id": "r-1",
        "status": status,
    }
    return httpx2.Response(status, json=body, headers={k.replace("_", "-"): v for k, v in headers.items()})


def good(**body: Any) -> httpx2.Response:
    return httpx2.Response(200, json=body)


def test_a_call_bears_the_token_and_says_who_calls() -> None:
    line = Line(good(items=[]))
    assert line.client.get("/v1/x") == {"items": []}

    (call,) = line.calls
    assert call.headers["authorization"] == f"Bearer {TOKEN}"
    assert call.headers["user-agent"] == "sexton-cli"


def test_a_look_at_the_server_bears_no_token() -> None:
    line = Line(good())
    line.client.look("/healthz")

    assert "authorization" not in line.calls[0].headers


@pytest.mark.parametrize("status", [429, 503])
def test_a_call_that_may_be_made_twice_waits_as_long_as_it_is_told(
    status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    line = Line(problem(status, "UZ-REQ-006", retry_after="2"), good(total=0))

    assert line.client.get("/v1/x") == {"total": 0}
    assert line.slept == [2.0]
    assert "2 s" in capsys.readouterr().err


def test_a_delete_may_be_made_twice_too() -> None:
    line = Line(problem(503, "UZ-API-003", retry_after="1"), httpx2.Response(204))
    line.client.delete("/v1/x")

    assert line.slept == [1.0]


@pytest.mark.parametrize("method", ["post", "patch"])
def test_a_call_that_may_have_been_done_is_never_made_again(method: str) -> None:
    line = Line(problem(503, "UZ-API-003", retry_after="1"))
    with pytest.raises(Refused, match="UZ-API-003") as refused:
        getattr(line.client, method)("/v1/x", {})

    assert refused.value.status == UNAVAILABLE
    assert (len(line.calls), line.slept) == (1, [])


def test_patience_has_an_end() -> None:
    line = Line(*[problem(429, "UZ-REQ-006", retry_after="1")] * TRIES)
    with pytest.raises(Refused, match="UZ-REQ-006"):
        line.client.get("/v1/x")

    assert (len(line.calls), line.slept) == (TRIES, [1.0] * (TRIES - 1))


@pytest.mark.parametrize("wait", ["3600", "-1", "soon", "1e3", "²", "9" * 5000])
def test_nobody_is_kept_waiting_for_an_hour_or_for_nonsense(wait: str) -> None:
    line = Line(httpx2.Response(429, json={"error_code": "X"}, headers=[(b"retry-after", wait.encode())]))
    with pytest.raises(Refused):
        line.client.get("/v1/x")

    assert line.slept == []


@pytest.mark.parametrize(
    ("status", "ends"),
    [
        (400, FAILED),
        (401, NO_PERMISSION),
        (402, FAILED),
        (403, NO_PERMISSION),
        (404, FAILED),
        (409, FAILED),
        (410, FAILED),
        (429, UNAVAILABLE),
        (500, UNAVAILABLE),
        (503, UNAVAILABLE),
    ],
)
def test_the_exit_status_tells_the_kind_of_refusal(status: int, ends: int) -> None:
    line = Line(problem(status, "UZ-REQ-001"))
    with pytest.raises(Refused) as refused:
        line.client.post("/v1/x", {})

    assert refused.value.status == ends
    assert refused.value.line() == "UZ-REQ-001: what happened. (request r-1)"


def test_no_answer_at_all_says_where_and_keeps_the_token_to_itself() -> None:
    line = Line(httpx2.ConnectError("refused"))
    with pytest.raises(Unreachable, match=BASE) as fault:
        line.client.get("/v1/x")

    assert fault.value.status == UNAVAILABLE
    assert fault.value.__suppress_context__
    assert TOKEN not in f"{fault.value!r} {fault.value.line()} {line.client!r}"


@pytest.mark.parametrize(
    "answer",
    [
        httpx2.Response(200, text="<html>"),
        httpx2.Response(200, json=[1]),
        httpx2.Response(404, text="no such page"),
        httpx2.Response(400, json={"message": "another service"}),
        httpx2.Response(200, content=b"x" * (MAX_ANSWER_BYTES + 1)),
        httpx2.Response(200, content=b"not gzip", headers={"content-encoding": "identity", "x": "1"}),
    ],
)
def test_an_answer_of_another_service_is_known_for_one(answer: httpx2.Response) -> None:
    with pytest.raises(NotSexton) as fault:
        Line(answer).client.get("/v1/x")
    assert fault.value.status == PROTOCOL


def test_a_gateway_without_its_server_is_no_server() -> None:
    with pytest.raises(Unreachable, match="502"):
        Line(httpx2.Response(502, text="Bad Gateway")).client.get("/v1/x")


def test_a_token_is_not_carried_to_where_a_redirect_points() -> None:
    line = Line(httpx2.Response(302, headers={"location": "http://elsewhere.test/"}))
    with pytest.raises(NotSexton, match=r"elsewhere\.test"):
        line.client.get("/v1/x")

    assert len(line.calls) == 1


def test_what_a_server_says_cannot_steer_the_terminal() -> None:
    body = {"error_code": "UZ-X\x1b[2J", "detail": "a\nb\x07\u202e", "request_id": "\x9b31m"}
    with pytest.raises(Refused) as refused:
        Line(httpx2.Response(400, json=body)).client.get("/v1/x")

    assert refused.value.line().isprintable()


def test_a_missing_member_is_a_fault_and_no_traceback() -> None:
    with pytest.raises(Fault, match="session_id") as fault:
        field({"session_id": 7}, "session_id", str)
    assert fault.value.status == PROTOCOL
