"""What the Python client does when answers are bad, late, cut, hostile, or do not come at all."""

from collections.abc import AsyncIterator, Iterator
from itertools import islice

import httpx2
import pytest
import trio

from sexton_client import (
    ApiError,
    AsyncSexton,
    Conflict,
    ConnectionFailed,
    ErrorCode,
    Frame,
    NotFound,
    NotUnderstood,
    Patience,
    ServerError,
    Sexton,
    SextonError,
    TooManyRequests,
)
from sexton_http.problems import CODES

BASE = "http://sexton.test"
TOKEN = "zmb_t_" + "0" * 64
STREAM = {"content-type": "text/event-stream"}
EVENT = "0190f3c6-1b7a-7000-8000-000000000001"
HEALTHY = {"status": "ok", "service": "sexton", "version": "1", "request_id": "r"}
Given = httpx2.Response | Exception


class Server:
    """Answers in order, then with its last answer; what it was asked, and how long its clients slept."""

    def __init__(self, *answers: Given) -> None:
        self._answers = list(answers)
        self.calls: list[httpx2.Request] = []
        self.slept: list[float] = []
        transport = httpx2.MockTransport(self._answer)
        self.client = Sexton(BASE, TOKEN, workspace="w", http=httpx2.Client(transport=transport))
        self.client._transport._sleep = self.slept.append
        self.client._transport._workspace_id = "w"

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.calls.append(request)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def resumed_from(self) -> list[str | None]:
        return [call.headers.get("last-event-id") for call in self.calls]

    @property
    def keys(self) -> set[str | None]:
        return {call.headers.get("idempotency-key") for call in self.calls}


def refused(status: int, code: str, **headers: str) -> httpx2.Response:
    problem = {"error_code": code, "title": "No", "detail": "no", "current_state": "killed"}
    return httpx2.Response(status, json=problem, headers={**headers, "x-request-id": "r"})


def frames(*blocks: str) -> httpx2.Response:
    return httpx2.Response(200, text="".join(f"{block}\n\n" for block in blocks), headers=STREAM)


def chunk(number: int, text: str = "") -> str:
    return f'id: {number}\nevent: chunk\ndata: {{"kind":"chunk","event_id":"e","at_ms":0,"text":"{text}"}}'


def say(server: Server) -> str:
    return server.client.events.send("a", message="hello").event_id


ACCEPTED = httpx2.Response(202, json={"event_id": EVENT, "status": "accepted", "request_id": "r"})
BUSY = refused(503, "UZ-API-003", **{"retry-after": "2"})
CUT = httpx2.ReadError("cut")
AWAY = httpx2.ConnectError("refused")


@pytest.mark.parametrize("first", [AWAY, CUT, BUSY, refused(429, "UZ-REQ-006"), refused(409, "UZ-REQ-007")])
def test_what_takes_a_key_is_sent_again_under_the_same_one(first: Given) -> None:
    server = Server(first, ACCEPTED)

    assert say(server) == EVENT
    assert (len(server.calls), len(server.keys), None in server.keys) == (2, 1, False)


def test_each_call_has_a_key_of_its_own_unless_one_is_given() -> None:
    server = Server(ACCEPTED)
    say(server)
    say(server)
    server.client.events.send("a", message="hello", idempotency_key="mine")

    assert len(server.keys) == 3
    assert "mine" in server.keys


@pytest.mark.parametrize(
    ("answer", "calls"),
    [
        (AWAY, 2),
        (refused(429, "UZ-REQ-006"), 2),
        (refused(503, "UZ-API-004"), 2),
        (CUT, 1),
        (BUSY, 1),
        (httpx2.Response(502, text="<html>Bad gateway"), 1),
        (refused(409, "UZ-REQ-009"), 1),
    ],
    ids=["away", "rate", "unread", "cut", "busy", "proxy", "state"],
)
def test_what_takes_no_key_is_sent_again_only_if_nothing_was_done(answer: Given, calls: int) -> None:
    done = httpx2.Response(200, json={"event_id": EVENT, "status": "cancelled", "request_id": "r"})
    server = Server(answer, done)

    if calls == 2:
        assert server.client.events.cancel(EVENT).event_id == EVENT
    else:
        with pytest.raises(SextonError):
            server.client.events.cancel(EVENT)

    assert len(server.calls) == calls


def test_it_waits_as_long_as_the_server_says_by_the_servers_own_clock() -> None:
    dates = {"date": "Thu, 01 Jan 2015 00:00:00 GMT", "retry-after": "Thu, 01 Jan 2015 00:00:07 GMT"}
    server = Server(BUSY, refused(429, "UZ-REQ-006", **dates), httpx2.Response(200, json=HEALTHY))
    server.client.service.health()

    [first, second] = server.slept

    assert 2.0 <= first <= 2.2
    assert 7.0 <= second <= 7.7


def test_who_is_asked_to_wait_for_too_long_is_told_instead() -> None:
    server = Server(refused(429, "UZ-REQ-006", **{"retry-after": "3600"}))
    with pytest.raises(TooManyRequests) as raised:
        server.client.service.health()

    assert (raised.value.retry_after_s, server.slept, len(server.calls)) == (3600.0, [], 1)


def test_a_server_that_stays_away_is_given_up_after_waits_that_double() -> None:
    server = Server(AWAY)
    with pytest.raises(ConnectionFailed, match=BASE):
        server.client.service.health()

    assert len(server.calls) == Patience().tries
    assert all(later > earlier for earlier, later in zip(server.slept, server.slept[1:], strict=False))


def test_an_error_bears_code_hint_and_the_facts_of_the_case() -> None:
    with pytest.raises(Conflict) as raised:
        Server(refused(409, "UZ-ZMB-012")).client.agents.get("a")

    fault = raised.value

    assert fault.code is ErrorCode.UZ_ZMB_012
    assert (fault.status, fault.detail, fault.facts) == (409, "no", {"current_state": "killed"})
    assert fault.hint == CODES["UZ-ZMB-012"].way_out
    assert str(fault).startswith("UZ-ZMB-012: no")


def test_a_code_of_a_later_server_is_kept_as_it_came() -> None:
    with pytest.raises(ServerError) as raised:
        Server(refused(500, "UZ-LATER-001")).client.agents.get("a")

    assert (raised.value.code, raised.value.code.is_known, raised.value.hint) == ("UZ-LATER-001", False, "")


DEEP = "[" * 100_000
STRANGE = [
    httpx2.Response(200, text="<html>Sign in to the network</html>", headers={"content-type": "text/html"}),
    httpx2.Response(200, text='{"status": "ok"'),
    httpx2.Response(200, json={"status": 7}),
    httpx2.Response(200, json=["ok"]),
    httpx2.Response(200, content=b"\xff\xfe"),
    httpx2.Response(200, text=DEEP),
    httpx2.Response(204),
    httpx2.Response(404, text="<html>Not found</html>"),
    httpx2.Response(500, text=DEEP),
    httpx2.Response(403, json={"message": "another service"}),
]


@pytest.mark.parametrize("answer", STRANGE, ids=range(len(STRANGE)))
def test_what_no_server_of_ours_answers_is_not_understood(answer: httpx2.Response) -> None:
    with pytest.raises(NotUnderstood):
        Server(answer).client.service.health()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_token_is_not_carried_to_where_a_redirect_points(status: int) -> None:
    elsewhere = httpx2.Response(status, headers={"location": "https://evil.test/"})
    for is_stream in (False, True):
        server = Server(elsewhere)
        with pytest.raises(NotUnderstood, match=r"evil\.test"):
            _ = (
                next(server.client.events.stream(agent_id="a"))
                if is_stream
                else server.client.agents.get("a")
            )
        assert {call.url.host for call in server.calls} == {"sexton.test"}


@pytest.mark.parametrize("value", ["", ".", ".."])
def test_an_id_cannot_lead_to_another_path(value: str) -> None:
    server = Server(ACCEPTED)
    with pytest.raises(SextonError):
        server.client.agents.get(value)
    with pytest.raises(NotUnderstood):
        server.client.agents.get("../../api-keys?x#y")

    assert [call.url.raw_path for call in server.calls] == [
        b"/v1/workspaces/w/zombies/..%2F..%2Fapi-keys%3Fx%23y"
    ]


@pytest.mark.parametrize(
    "base_url", ["", "sexton.test", "ftp://x", "http://", "http://me:pw@x", "http://x?y"]
)
def test_what_is_no_address_is_said_at_once(base_url: str) -> None:
    with pytest.raises(SextonError, match="address"):
        Sexton(base_url, TOKEN)


def test_a_token_with_a_line_feed_is_said_at_once_and_is_never_shown() -> None:
    with pytest.raises(SextonError) as raised:
        Sexton(BASE, f"{TOKEN}\n")

    assert TOKEN not in str(raised.value)
    assert TOKEN not in repr(Sexton(BASE, TOKEN))


def test_a_list_that_sends_the_same_page_again_is_ended() -> None:
    page = {"items": [], "next_cursor": "c", "request_id": "r"}
    with pytest.raises(NotUnderstood, match="same page"):
        list(Server(httpx2.Response(200, json=page)).client.events.each())


# --- streams ------------------------------------------------------------------------------------------------


def texts(found: Iterator[Frame]) -> list[str]:
    return [frame.data["text"] for frame in found]


def cut_off(*blocks: str) -> httpx2.Response:
    """These, then half a frame, then the end of the connection."""

    def pieces() -> Iterator[bytes]:
        yield "".join(f"{block}\n\n" for block in blocks).encode()
        yield b'id: 99\nevent: chunk\ndata: {"kind":'
        raise httpx2.ReadError("cut")

    return httpx2.Response(200, content=pieces(), headers=STREAM)


def test_a_stream_that_is_cut_goes_on_without_a_gap_and_without_a_repeat() -> None:
    begin = "retry: 3000\nid: 4"
    server = Server(
        cut_off(begin, chunk(5, "a")), AWAY, BUSY, frames(chunk(5, "a"), chunk(6, "b")), frames(chunk(7, "c"))
    )
    with server.client.events.stream(agent_id="a") as stream:
        found = texts(islice(stream, 3))

    assert (found, stream.last_event_id) == (["a", "b", "c"], "7")
    assert server.resumed_from == [None, "5", "5", "5", "6"]
    assert 3.0 <= server.slept[0] <= 3.75


def test_a_stream_begins_where_an_earlier_run_of_the_program_ended() -> None:
    server = Server(frames(chunk(8, "new")))
    with server.client.events.stream(agent_id="a", last_event_id="7") as stream:
        assert next(stream).id == "8"

    assert server.resumed_from == ["7"]


def test_a_stream_that_was_quiet_for_long_is_not_taken_for_one_that_is_away() -> None:
    server = Server(*[frames("id: 1")] * 40, frames(chunk(2, "at last")))
    with server.client.events.stream(agent_id="a") as stream:
        assert texts(islice(stream, 1)) == ["at last"]


def test_a_server_that_stays_away_ends_a_stream_in_the_end() -> None:
    server = Server(frames(chunk(1)), AWAY)
    server.client._transport.patience = Patience(outage_s=-1.0)
    with server.client.events.stream(agent_id="a") as stream:
        next(stream)
        with pytest.raises(ConnectionFailed):
            next(stream)


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_a_stream_that_is_refused_says_so_at_once(status: int) -> None:
    server = Server(refused(status, "UZ-ZMB-009"))
    with pytest.raises(ApiError, match="UZ-ZMB-009"), server.client.events.stream(agent_id="a") as stream:
        next(stream)

    assert len(server.calls) == 1


def test_the_stream_of_an_agent_that_is_deleted_ends() -> None:
    server = Server(frames(chunk(1)), refused(404, "UZ-ZMB-009"))

    assert len(list(server.client.events.stream(agent_id="a"))) == 1


ENDLESS = "data: " + "x" * (2 * 1024 * 1024)


@pytest.mark.parametrize(
    "answer",
    [
        frames(ENDLESS),
        frames("id: 1\ndata: <html>"),
        frames("id: 1\ndata: 7"),
        frames(f"id: 1\ndata: {DEEP}"),
        httpx2.Response(200, text="<html>", headers={"content-type": "text/html"}),
        httpx2.Response(204),
    ],
    ids=["endless line", "no JSON", "no object", "deep", "page", "nothing"],
)
def test_a_stream_of_nonsense_is_not_understood_and_not_asked_for_again(answer: httpx2.Response) -> None:
    server = Server(answer)
    with pytest.raises(NotUnderstood), server.client.events.stream(agent_id="a") as stream:
        next(stream)

    assert len(server.calls) == 1


# --- the asynchronous client decides by the same functions --------------------------------------------------


async def test_the_asynchronous_client_bears_the_same() -> None:
    busy = refused(503, "UZ-API-003", **{"retry-after": "2"})
    accepted = httpx2.Response(202, json={"event_id": EVENT, "status": "accepted", "request_id": "r"})
    answers: list[Given] = [AWAY, busy, accepted, refused(404, "UZ-ZMB-009"), httpx2.Response(302)]
    answers += [
        async_cut(chunk(5, "a")),
        AWAY,
        frames(chunk(5, "a"), chunk(6, "b")),
        refused(404, "UZ-ZMB-009"),
    ]
    calls: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        calls.append(request)
        given = answers.pop(0)
        if isinstance(given, Exception):
            raise given
        return given

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    async with http, AsyncSexton(BASE, TOKEN, http=http, patience=Patience(longest_wait_s=0.01)) as client:
        client._transport._workspace_id = "w"
        with pytest.raises(ServerError):
            await client.events.send("a", message="hello")  # It asks for 2 s, which is too long here.
        assert (await client.events.send("a", message="hello")).event_id == EVENT

        with pytest.raises(NotFound):
            await client.agents.get("a")
        with pytest.raises(NotUnderstood):
            await client.agents.get("a")

        async with await client.events.stream(agent_id="a") as stream:
            found = [(await anext(stream)).data["text"] for _ in range(2)]
            with pytest.raises(StopAsyncIteration):
                await anext(stream)

    assert found == ["a", "b"]
    assert [call.headers.get("last-event-id") for call in calls[5:]] == [None, "5", "5", "6"]


def async_cut(*blocks: str) -> httpx2.Response:
    async def pieces() -> AsyncIterator[bytes]:
        yield "".join(f"{block}\n\n" for block in blocks).encode()
        await trio.lowlevel.checkpoint()
        raise httpx2.ReadError("cut")

    return httpx2.Response(200, content=pieces(), headers=STREAM)
