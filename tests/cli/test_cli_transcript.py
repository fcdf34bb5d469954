"""``sexton transcript`` prints what a run said and did, in order and page by page."""

from contextlib import nullcontext
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from click.testing import CliRunner

from sexton_cli import short_ids
from sexton_cli.caller import Caller
from sexton_cli.commands import transcript
from tests.cli.test_cli_streams import Server

EVENT = "019363b0-0000-7000-8000-000000000001"
WORKSPACE = "019363b0-0000-7000-8000-000000000002"


def entry(number: int, kind: str, **data: Any) -> dict[str, Any]:
    return {"attempt": 1, "number": number, "kind": kind, "at_ms": 0, "data": data}


def page(*items: dict[str, Any], cursor: str | None = None, **changes: Any) -> httpx2.Response:
    row = {"attempt": 1, "cut": False, "removed": False, "missing": 0, **changes}
    return httpx2.Response(200, json={"items": list(items), "attempts": [row], "next_cursor": cursor})


@pytest.fixture(name="ran")
def _ran(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(short_ids, "workspace_path", lambda *_: f"/v1/workspaces/{WORKSPACE}")

    def run(server: Server, *words: str) -> Any:
        monkeypatch.setattr(Caller, "client", lambda _: nullcontext(server.client))
        return CliRunner().invoke(transcript.transcript, [EVENT, *words])

    return run


def test_pages_are_followed_and_what_is_missing_is_said(ran: Any) -> None:
    server = Server(
        page(entry(1, "output", stream="stdout", text="done\n"), cursor="c1"),
        page(entry(4, "tool_call", name="shell", arguments={"command": "ls"}), missing=2, cut=True),
    )
    done = ran(server, "--attempt", "1")
    assert done.exit_code == 0, done.output
    assert '1.1 output 1970-01-01 00:00:00Z {"stream":"stdout"}\ndone\n' in done.stdout
    assert '"arguments":{"command":"ls"}' in done.stdout
    assert "2 entries were lost on their way" in done.stderr
    assert "reached the bound" in done.stderr

    asked = [parse_qs(urlsplit(str(call.url)).query) for call in server.calls]
    assert [query.get("cursor") for query in asked] == [None, ["c1"]]
    assert asked[0]["whole"] == ["true"]
