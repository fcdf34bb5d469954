"""One server for all tests of a module, and a home for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from tests.fakes.example_server import ExampleServer, signed_in_to
from tests.worlds.server_process import ServerProcess
from tests.worlds.shell import Shell


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A running server without runners."""
    process = ServerProcess(tmp_path_factory.mktemp("server"), "--port", "0", "--runners", "0")
    trio.run(process.start)
    yield process
    assert trio.run(process.stop) == 0


@pytest.fixture
def shell(server: ServerProcess, tmp_path: Path) -> Shell:
    """A person's shell, in a home of its own, who knows the server's address."""
    return Shell(tmp_path, SEXTON_BASE_URL=server.ready["base_url"])


@pytest.fixture
def bare_shell(tmp_path: Path) -> Shell:
    """The same for a person who knows of no server."""
    return Shell(tmp_path)


@pytest.fixture
def examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ExampleServer:
    """A server without a process, for commands that are called in this one."""
    server = ExampleServer()
    signed_in_to(server, tmp_path, monkeypatch)
    return server
