"""Tutorials are walked through word for word, on a real server with a real runner."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
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
    where = {"SEXTON_DATA": str(server.folder / "data"), "SEXTON_BASE_URL": server.ready["base_url"]}
    shell = Shell(tmp_path, PATH=path, **where)
    key = (server.folder / "data" / "api-key").read_text(encoding="utf-8")
    assert shell("login", "--base-url", server.ready["base_url"], stdin=key).returncode == 0
    folder = tmp_path / "clone"
    folder.mkdir()
    # What they copied from the console.
    (folder / "enrolment-token").write_text(_mint(server), encoding="utf-8")
    return Reader(folder, shell.environment)


def _mint(server: ServerProcess) -> str:
    headers = {"authorization": f"Bearer {server.ready['admin_token']}"}
    answer = httpx2.post(f"{server.ready['base_url']}/v1/fleet/enrolment-tokens", headers=headers, json={})
    token: str = answer.raise_for_status().json()["token"]
    return token


@pytest.mark.parametrize("page", ["your-first-agent", "your-first-webhook", "your-own-runner"])
def test_every_step_of_a_tutorial_goes_as_its_page_shows(page: str, reader: Reader) -> None:
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    missing = [tool for tool in ("curl", "jq", "openssl") if tool in text and shutil.which(tool) is None]
    if missing:
        pytest.skip(f"the page needs {', '.join(missing)}, which is not installed")

    for step in steps(text):
        reader.do(step)
