"""What a server writes to its log, read as an operator's tools read it."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest

from tests.worlds.server_process import READY_S
from tests.worlds.shell import wait_until

UNKNOWN = "019363b0-0000-7000-8000-00000000ffff"


class Node:
    """A server whose standard output and standard error are kept apart."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self._options = options
        self.lives = 0
        self.ready: dict[str, Any] = {}

    def start(self) -> None:
        self.lives += 1
        ready_file = self.folder / "ready.json"
        ready_file.unlink(missing_ok=True)
        data = str(self.folder / "data")
        words = ["up", "--data", data, "--port", "0", "--ready-file", str(ready_file), *self._options]
        with self._file("out").open("wb") as out, self._file("err").open("wb") as err:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "sexton_cli.main", *words],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env={name: value for name, value in os.environ.items() if name != "DATABASE_URL"},
            )
        wait_until(lambda: ready_file.exists() or self._process.poll() is not None)
        assert self._process.poll() is None, self.errors()
        self.ready = orjson.loads(ready_file.read_bytes())

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(READY_S) == 0

    def _file(self, kind: str) -> Path:
        return self.folder / f"{self.lives}.{kind}"

    def errors(self) -> str:
        return self._file("err").read_text()

    def output(self) -> str:
        return self._file("out").read_text()

    def lines(self) -> list[dict[str, Any]]:
        """Each line of standard error; one that is no JSON object fails the test."""
        return [orjson.loads(line) for line in self.errors().splitlines()]

    def line_of(self, request_id: str) -> dict[str, Any]:
        """The one line that says how the request of this id was answered."""
        told = [line for line in self.lines() if line.get("request_id") == request_id]
        [line] = [line for line in told if line["event"].startswith("request_")]
        return line

    def http(self, token: str | None = None) -> httpx2.Client:
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        return httpx2.Client(base_url=self.ready["base_url"], headers=headers, timeout=30)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    started = Node(tmp_path_factory.mktemp("logs"), "--runners", "1", "--sandbox", "none")
    started.start()
    yield started
    started.stop()


def test_every_line_is_one_object_with_time_level_and_logger(node: Node) -> None:
    lines = node.lines()
    assert all({"timestamp", "level", "logger", "event"} <= line.keys() for line in lines)

    told = {line["logger"]: line["event"] for line in lines}
    assert told["sexton_cli.up"] == "server_up"
    assert told["sexton.storage"].startswith("ran ")  # Through the standard library, at ``info``.


def test_a_refused_request_is_found_by_the_id_that_its_client_was_told(node: Node) -> None:
    workspace = f"/v1/workspaces/{node.ready['workspace_id']}"
    with node.http(node.ready["api_key"]) as http:
        answer = http.get(f"{workspace}/zombies/{UNKNOWN}?secret=in-the-query")
    body = answer.json()
    assert answer.status_code == 404
    assert body["request_id"] == answer.headers["x-request-id"]

    line = node.line_of(body["request_id"])
    assert line["duration_ms"] >= 0
    assert {name: line[name] for name in ("event", "level", "status", "code", "method", "path")} == {
        "event": "request_refused",
        "level": "info",
        "status": 404,
        "code": body["error_code"],
        "method": "GET",
        "path": f"{workspace}/zombies/{UNKNOWN}",
    }
    assert line["route"].startswith("GET /v1/workspaces/{workspace_id}/zombies/")
    assert line["tenant_id"] == node.ready["tenant_id"]
    assert line["agent_id"] == UNKNOWN
    assert "in-the-query" not in node.errors()


@pytest.mark.parametrize(
    "ask",
    [
        lambda http: http.get("/no/such/route"),
        lambda http: http.get("/v1/workspaces", headers={"authorization": "Bearer zmb_t_nonsense"}),
        lambda http: http.post("/v1/webhooks/not-an-id/github", content=b"{}"),
        lambda http: http.delete("/healthz"),
    ],
    ids=["no route", "bad token", "bad id", "other method"],
)
def test_whatever_is_refused_has_its_line(
    node: Node, ask: Callable[[httpx2.Client], httpx2.Response]
) -> None:
    with node.http() as http:
        answer = ask(http)
    assert node.line_of(answer.json()["request_id"])["status"] == answer.status_code


def test_no_secret_of_an_address_is_in_the_log(node: Node) -> None:
    secret, link = "zwh_" + 43 * "s", 32 * "0a"
    with node.http() as http:
        ids = [
            http.post(f"/v1/webhooks/{UNKNOWN}/{secret}", json={}).headers["x-request-id"],
            http.post(f"/nothing/{secret}").headers["x-request-id"],
            http.get(f"/auth/sign-in/{link}").headers["x-request-id"],
        ]

    assert all("..." in node.line_of(one)["path"] for one in ids)
    assert secret not in node.errors()
    assert link not in node.errors()


def test_a_request_that_fails_is_an_error_and_one_that_succeeds_is_not_told(node: Node) -> None:
    with node.http() as http:
        fine = http.get("/healthz").headers["x-request-id"]
        postgres = node.ready["pids"]["postgres"]
        backends = Path(f"/proc/{postgres}/task/{postgres}/children").read_text().split()
        try:
            for backend in backends:
                os.kill(int(backend), signal.SIGSTOP)
            failed = http.get("/readyz")
        finally:
            for backend in backends:
                os.kill(int(backend), signal.SIGCONT)
        wait_until(lambda: http.get("/readyz").status_code == 200)
    assert failed.status_code == 503

    line = node.line_of(failed.headers["x-request-id"])
    assert (line["event"], line["level"], line["status"]) == ("request_failed", "error", 503)
    assert fine not in node.errors()


def test_a_local_runner_says_which_runner_it_is(node: Node) -> None:
    text = (node.folder / "data" / "runners" / "runner-1.log").read_text()
    up = next(line for line in map(orjson.loads, text.splitlines()) if line["event"] == "runner_up")

    assert up.keys() >= {"timestamp", "level", "logger", "runner_id", "host_id"}


def test_secrets_are_shown_at_the_first_start_and_never_again(tmp_path: Path) -> None:
    node = Node(tmp_path, "--runners", "0", "--access-log", "--log-level", "info")
    node.start()
    key = node.ready["api_key"]
    assert key in node.output()
    assert "/auth/sign-in/" in node.output()

    with node.http() as http:
        answered = http.get("/healthz").headers["x-request-id"]
    line = node.line_of(answered)
    assert (line["event"], line["status"], line["route"]) == ("request_answered", 200, "GET /healthz")

    node.stop()
    assert key not in node.errors()

    node.start()
    node.stop()
    assert key not in node.output() + node.errors()
    assert "/auth/sign-in/" not in node.output()
    assert str(tmp_path / "data" / "api-key") in node.output().replace("\n", "")
    assert "sexton auth link" in node.output()
