"""The TypeScript client: made from the interface, installed as a package, and used against a live server."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from scripts import typescript_client
from scripts.documented_programs import blocks, differences, program
from scripts.typescript_client import PAGES

from sexton_http.identity.context import VERSION
from tests.patience import PATIENCE_S
from tests.worlds.samples import YEARLY, agent_files, command_body
from tests.worlds.server_process import ServerProcess
from tests.worlds.typescript_client import SOURCES, install_client, need_node

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "how-to" / "use-the-http-interface.md"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_client(tmp_path_factory)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One server and its runner for all tests of the module, always at the same address."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    process = ServerProcess(tmp_path_factory.mktemp("server"), "--port", str(port), "--runners", "1")
    trio.run(process.start)
    yield process
    trio.run(process.stop)


def environment(server: ServerProcess) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT / "clients" / "python"),
        "SEXTON_BASE_URL": server.ready["base_url"],
        "SEXTON_TOKEN": server.ready["api_key"],
        "SEXTON_WORKSPACE": server.ready["workspace_id"],
    }


def test_the_tables_of_the_library_are_those_of_the_interface() -> None:
    """Its types are compared by `make clients`, for which node is needed."""
    assert typescript_client.differing(typescript_client.tables()) == []


def test_the_package_has_the_servers_version_and_needs_no_other() -> None:
    package = json.loads((SOURCES / "package.json").read_text())

    assert package["version"] == VERSION
    assert "dependencies" not in package


def test_calls_and_streams_bear_what_networks_and_proxies_do(installed: Path, tmp_path: Path) -> None:
    tests = [path for path in sorted((SOURCES / "test").glob("*.mjs")) if path.name != "live.mjs"]
    for path in tests:
        (installed / path.name).write_text(path.read_text())
    names = [path.name for path in tests if path.name.endswith(".test.mjs")]
    done = subprocess.run(
        [need_node(), "--test", *names],
        cwd=installed,
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )

    assert done.returncode == 0, done.stdout[-6000:]


@pytest.fixture(scope="module")
def guided(server: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the guide's first program printed, which also installs the agent of the others."""
    missing = [tool for tool in ("bash", "curl", "jq", "openssl") if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"the guide's commands need {', '.join(missing)}")
    command = ["bash", "-euo", "pipefail", "-c", program(GUIDE.read_text(), "bash")]
    return run_guide(command, server, tmp_path_factory.mktemp("guide"))


def run_guide(command: list[str], server: ServerProcess, folder: Path) -> str:
    done = subprocess.run(
        command,
        env=environment(server),
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    return done.stdout if done.returncode == 0 else f"{done.stdout}\n{done.stderr}"


def test_the_guides_commands_print_what_it_says(guided: str) -> None:
    assert list(differences(GUIDE.read_text(), "bash", guided)) == [], guided


def test_the_guides_python_prints_what_it_says(guided: str, server: ServerProcess, tmp_path: Path) -> None:
    printed = run_guide([sys.executable, "-c", program(GUIDE.read_text(), "python")], server, tmp_path)

    assert list(differences(GUIDE.read_text(), "python", printed)) == [], printed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_typescript_of_a_page_prints_what_it_says(
    page: Path, installed: Path, guided: str, server: ServerProcess
) -> None:
    written = installed / f"{page.stem}.mjs"
    written.write_text(program(page.read_text(), "ts"))
    printed = run_guide([need_node(), str(written)], server, installed)

    assert list(differences(page.read_text(), "ts", printed)) == [], printed


def test_each_section_of_the_guide_shows_each_language() -> None:
    sections = GUIDE.read_text().split("\n## ")[1:]
    lacking = [
        (section.splitlines()[0], language)
        for section in sections
        if section.splitlines()[0] != "From a browser"
        for language in ("bash", "python", "ts")
        if not blocks(section, language)
    ]

    assert lacking == []


async def test_a_program_goes_on_over_a_restart_of_its_server(installed: Path, server: ServerProcess) -> None:
    (installed / "live.mjs").write_text((SOURCES / "test" / "live.mjs").read_text())
    skill, trigger = agent_files(
        "echo", "runtime: command", trigger=YEARLY, body=command_body("echo hello")
    ).values()
    place = [server.ready[name] for name in ("base_url", "api_key", "workspace_id")]
    command = [need_node(), "live.mjs", *place, skill, trigger]
    said = await _run(command, installed, server, restart_at=b"one")
    seen = json.loads(said.splitlines()[-1])
    events = [event for event, _, _ in seen["events"]]
    ends = ("event_received", "event_complete")
    told = {kind: [event for _, of_kind, event in seen["frames"] if of_kind == kind] for kind in ends}

    assert [(state, text) for _, state, text in seen["events"]] == [("processed", "hello\n")] * 3
    assert [int(number) for number, _, _ in seen["frames"]] == list(range(1, len(seen["frames"]) + 1))
    assert told == dict.fromkeys(ends, events)
    assert seen["listed"] == events[::-1]
    assert seen["reconnects"]


async def _run(command: list[str], folder: Path, server: ServerProcess, *, restart_at: bytes) -> bytes:
    """What a program prints. Once it has printed ``restart_at``, its server is killed and started again."""
    said = b""
    with trio.fail_after(PATIENCE_S):
        process = await trio.lowlevel.open_process(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder
        )
        assert process.stdout is not None

        async for piece in process.stdout:
            if restart_at not in said and restart_at in said + piece:
                server.kill()
                await server.start()
            said += piece
        assert await process.wait() == 0, said.decode()

    return said
