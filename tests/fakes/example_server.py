"""Answers with the examples of the description, for commands that run in the test's own process."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from sexton_cli import caller
from sexton_cli.client import Client
from sexton_cli.connection import HttpConnection
from sexton_http.describe.examples import EXAMPLES, Example
from sexton_http.gateway.operations import Operation
from sexton_http.routes.table import OPERATIONS

WORKSPACE = EXAMPLES["list_workspaces"].answers["200"]["items"][0]["workspace_id"]


class ExampleServer:
    """Answers, and knows which operations it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.paths: list[str] = []
        self.answers: dict[str, Any] = {}
        """What it answers in place of an example, by the operation's name."""

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        operation = operation_of(request.method, request.url.path)
        self.asked.append(operation.name)
        self.paths.append(request.url.path)
        if operation.status == 204:
            return httpx2.Response(204)
        answers = EXAMPLES.get(operation.name, Example()).answers
        shown: Any = next((body for status, body in answers.items() if status.startswith("2")), {"items": []})
        body = self.answers.get(operation.name, shown)
        return httpx2.Response(operation.status, content=msgspec.json.encode(body))

    @contextmanager
    def opened(self, base_url: str, token: str | None, **rest: Any) -> Iterator[Client]:
        """In place of ``open_client``."""
        del rest
        with httpx2.Client(transport=httpx2.MockTransport(self)) as http:
            yield Client(HttpConnection(http, base_url), base_url, token, sleep=lambda _: None)


PATTERNS = {
    operation.path: re.compile(re.sub(r"\\{\w+\\}", "[^/:]+", re.escape(operation.path)))
    for operation in OPERATIONS
}


def operation_of(method: str, path: str) -> Operation:
    """The operation at this address; the one with the fewest variables in its path."""
    found = [
        operation
        for operation in OPERATIONS
        if operation.method == method and PATTERNS[operation.path].fullmatch(path)
    ]
    return min(found, key=lambda operation: operation.path.count("{"))


def signed_in_to(server: ExampleServer, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the commands of this test call it."""
    monkeypatch.setattr(caller, "open_client", server.opened)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("SEXTON_TOKEN", "zmb_t_" + "0" * 64)
    monkeypatch.setenv("SEXTON_WORKSPACE", WORKSPACE)
    monkeypatch.setenv("SEXTON_BASE_URL", "http://sexton.test")
