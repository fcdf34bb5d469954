"""The git host and the model of ``sexton practice``, to whoever calls them rightly or wrongly."""

import base64
import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sexton_cli.demo.git_server import backend
from sexton_cli.demo.practice import ADDRESS, FILES, PULLS, REPOSITORY, PracticeHost
from sexton_cli.demo.stand_in import Reply
from sexton_cli.model_script import ToolCall, Turn
from tests.worlds.shell import Shell

TOKEN = "practice_token"
OPEN = {"title": "Mend it", "head": "mended", "base": "main"}


@pytest.fixture
def host(tmp_path: Path) -> PracticeHost:
    program = backend()
    assert program is not None, "git has no http-backend here"
    turns = [Turn(calls=(ToolCall("shell"),)), Turn("Done.")]
    host = PracticeHost(tmp_path / "repositories", TOKEN, program, turns, lambda _line: None)
    host.fill()
    return host


def commit(host: PracticeHost, branch: str) -> None:
    """Begin a branch with another commit than that of main."""
    tree = host.git(REPOSITORY, "rev-parse", "main^{tree}")
    made = host.git(REPOSITORY, "commit-tree", tree, "-p", "main", "-m", "Another")
    host.git(REPOSITORY, "update-ref", f"refs/heads/{branch}", made)


async def ask(host: PracticeHost, method: str, path: str, who: str, body: bytes = b"") -> Reply:
    scope = {"type": "http", "method": method, "path": path, "query_string": b""}
    return await host.answer(scope, {"authorization": who}, body)


async def test_a_pull_request_needs_the_token_and_two_branches_that_differ(host: PracticeHost) -> None:
    bearer = f"Bearer {TOKEN}"
    commit(host, "mended")
    bodies: list[tuple[str, Any, int]] = [
        ("Bearer another", OPEN, 401),
        ("", OPEN, 401),
        (bearer, OPEN | {"head": "nowhere"}, 422),
        (bearer, OPEN | {"head": "main"}, 422),
        (bearer, OPEN | {"head": "--upload-pack=x"}, 422),
        (bearer, OPEN | {"title": ""}, 422),
        (bearer, ["a list"], 422),
        (bearer, OPEN, 201),
    ]

    for who, body, status in bodies:
        assert (await ask(host, "POST", PULLS, who, msgspec.json.encode(body))).status == status, body
    assert (await ask(host, "POST", PULLS, bearer, b"\xff{")).status == 422
    assert (await ask(host, "DELETE", PULLS, bearer)).status == 404

    listed = msgspec.json.decode((await ask(host, "GET", PULLS, bearer)).content)
    assert [(pull["number"], pull["title"], pull["head"]["ref"]) for pull in listed] == [
        (1, "Mend it", "mended")
    ]


async def test_the_repository_is_served_to_who_has_the_token_and_has_its_fault(host: PracticeHost) -> None:
    known = base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()
    path = f"/{REPOSITORY}.git/HEAD"

    assert (await ask(host, "GET", path, f"Basic {known}")).content == b"ref: refs/heads/main\n"
    assert (await ask(host, "GET", path, "Basic eDp5")).status == 401

    shop: dict[str, Any] = {}
    exec(FILES["shop.py"], shop)
    with pytest.raises(ZeroDivisionError):
        shop["average"]([])


async def test_the_script_begins_again_with_each_conversation(host: PracticeHost) -> None:
    asked = {"role": "user", "content": "go on"}
    said = {"role": "assistant", "content": "I do"}

    for _ in range(2):
        assert b"tool_use" in await told(host, [asked])
        assert b"Done." in await told(host, [asked, said, asked])

    assert b"over after 2 turns" in await told(host, [asked, said, asked, said, asked])
    assert b"invalid_request_error" in await told(host, "no messages")


async def told(host: PracticeHost, messages: object) -> bytes:
    """What the model answers, through the door that runners come by."""
    sent: list[dict[str, Any]] = []
    body = msgspec.json.encode({"model": "any", "messages": messages})

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await host({"type": "http", "method": "POST", "path": "/v1/messages"}, receive, send)
    return bytes(sent[-1]["body"])


def test_what_cannot_be_had_is_told_with_the_way_out(tmp_path: Path) -> None:
    shell, token = Shell(tmp_path), tmp_path / "token"
    with socket.socket() as taken:
        taken.bind((ADDRESS, 0))
        taken.listen()
        port = str(taken.getsockname()[1])

        ended = shell("practice", "--port", port, "--token-file", str(token))
    assert ended.returncode == 69
    assert f"{ADDRESS}:{port} cannot be had" in ended.stderr
    assert "Choose another with --port." in ended.stderr
    assert token.stat().st_mode & 0o777 == 0o600

    ended = shell("practice", "--token-file", str(tmp_path / "no" / "such"))
    assert ended.returncode == 2
    assert "Name another with --token-file." in ended.stderr
