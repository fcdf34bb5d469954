"""``sexton login`` in a real terminal, against a real server, approved by a stranger to this code."""

import re
import stat
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest
import trio

from sexton_cli.credentials import CredentialFile, Kept
from sexton_storage.memory import open_memory_storage
from tests.fakes.login_browser import Browser, another_than
from tests.worlds.browser import visiting
from tests.worlds.http import HttpWorld, open_http_world_on
from tests.worlds.samples import START_MS
from tests.worlds.server_process import ServerProcess
from tests.worlds.shell import Shell, Terminal, said, wait_until

URL = re.compile(r"https?://\S+")
PROMPT = "Code shown there (6 digits): "


@pytest.fixture
def browser(server: ServerProcess) -> Browser:
    return Browser(server.ready["base_url"], server.ready["admin_token"])


@pytest.fixture
def token(server: ServerProcess) -> str:
    """What is handed over: a user token, as the approval page does."""
    return str(server.ready["admin_token"])


def address(terminal: Terminal) -> str:
    found = URL.search(terminal.expect(PROMPT))
    assert found is not None, terminal.screen
    return found.group()


def test_a_terminal_is_signed_in_by_the_code_that_the_browser_shows(
    shell: Shell, browser: Browser, token: str
) -> None:
    with shell.terminal("login", "--name", "laptop, upstairs") as terminal:
        url = address(terminal)
        assert browser.session(url)["token_name"] == "laptop, upstairs"

        terminal.type("12345\n")
        terminal.expect("The code is six digits.")
        terminal.expect(PROMPT)
        terminal.type("123456\n")
        terminal.expect("not approved yet")
        terminal.expect(PROMPT)
        code = browser.approve(url, token)
        terminal.type(f"{another_than(code)}\n")
        terminal.expect("UZ-AUTH-011")
        terminal.expect("4 tries are left")
        terminal.expect(PROMPT)
        terminal.type(f"{code}\n")
        terminal.expect("Signed in to ")
        terminal.expect("admin")
        assert terminal.ends() == 0

    assert token not in terminal.screen
    assert browser.session(url)["status"] == "consumed"
    assert stat.S_IMODE(shell.credentials.stat().st_mode) == 0o600
    assert stat.S_IMODE(shell.credentials.parent.stat().st_mode) == 0o700
    assert shell.json("whoami")["role"] == "admin"


def test_the_browser_is_opened_on_the_page_and_on_nothing_else(shell: Shell, browser: Browser) -> None:
    opened = shell.home / "opened"
    program = shell.home / "browser"
    program.write_text(
        f'#!/bin/sh\nprintf "%s|" "$@" > {opened}.part\nmv {opened}.part {opened}\necho noise\n'
    )
    program.chmod(0o700)
    with shell.terminal("login", BROWSER=str(program)) as terminal:
        url = address(terminal)
        wait_until(opened.exists)
        assert opened.read_text() == f"{url}|"
        assert "noise" not in terminal.screen

        terminal.type("\x04")
        assert terminal.ends() == 1

    assert browser.session(url)["status"] == "aborted"


def test_five_wrong_codes_end_the_session_and_keep_nothing(
    shell: Shell, browser: Browser, token: str
) -> None:
    with shell.terminal("login") as terminal:
        wrong = another_than(browser.approve(address(terminal), token))
        for _ in range(4):
            terminal.type(f"{wrong}\n")
            terminal.expect(PROMPT)
        terminal.type(f"{wrong}\n")
        terminal.expect("UZ-AUTH-013")
        terminal.expect("(request ")

        assert terminal.ends() == 1
    assert not shell.credentials.exists()


def test_a_session_that_was_aborted_elsewhere_says_so(shell: Shell, browser: Browser) -> None:
    with shell.terminal("login") as terminal:
        browser.abort(address(terminal))
        terminal.type("123456\n")
        terminal.expect("UZ-AUTH-013")

        assert terminal.ends() == 1


def test_ctrl_c_at_the_prompt_is_no_fault_and_ends_the_session(shell: Shell, browser: Browser) -> None:
    with shell.terminal("login") as terminal:
        url = address(terminal)
        terminal.interrupt()

        assert terminal.ends() == 130
        assert "Traceback" not in terminal.screen
    assert browser.session(url)["status"] == "aborted"


def test_what_was_sealed_for_somebody_else_is_not_taken(shell: Shell, browser: Browser, token: str) -> None:
    with shell.terminal("login") as one, shell.terminal("login") as other:
        theirs = browser.session(address(other))["cli_public_key"]
        code = browser.approve(address(one), token, public_key=theirs)
        one.type(f"{code}\n")
        one.expect("the seal is broken")
        assert one.ends() == 76

        other.interrupt()
        assert other.ends() == 130
    assert not shell.credentials.exists()


def test_a_token_that_the_server_does_not_take_is_not_kept(shell: Shell, browser: Browser) -> None:
    with shell.terminal("login") as terminal:
        code = browser.approve(address(terminal), f"zmb_t_{'0' * 64}")
        terminal.type(f"{code}\n")
        terminal.expect("UZ-AUTH-002")

        assert terminal.ends() == 77
    assert not shell.credentials.exists()


def test_with_json_the_answer_alone_is_on_standard_output(shell: Shell, browser: Browser, token: str) -> None:
    with shell.terminal("login", "--json", "--no-browser", stdout=subprocess.PIPE) as terminal:
        code = browser.approve(address(terminal), token)
        terminal.type(f"{code}\n")
        assert terminal.ends() == 0

        output = terminal.output()
    document = orjson.loads(output)

    assert (document["kind"], document["role"]) == ("user", "admin")
    assert token not in output.decode()


# --- a server whose clock can be moved ----------------------------------------------------------------------


@asynccontextmanager
async def world_with_clock() -> AsyncIterator[tuple[HttpWorld, list[int]]]:
    now = [START_MS]
    async with open_memory_storage(clock=lambda: now[0]) as memory, open_http_world_on(memory) as world:
        yield world, now


async def test_a_session_that_has_expired_says_so(tmp_path: Path) -> None:
    async with world_with_clock() as (world, now):
        browser = Browser(world.base_url, world.admin_token())

        def sign_in() -> tuple[int, str]:
            with Shell(tmp_path, SEXTON_BASE_URL=world.base_url).terminal("login") as terminal:
                code = browser.approve(address(terminal), world.admin_token())
                now[0] += 6 * 60 * 1000
                terminal.type(f"{code}\n")
                return terminal.ends(), terminal.screen

        status, screen = await trio.to_thread.run_sync(sign_in)

    assert status == 77
    assert "UZ-AUTH-006" in screen
    assert "Begin again with 'sexton login'." in screen


async def approved_token(world: HttpWorld, login_url: str) -> str:
    """What the approval page of a signed-in browser makes for the terminal."""
    async with visiting(world) as visitor:
        await visitor.sign_in()
        return await visitor.token(session_id=login_url.rstrip("/").rpartition("/")[2])


def log_in(world: HttpWorld, shell: Shell, browser: Browser) -> None:
    with shell.terminal("login", "--name", "laptop") as terminal:
        url = address(terminal)
        terminal.type(f"{browser.approve(url, trio.from_thread.run(approved_token, world, url))}\n")
        assert terminal.ends() == 0, terminal.screen


async def test_top_goes_on_over_the_end_of_its_token_for_a_week(tmp_path: Path) -> None:
    async with world_with_clock() as (world, now):
        shell, browser = (
            Shell(tmp_path, SEXTON_BASE_URL=world.base_url),
            Browser(world.base_url, world.admin_token()),
        )

        def watch() -> None:
            log_in(world, shell, browser)
            first = kept_token(shell)
            with shell.terminal(
                "top", "--interval", "0.2", COLUMNS="100", LINES="40", NO_COLOR="1"
            ) as terminal:
                terminal.expect("no event waits")
                for _ in range(7):
                    expired = kept_token(shell)
                    now[0] += 24 * 3600 * 1000
                    while kept_token(shell) == expired:
                        # Read on, or the screen is full and it stands still.
                        terminal.expect("no event waits")
                terminal.interrupt()
                assert terminal.ends() == 130, terminal.screen
            assert kept_token(shell) != first

        await trio.to_thread.run_sync(watch)


async def test_a_terminal_is_listed_and_logout_ends_it_on_the_server(tmp_path: Path) -> None:
    async with world_with_clock() as (world, _):
        one, other = (Shell(folder(tmp_path, name), SEXTON_BASE_URL=world.base_url) for name in "ab")
        browser = Browser(world.base_url, world.admin_token())

        def look() -> None:
            for shell in (one, other):
                log_in(world, shell, browser)
            items = one.json("sign-ins", "list")["items"]
            terminals = [item for item in items if item["kind"] == "terminal"]
            assert [(item["name"], item["current"]) for item in terminals] == [
                ("laptop", False),
                ("laptop", True),
            ]
            assert one("sign-ins", "end", terminals[0]["id"]).returncode == 0
            assert "UZ-AUTH-002" in said(other("whoami"))
            old = orjson.loads(one.credentials.read_bytes())["servers"][world.base_url]
            assert one("logout").returncode == 0
            assert not one.credentials.exists()
            assert "UZ-AUTH-002" in said(one("whoami", "--token", old["token"]))

        await trio.to_thread.run_sync(look)


def folder(parent: Path, name: str) -> Path:
    made = parent / name
    made.mkdir()
    return made


def kept_token(shell: Shell) -> str:
    servers = orjson.loads(shell.credentials.read_bytes())["servers"]
    token: str = next(iter(servers.values()))["token"]
    return token


async def test_a_user_token_that_has_expired_asks_to_sign_in_again(tmp_path: Path) -> None:
    async with world_with_clock() as (world, now):
        shell = Shell(tmp_path, SEXTON_BASE_URL=world.base_url)
        file, kept = CredentialFile(shell.credentials.parent), Kept(world.admin_token())
        file.change(lambda credentials: credentials.with_server(world.base_url, kept))
        now[0] += 16 * 60 * 1000
        ended = await trio.to_thread.run_sync(lambda: shell("whoami"))

    assert ended.returncode == 77
    assert "UZ-AUTH-003" in said(ended)
    assert "Sign in again with 'sexton login'." in said(ended)
