"""A terminal and a browser, side by side: ``sexton login`` against the server's own approval page."""

import re
from pathlib import Path

import trio

from tests.pages.screen import Screen
from tests.worlds.server_process import ServerProcess, open_server
from tests.worlds.shell import Shell, Terminal

PROMPT = "Code shown there (6 digits): "
URL = re.compile(r"https?://\S+")


async def sign_in(screen: Screen, server: ServerProcess) -> None:
    """By the link that the server printed as it started."""
    link = re.search(r"sign in +(\S+)", server.log())
    assert link is not None
    await screen.open(link[1])
    await screen.press("Sign in")
    await screen.sees("Sign out")


def address(terminal: Terminal) -> str:
    found = URL.search(terminal.expect(PROMPT))
    assert found is not None
    return found.group()


async def test_a_terminal_is_signed_in_by_the_code_on_the_page_or_refused_there(
    screen: Screen, tmp_path: Path
) -> None:
    async with open_server(tmp_path, "--port", "0", "--runners", "0") as server:
        await sign_in(screen, server)
        shell = Shell(tmp_path, SEXTON_BASE_URL=server.ready["base_url"])
        with shell.terminal("login", "--name", "laptop, downstairs", "--no-browser") as terminal:
            await screen.open(await trio.to_thread.run_sync(address, terminal))
            await screen.click("#refuse")
            await screen.sees("The terminal was refused.")
            terminal.type("123456\n")

            assert await trio.to_thread.run_sync(terminal.ends) == 1
            assert "UZ-AUTH-013" in terminal.screen

        assert not shell.credentials.exists()

        with shell.terminal("login", "--name", "laptop, upstairs", "--no-browser") as terminal:
            await screen.open(await trio.to_thread.run_sync(address, terminal))
            await screen.sees("laptop, upstairs")
            await screen.click("#approve")
            await screen.sees("Type this code into the terminal")
            code = await screen.text("#code")
            assert re.fullmatch("[0-9]{6}", code)

            terminal.type(f"{code}\n")
            assert await trio.to_thread.run_sync(terminal.ends) == 0
            assert "Signed in to " in terminal.screen
        await screen.sees("The terminal is signed in.")
        me = await trio.to_thread.run_sync(lambda: shell.json("whoami"))

        assert (me["kind"], me["role"]) == ("user", "admin")
