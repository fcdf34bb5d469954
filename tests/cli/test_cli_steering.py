"""What ``sexton steer`` shows of an answer while it comes."""

import re
from contextlib import nullcontext
from typing import Any

import httpx2
import pytest
from click.testing import CliRunner, Result

from sexton_cli import short_ids
from sexton_cli.caller import Caller, Given
from sexton_cli.commands import event
from sexton_cli.commands.events import follow_to_the_end
from sexton_cli.exits import Fault
from tests.cli.test_cli_streams import Server, refusal, stream

PATH = "/v1/workspaces/w/zombies/z"


def told(number: int, kind: str, event_id: str = "e", **more: Any) -> str:
    data = httpx2.Response(200, json={"kind": kind, "event_id": event_id, "at_ms": 0, **more}).text
    return f"id: {number}\nevent: {kind}\ndata: {data}"


def accepted() -> httpx2.Response:
    return httpx2.Response(202, json={"status": "accepted", "event_id": "e"})


def ended(**more: Any) -> httpx2.Response:
    event = {"event_id": "e", "zombie_id": "z", "status": "processed", "response_text": "whole", **more}
    return httpx2.Response(200, json=event)


def steer(server: Server, *, as_json: bool = False) -> Any:
    caller = Caller(Given(output="json" if as_json else "table"), {}, None)
    return follow_to_the_end(caller, server.client, PATH, {"message": "hello"}, sleep=server.sleep)


def test_the_answer_is_shown_as_it_comes_and_once(capsys: pytest.CaptureFixture[str]) -> None:
    frames = [
        told(1, "event_received"),
        told(2, "chunk", text="First line\nand "),
        told(3, "chunk", event_id="another's", text="NOT OURS"),
        told(4, "tool_call_started", name="shell"),
        told(5, "chunk", text="the\x1b[2Jsecond"),
        told(6, "event_complete", event_id="another's", status="processed"),
        told(7, "event_complete", status="processed"),
        told(8, "chunk", text="AFTER"),
    ]
    server = Server(stream(*frames), accepted(), ended())
    assert steer(server)["status"] == "processed"

    out, err = capsys.readouterr()
    assert out == "First line\nand the�[2Jsecond\n"
    assert "… shell" in err
    assert [call.method for call in server.calls] == ["GET", "POST", "GET"], "sent once the stream stood"


def test_an_answer_without_pieces_is_shown_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    server = Server(stream(told(1, "event_complete", status="processed")), accepted(), ended())
    steer(server)

    assert capsys.readouterr().out == "whole\n"


def test_what_happened_while_the_server_was_away_is_not_missed(capsys: pytest.CaptureFixture[str]) -> None:
    server = Server(
        stream(told(8, "chunk", text="one "), begin=7),
        accepted(),
        httpx2.ConnectError("refused"),
        stream(told(9, "chunk", text="two"), told(10, "event_complete", status="processed"), begin=8),
        ended(),
    )
    steer(server)

    assert capsys.readouterr().out == "one two\n"
    assert [call.headers.get("last-event-id") for call in server.calls if "stream" in call.url.path] == [
        None,
        "8",
        "8",
    ]
    assert [call.method for call in server.calls].count("POST") == 1


def test_a_message_that_is_refused_ends_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Fault, match="UZ-ZMB-012"):
        steer(Server(stream(), refusal(409, "UZ-ZMB-012")))
    assert capsys.readouterr().out == ""


def test_with_json_nothing_but_the_document_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    frames = [told(1, "chunk", text="x"), told(2, "event_complete", status="agent_error")]
    event = steer(Server(stream(*frames), accepted(), ended(status="agent_error")), as_json=True)

    assert event["status"] == "agent_error"
    assert capsys.readouterr().out == ""


def test_one_event_is_shown_whole_with_the_lines_of_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {
        "event_id": "e",
        "zombie_id": "z",
        "zombie_name": "scribe",
        "status": "agent_error",
        "failure_label": "agent_run",
        "request_json": {"n": 1},
        "response_text": "First line\nand\x1b[2Jthe second",
    }
    server = Server(httpx2.Response(200, json=found))
    monkeypatch.setattr(Caller, "client", lambda _: nullcontext(server.client))
    monkeypatch.setattr(short_ids, "workspace_path", lambda *_: "/v1/workspaces/w")
    shown = CliRunner().invoke(event.event, ["show", "e"])

    assert "agent    scribe (z)" in shown.output
    assert "status   agent_error (agent_run)" in shown.output
    assert 'request  {"n":1}' in shown.output
    assert shown.output.endswith("\nFirst line\nand\ufffd[2Jthe second\n")
    assert [call.url.path for call in server.calls] == ["/v1/workspaces/w/events/e"]


def test_it_is_said_why_an_event_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    reason = {"kind": "needs", "says": "No runner has gpu (4 enrolled).", "advice": "Enrol one."}
    found = {"event_id": "e", "status": "received", "says": reason["says"], "reasons": [reason], "place": 3}
    server = Server(httpx2.Response(200, json=found))
    monkeypatch.setattr(Caller, "client", lambda _: nullcontext(server.client))
    monkeypatch.setattr(short_ids, "workspace_path", lambda *_: "/v1/workspaces/w")
    said = CliRunner().invoke(event.event, ["why", "e"])

    assert "No runner has gpu (4 enrolled)." in said.output
    assert "Enrol one." in said.output
    assert re.search(r"^place in the queue +3$", said.output, re.MULTILINE)
    assert [call.url.path for call in server.calls] == ["/v1/workspaces/w/events/e/why"]


def test_who_asks_why_an_event_waits_that_has_failed_is_led_to_its_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    says = "It waits for nothing: it ended as agent_error (agent_run)."
    server = Server(httpx2.Response(200, json={"event_id": "e", "status": "agent_error", "says": says}))
    monkeypatch.setattr(Caller, "client", lambda _: nullcontext(server.client))
    monkeypatch.setattr(short_ids, "workspace_path", lambda *_: "/v1/workspaces/w")
    said = CliRunner().invoke(event.event, ["why", "e"])

    assert f"why     {says}" in said.output
    assert "answer  'sexton event show e' shows it" in said.output


def waited(monkeypatch: pytest.MonkeyPatch, server: Server, *words: str) -> Result:
    monkeypatch.setattr(Caller, "client", lambda _: nullcontext(server.client))
    monkeypatch.setattr(short_ids, "workspace_path", lambda *_: "/v1/workspaces/w")
    return CliRunner().invoke(event.event, ["wait", "e", *words])


def state(status: str, *, ended: bool) -> httpx2.Response:
    return httpx2.Response(200, json={"event_id": "e", "status": status, "ended": ended})


def test_an_event_is_waited_for_call_after_call(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(
        state("received", ended=False), state("running", ended=False), state("processed", ended=True)
    )
    done = waited(monkeypatch, server)

    assert done.exit_code == 0, done.output
    assert "processed" in done.output
    assert [call.url.query for call in server.calls] == [b"wait_ms=20000"] * 3


@pytest.mark.parametrize(
    ("answer", "words", "said"),
    [
        (state("agent_error", ended=True), (), "the event ended as agent_error"),
        (state("running", ended=False), ("--timeout", "0"), "has not ended after 0 s; it is running"),
    ],
)
def test_a_wait_that_ends_otherwise_fails(
    monkeypatch: pytest.MonkeyPatch, answer: httpx2.Response, words: tuple[str, ...], said: str
) -> None:
    done = waited(monkeypatch, Server(answer), *words)

    assert done.exit_code == 1
    assert said in done.output
