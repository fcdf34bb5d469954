"""Tutorials are walked through word for word, on a real server with a real runner."""

import os
import shutil
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
import trio

from sexton_cli.demo.practice import ADDRESS
from tests.worlds.server_process import ServerProcess
from tests.worlds.shell import Shell
from tests.worlds.tutorial_page import HERE, Machine, Reader
from tests.worlds.warm_command import WarmCommand, open_warm_command
from tests.worlds.warm_start import can_be_warm

PAGES = Path(__file__).parents[2] / "docs" / "tutorial"
PROGRAMS = Path(sys.executable).parent
PATH = f"{PROGRAMS}{os.pathsep}/usr/sbin:/usr/bin:/sbin:/bin"


@pytest.fixture(scope="module")
def practice_port() -> int:
    """A port that is free at the address of ``sexton practice``."""
    with socket.socket() as free:
        free.bind((ADDRESS, 0))
        port: int = free.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, practice_port: int) -> Iterator[ServerProcess]:
    """What ``make up`` starts, with the variables that the page about pull requests names."""
    place = f"{ADDRESS}:{practice_port}"
    variables = {
        "SEXTON_EGRESS_PRIVATE_HOSTS": place,
        "SEXTON_ANTHROPIC_BASE_URL": f"http://{place}",
    }
    process = ServerProcess(
        tmp_path_factory.mktemp("server"), "--port", "0", "--runners", "1", environment=variables
    )
    trio.run(process.start)
    yield process
    assert trio.run(process.stop) == 0


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmCommand | None]:
    """None in `make test-thorough`: there a command of a page is the program that its reader has."""
    if not can_be_warm({}):
        yield None
        return
    with open_warm_command(tmp_path_factory.mktemp("bin"), PATH) as command:
        yield command


@pytest.fixture
def reader(server: ServerProcess, warm: WarmCommand | None, tmp_path: Path) -> Reader:
    """A person in an empty folder, who has signed in with what the server printed."""
    where = {"SEXTON_DATA": str(server.folder / "data"), "SEXTON_BASE_URL": server.ready["base_url"]}
    shell = Shell(tmp_path, PATH=PATH, **where)
    key = (server.folder / "data" / "api-key").read_text(encoding="utf-8")
    assert shell("login", "--base-url", server.ready["base_url"], stdin=key).returncode == 0
    folder = tmp_path / "clone"
    folder.mkdir()
    # What they copied from the console.
    (folder / "enrolment-token").write_text(_mint(server), encoding="utf-8")
    return Reader({HERE: Machine(folder, shell.environment, warm=warm)})


def _mint(server: ServerProcess) -> str:
    headers = {"authorization": f"Bearer {server.ready['admin_token']}"}
    answer = httpx2.post(f"{server.ready['base_url']}/v1/fleet/enrolment-tokens", headers=headers, json={})
    token: str = answer.raise_for_status().json()["token"]
    return token


def page_of(name: str) -> str:
    """Its text; skips the test where a program is missing that the page tells its reader to use."""
    text = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    missing = [tool for tool in ("curl", "jq", "openssl") if tool in text and shutil.which(tool) is None]
    if missing:
        pytest.skip(f"the page needs {', '.join(missing)}, which is not installed")
    return text


@pytest.mark.parametrize("page", ["your-first-agent", "your-first-webhook", "your-own-runner"])
def test_every_step_of_a_tutorial_goes_as_its_page_shows(page: str, reader: Reader) -> None:
    reader.read(page_of(page))


def test_an_agent_mends_a_repository_and_opens_a_pull_request(reader: Reader, practice_port: int) -> None:
    reader.read(page_of("an-agent-that-opens-a-pull-request"), spelled={"8399": str(practice_port)})
