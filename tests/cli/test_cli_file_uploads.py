"""``sexton steer --file`` sends files part by part, and names them in its message."""

import hashlib
import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import httpx2
import pytest
from click.testing import CliRunner, Result

from sexton_cli.caller import Caller
from sexton_cli.commands import events
from tests.cli.test_cli_streams import Server, refusal

CONTENT = b"a report, in parts"


def view(received: int, *, complete: bool = False) -> httpx2.Response:
    shown = {"upload_id": "u", "received": received, "complete": complete, "part_bytes": 10}
    return httpx2.Response(200, json=shown)


@pytest.fixture(name="ran")
def _ran(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setattr(events, "workspace_path", lambda *_: "/v1/workspaces/w")
    monkeypatch.setattr(events, "agent_path", lambda *_: "/v1/workspaces/w/zombies/z")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "report.html").write_bytes(CONTENT)
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "report.html").write_bytes(b"another")

    def run(server: Server, *words: str) -> Result:
        monkeypatch.setattr(Caller, "client", lambda _: nullcontext(server.client))
        return CliRunner().invoke(events.steer, ["agent", "Look.", "--no-wait", *words])

    return run


def test_a_file_is_sent_from_where_it_stands_and_named(ran: Any) -> None:
    sent = httpx2.Response(202, json={"status": "accepted", "event_id": "e"})
    server = Server(view(0), view(10), view(18, complete=True), sent)

    done = ran(server, "--file", "report.html")

    assert (done.exit_code, done.stdout) == (0, "e\n"), done.output

    begun, first, second, said = server.calls
    assert json.loads(begun.content) == {"sha256": hashlib.sha256(CONTENT).hexdigest(), "size": len(CONTENT)}
    assert [(call.url.query, call.content) for call in (first, second)] == [
        (b"offset=0", CONTENT[:10]),
        (b"offset=10", CONTENT[10:]),
    ]
    assert first.headers["content-type"] == "application/octet-stream"

    named = {"name": "report.html", "upload_id": "u", "media_type": "text/html"}
    assert json.loads(said.content) == {"message": "Look.", "files": [named]}


@pytest.mark.parametrize(
    ("answers", "words", "told", "calls"),
    [
        ((), ("--file", "missing"), "missing: No such file", 0),
        ((), ("--file", "report.html", "--file", "below/report.html"), "two files are called", 0),
        ((view(0), refusal(409, "UZ-FILE-006")), ("--file", "report.html"), "changed while it was sent", 2),
        ((view(0), view(0)), ("--file", "report.html"), "did not take a part", 2),
        ((refusal(409, "UZ-FILE-002"),), ("--file", "report.html"), "UZ-FILE-002", 1),
    ],
)
def test_what_cannot_be_sent_sends_no_message(
    ran: Any, answers: tuple[httpx2.Response, ...], words: tuple[str, ...], told: str, calls: int
) -> None:
    server = Server(*answers)
    done = ran(server, *words)

    assert done.exit_code != 0
    assert told in done.output + str(done.exception)
    assert len(server.calls) == calls
