"""Following a stream through cuts and outages, and walking lists that a server may spell as it likes."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import httpx2
import pytest
from hypothesis import given, strategies as st

from sexton_cli.client import Client
from sexton_cli.connection import HttpConnection
from sexton_cli.exits import FAILED, PROTOCOL, Fault
from sexton_cli.lookups import PAGE, agent_id, first_of, walk
from sexton_cli.problems import NotSexton, Refused, Unreachable
from sexton_cli.streams import OPENED, PATIENCE_S, Follower, Frame, spell

BASE = "http://sexton.test"
STREAM = {"content-type": "text/event-stream"}


class Server:
    """Answers in order, then hangs up; what it was asked, how long its clients slept, what they were told."""

    def __init__(self, *answers: httpx2.Response | Exception) -> None:
        self._answers = list(answers)
        self.calls: list[httpx2.Request] = []
        self.slept: list[float] = []
        self.notes: list[str] = []
        self.now = 0.0
        http = httpx2.Client(transport=httpx2.MockTransport(self._answer))
        self.client = Client(HttpConnection(http, BASE), BASE, "zmb_t_0", sleep=self.sleep)

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.calls.append(request)
        answer = self._answers.pop(0) if self._answers else httpx2.ConnectError("refused")
        if isinstance(answer, Exception):
            raise answer
        return answer

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def follow(self, last_id: str | None = None) -> Iterator[Frame]:
        return iter(
            Follower(
                self.client,
                "/s",
                last_id=last_id,
                note=self.notes.append,
                sleep=self.sleep,
                now=lambda: self.now,
            )
        )

    @property
    def resumed_from(self) -> list[str | None]:
        return [call.headers.get("last-event-id") for call in self.calls]


def stream(*blocks: str, begin: int = 0) -> httpx2.Response:
    text = "".join(f"{block}\n\n" for block in (f"retry: 3000\nid: {begin}", *blocks))
    return httpx2.Response(200, text=text, headers=STREAM)


def frame(number: int, kind: str = "chunk") -> str:
    return f'id: {number}\nevent: {kind}\ndata: {{"kind":"{kind}","event_id":"e","at_ms":0}}'


def refusal(status: int, code: str) -> httpx2.Response:
    return httpx2.Response(status, json={"error_code": code, "detail": "no"})


def test_a_stream_that_is_cut_goes_on_behind_the_last_frame_it_brought() -> None:
    server = Server(stream(frame(1), frame(2)), stream(frame(3)))
    frames = list(islice(server.follow(), 4))

    assert [(f.id, f.kind) for f in frames] == [("", OPENED), ("1", "chunk"), ("2", "chunk"), ("3", "chunk")]
    assert server.resumed_from == [None, "2"]
    assert server.slept == [3.0]


def test_who_is_cut_before_the_first_frame_goes_on_from_where_it_began() -> None:
    away = (httpx2.ConnectError("refused"), refusal(503, "UZ-API-003"))
    server = Server(stream(begin=41), *away, stream(frame(42)))
    frames = list(islice(server.follow(), 2))

    assert frames[1].id == "42"
    assert server.resumed_from == [None, "41", "41", "41"]
    assert len(server.notes) == 2


def test_the_first_try_is_no_time_for_patience() -> None:
    server = Server()
    with pytest.raises(Unreachable):
        next(server.follow())

    assert server.slept == []


def test_a_server_that_stays_away_is_given_up_in_the_end() -> None:
    server = Server(stream(frame(1)))
    with pytest.raises(Unreachable):
        list(server.follow())

    assert PATIENCE_S <= server.now <= PATIENCE_S + 10


@pytest.mark.parametrize("status", [401, 403, 404])
def test_who_may_not_look_any_more_is_told_so_at_once(status: int) -> None:
    server = Server(stream(frame(1)), refusal(status, "UZ-ZMB-009"))
    with pytest.raises(Refused, match="UZ-ZMB-009"):
        list(server.follow())

    assert len(server.calls) == 2


@pytest.mark.parametrize(
    "answer", [httpx2.Response(200, text="<html>"), httpx2.Response(302, headers={"location": "http://e"})]
)
def test_what_is_no_stream_is_known_for_none(answer: httpx2.Response) -> None:
    with pytest.raises(NotSexton) as fault:
        next(Server(answer).follow())
    assert fault.value.status == PROTOCOL


@pytest.mark.parametrize("data", ["not json", "[1]", "7", "null"])
def test_a_frame_that_is_no_object_does_not_end_the_stream(data: str) -> None:
    server = Server(stream(f"id: 1\nevent: odd\ndata: {data}", frame(2)))
    _, odd, good = islice(server.follow(), 3)

    assert (odd.kind, odd.data) == ("odd", {"data": data})
    assert good.id == "2"


def test_half_a_frame_is_none_and_comes_whole_the_next_time() -> None:
    torn = httpx2.Response(200, text='retry: 1\nid: 0\n\nid: 1\nevent: chunk\ndata: {"kind"', headers=STREAM)
    server = Server(torn, stream(frame(1)))

    assert [f.id for f in islice(server.follow(), 2)] == ["", "1"]
    assert server.resumed_from == [None, "0"]


@given(st.dictionaries(st.text(), st.none() | st.integers(-(2**63), 2**63) | st.text()), st.text())
def test_any_frame_can_be_told(data: dict[str, Any], kind: str) -> None:
    assert kind in spell(Frame("1", kind, data)) or len(kind) == 0


# --- lists --------------------------------------------------------------------------------------------------


def page_of(*names: str, cursor: object = None) -> httpx2.Response:
    items = [{"zombie_id": f"id-{name}", "name": name, "status": "active"} for name in names]
    return httpx2.Response(200, json={"items": items, "next_cursor": cursor})


KINDS = {"name": str}


def test_a_list_is_walked_page_by_page_with_its_filters() -> None:
    server = Server(page_of("a", "b", cursor="c1"), page_of("c"))
    assert [row["name"] for row in walk(server.client, "/l", {"status": "active", "x": None}, KINDS)] == [
        "a",
        "b",
        "c",
    ]

    queries = [dict(call.url.params) for call in server.calls]
    assert queries == [
        {"status": "active", "limit": str(PAGE)},
        {"status": "active", "limit": str(PAGE), "cursor": "c1"},
    ]


def test_no_more_is_asked_for_than_is_wanted() -> None:
    server = Server(page_of("a", "b", cursor="c1"), page_of("c", cursor="c2"))
    found = first_of(server.client, "/l", {}, KINDS, 3)

    assert ([row["name"] for row in found.items], found.next_cursor) == (["a", "b", "c"], "c2")
    assert [call.url.params["limit"] for call in server.calls] == ["3", "1"]


@pytest.mark.parametrize("cursor", [7, [], {}, True])
def test_a_cursor_that_is_none_is_a_fault(cursor: object) -> None:
    with pytest.raises(Fault, match="next_cursor") as fault:
        list(walk(Server(page_of("a", cursor=cursor)).client, "/l", {}, KINDS))
    assert fault.value.status == PROTOCOL


def test_a_name_is_found_exactly_or_not_at_all() -> None:
    assert agent_id(Server(page_of("doctor-2", "doctor")).client, "/w", "doctor") == "id-doctor"
    with pytest.raises(Fault, match="no agent named"):
        agent_id(Server(page_of("doctor-2")).client, "/w", "doctor")


@pytest.mark.parametrize("name", ["*", "d*", "Doctor", "a b", "../x", "", "é"])
def test_what_can_be_no_name_is_not_even_asked_for(name: str) -> None:
    server = Server()
    with pytest.raises(Fault) as fault:
        agent_id(server.client, "/w", name)

    assert (fault.value.status, server.calls) == (FAILED, [])
