"""Tutorials are walked through word for word, on a real server with a real runner."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from tests.worlds.server_process import ServerProcess
from tests.worlds.shell import Shell
from tests.worlds.tutorial_page import Reader, steps

PAGES = Path(__file__).parents[2] / "docs" / "tutorial"
PROGRAMS = Path(sys.executable).parent


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """What ``make up`` starts."""
    process = ServerProcess(tmp_path_factory.mktemp("server"), "--port", "0", "--runners", "1")
    trio.run(process.start)
    yield process
    assert trio.run(process.stop) == 0


@pytest.fixture
def reader(server: ServerProcess, tmp_path: Path) -> Reader:
    """A person in an empty folder, who has signed in with what the server printed."""
    path = f"{PROGRAMS}{os.pathsep}/usr/bin:/bin"
    shell = Shell(tmp_path, PATH=path, SEXTON_DATA=str(server.folder / "data"))
    key = (server.folder / "data" / "api-key").read_text(encoding="utf-8")
    assert shell("login", "--base-url", server.ready["base_url"], stdin=key).returncode == 0
    folder = tmp_path / "clone"
    folder.mkdir()
    return Reader(folder, shell.environment)


@pytest.mark.parametrize("page", ["your-first-agent", "your-first-webhook"])
def test_every_step_of_a_tutorial_goes_as_its_page_shows(page: str, reader: Reader) -> None:
    for step in steps((PAGES / f"{page}.md").read_text(encoding="utf-8")):
        reader.do(step)
