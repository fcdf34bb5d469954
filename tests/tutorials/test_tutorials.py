"""Tutorials, and how-tos with prompts, are walked through word for word, on a real server and runner."""

import os
import re
import shutil
import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import promql_parser
import pytest
import trio
import yaml
from prometheus_client.parser import text_string_to_metric_families

from sexton_cli.demo.practice import ADDRESS
from sexton_storage.embedded.programs import find_bindir
from sexton_storage.embedded.roles import SUPERUSER
from tests.fakes.tls_proxy import open_tls_proxy
from tests.thorough import THOROUGH
from tests.worlds.certificates import make_certificate
from tests.worlds.network_namespace import open_namespace
from tests.worlds.promql import expressions, selectors_of
from tests.worlds.server_process import ServerProcess
from tests.worlds.shell import Shell, run_command
from tests.worlds.tutorial_page import HERE, Machine, Reader
from tests.worlds.warm_command import WarmCommand, open_warm_command
from tests.worlds.warm_start import can_be_warm

DOCS = Path(__file__).parents[2] / "docs"
PAGES = DOCS / "tutorial"
HOW_TO = DOCS / "how-to"
OPERATED = tuple(
    re.findall(
        r"^\| \[[^]]+\]\(([\w-]+)\.md\) .*\| `tests/tutorials/test_tutorials\.py` \|$",
        (HOW_TO / "index.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
)
"""How-tos of which the index says that this module runs them: for the reader's own server, as it is."""
LONG = "troubleshoot"
"""A page of independent sections, of which `make test` walks through every third."""
PROGRAMS = Path(sys.executable).parent
PATH = f"{PROGRAMS}{os.pathsep}/usr/sbin:/usr/bin:/sbin:/bin"


def free_port(address: str) -> int:
    with socket.socket() as free:
        free.bind((address, 0))
        port: int = free.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def practice_port() -> int:
    """A port that is free at the address of ``sexton practice``."""
    return free_port(ADDRESS)


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


@pytest.fixture
def readers(server: ServerProcess, reader: Reader, tmp_path: Path) -> Iterator[tuple[Reader, str]]:
    """The same person with a second machine, ``runner``, and the server's address as seen from there.

    They are signed in by the server's link. Between the machines are a proxy with TLS, and ``scp``.
    """
    with open_namespace() as elsewhere:
        tls = make_certificate(tmp_path, elsewhere.here)
        with open_tls_proxy(elsewhere.here, urlsplit(server.ready["base_url"]).port or 0, tls) as port:
            folder, home = tmp_path / "elsewhere", tmp_path / "its-home"
            folder.mkdir()
            home.mkdir()
            environment = {"PATH": PATH, "HOME": str(home), "SSL_CERT_FILE": str(tls.certificate)}
            machine = Machine(folder, environment, elsewhere.through)
            sign_in_as_admin(server, reader)
            programs = reader.machines[HERE].folder / ".bin"
            programs.mkdir()
            _write_scp(programs, folder)
            here = reader.machines[HERE]
            yield (
                Reader({HERE: here.with_programs(programs), "runner": machine}),
                f"https://{elsewhere.here}:{port}",
            )


def _write_scp(programs: Path, folder: Path) -> None:
    """A copy to ``runner:`` as that of ssh, which would take a second machine to be tried."""
    program = programs / "scp"
    program.write_text(f'#!/bin/sh\ntest "$2" = runner: && cp "$1" {folder}/\n', encoding="utf-8")
    program.chmod(0o755)


def sign_in_as_admin(server: ServerProcess, reader: Reader) -> None:
    """What ``sexton sign-in-link`` and ``sexton login`` do, without a browser."""
    words, environment = ["login", "--base-url", server.ready["base_url"]], reader.machines[HERE].environment
    ended = run_command(words, environment, stdin=server.ready["admin_token"])
    assert ended.returncode == 0, ended.stderr


def _mint(server: ServerProcess) -> str:
    headers = {"authorization": f"Bearer {server.ready['admin_token']}"}
    answer = httpx2.post(f"{server.ready['base_url']}/v1/fleet/enrolment-tokens", headers=headers, json={})
    token: str = answer.raise_for_status().json()["token"]
    return token


def page_of(name: str, folder: Path = PAGES) -> str:
    """Its text; skips the test where a program is missing that the page tells its reader to use."""
    text = (folder / f"{name}.md").read_text(encoding="utf-8")
    missing = [tool for tool in ("curl", "git", "jq", "openssl") if tool in text and not shutil.which(tool)]
    if missing:
        pytest.skip(f"the page needs {', '.join(missing)}, which is not installed")
    return text


@pytest.mark.parametrize("page", ["your-first-agent", "your-first-webhook", "your-own-runner"])
def test_every_step_of_a_tutorial_goes_as_its_page_shows(page: str, reader: Reader) -> None:
    reader.read(page_of(page))


def test_an_agent_mends_a_repository_and_opens_a_pull_request(reader: Reader, practice_port: int) -> None:
    reader.read(page_of("an-agent-that-opens-a-pull-request"), spelled={"8399": str(practice_port)})


def test_what_to_watch_is_there_and_can_be_scraped(server: ServerProcess, reader: Reader) -> None:
    sign_in_as_admin(server, reader)
    (reader.folder / "docs").symlink_to(DOCS)
    place = urlsplit(server.ready["base_url"]).netloc

    reader.read(page_of("watch-it-work"), spelled={"127.0.0.1:8300": place})

    told = yaml.safe_load((reader.folder / "prometheus.yml").read_text(encoding="utf-8"))
    (job,) = told["scrape_configs"]
    (target,) = job["static_configs"][0]["targets"]
    scraped = httpx2.get(f"http://{target}/metrics").raise_for_status().text
    families = {family.name for family in text_string_to_metric_families(scraped)}
    assert all((reader.folder / name).is_file() for name in told["rule_files"])

    asked = {name for one in expressions() for name, _ in selectors_of(promql_parser.parse(one))}
    known = {f"{name}{ending}" for name in families for ending in ("", "_total", "_bucket", "_sum", "_count")}
    # The first is Prometheus' own; the database is counted each five seconds.
    assert {name for name in asked - known if name != "up"} == set()


@pytest.mark.parametrize("page", OPERATED)
def test_every_command_of_a_how_to_goes_as_its_page_shows(
    page: str, server: ServerProcess, reader: Reader
) -> None:
    text = page_of(page, HOW_TO)
    sign_in_as_admin(server, reader)
    cluster = server.folder / "data" / "run"
    here = reader.machines[HERE]
    address = {"DATABASE_URL": f"postgresql://{SUPERUSER}@/sexton?host={cluster}"}
    machine = replace(here, environment={**here.environment, **address})
    operator = Reader({HERE: machine.with_programs(find_bindir(os.environ))})

    operator.read(text if THOROUGH or page != LONG else "".join(re.split(r"(?m)^(?=## )", text)[::3]))


def test_a_runner_on_another_machine_joins_works_and_is_upgraded(readers: tuple[Reader, str]) -> None:
    reader, address = readers
    reader.read(page_of("a-runner-on-another-machine"), spelled={"https://agents.example.com": address})


@pytest.mark.skipif(not THOROUGH, reason="it takes a second server: make test-thorough walks through it")
def test_a_server_comes_from_a_laptop_into_production(
    server: ServerProcess, warm: WarmCommand | None, tmp_path: Path
) -> None:
    """Its PostgreSQL is that of the other tutorials, in which it has a database of its own."""
    cluster = server.folder / "data" / "run"
    administrator = {"PGHOST": str(cluster), "PGUSER": SUPERUSER, "PGDATABASE": "postgres"}
    shell = Shell(tmp_path, PATH=PATH, **administrator)
    folder = tmp_path / "server"
    folder.mkdir()
    machine = Machine(folder, shell.environment, warm=warm).with_programs(find_bindir(os.environ))
    reader = Reader({HERE: machine})

    reader.read(
        page_of("from-laptop-to-production"),
        spelled={
            "@localhost/agents": f"@/agents?host={cluster}",
            "8443": str(free_port("127.0.0.1")),
        },
    )
