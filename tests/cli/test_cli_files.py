"""``sexton files`` lists what runs left, and writes a file whole and verified or not at all."""

import hashlib
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import httpx2
import pytest
from click.testing import CliRunner

from sexton_cli.caller import Caller
from sexton_cli.commands import files
from tests.cli.test_cli_streams import Server

EVENT = "019363b0-0000-7000-8000-000000000001"
WORKSPACE = "019363b0-0000-7000-8000-000000000002"
CONTENT = bytes(range(256)) * 100


def item(name: str, attempt: int = 1, content: bytes = CONTENT) -> dict[str, Any]:
    return {
        "artefact_id": f"id-{name}-{attempt}",
        "name": name,
        "attempt": attempt,
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "media_type": "text/plain",
        "created_at": 0,
    }


def page(*items: dict[str, Any]) -> httpx2.Response:
    return httpx2.Response(200, json={"items": list(items), "next_cursor": None})


@pytest.fixture(name="ran")
def _ran(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setattr(files, "workspace_path", lambda *_: f"/v1/workspaces/{WORKSPACE}")
    monkeypatch.chdir(tmp_path)

    def run(server: Server, *words: str) -> Any:
        monkeypatch.setattr(Caller, "client", lambda _: nullcontext(server.client))
        return CliRunner().invoke(files.files, list(words))

    return run


def test_files_are_listed(ran: Any) -> None:
    done = ran(Server(page(item("a/b.txt"), item("c"))), "list", EVENT)

    assert done.exit_code == 0, done.output
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["FILE", "a/b.txt", "c"]


def test_the_last_attempts_file_is_written_under_the_last_part_of_its_name(ran: Any, tmp_path: Path) -> None:
    server = Server(page(item("a/b.txt"), item("a/b.txt", 2)), httpx2.Response(200, content=CONTENT))

    done = ran(server, "get", EVENT, "a/b.txt")

    assert done.exit_code == 0, done.output
    assert (tmp_path / "b.txt").read_bytes() == CONTENT
    assert str(server.calls[-1].url).endswith("/artefacts/id-a%2Fb.txt-2/content")


def test_what_is_cut_short_leaves_nothing(ran: Any, tmp_path: Path) -> None:
    server = Server(page(item("b.txt")), httpx2.Response(200, content=CONTENT[:-1]))

    done = ran(server, "get", EVENT, "b.txt", "--to", "here")

    assert done.exit_code != 0
    assert "cut short" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_not_there_is_said_to_be_so(ran: Any) -> None:
    done = ran(Server(page(item("b.txt"))), "get", EVENT, "b.txt", "--attempt", "2")

    assert "left a file 'b.txt'" in done.stderr
