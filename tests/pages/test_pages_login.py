"""Server, command and browser, each as its user starts it, from the sign-in link to the first call."""

import re
from pathlib import Path

import trio

from tests.cli.shell import Shell
from tests.faults.server_process import open_server
from tests.pages.screen import Screen

LINK = re.compile(r"^  sign in +(\S+)$", re.MULTILINE)
URL = re.compile(r"https?://\S+/auth/device/\S+")
PROMPT = "Code shown there (6 digits): "


async def test_a_person_signs_a_terminal_in_with_the_code_from_the_browser(
    screen: Screen, tmp_path: Path
) -> None:
    async with open_server(tmp_path, "--port", "0", "--runners", "0") as server:
        shell = Shell(tmp_path, SEXTON_BASE_URL=server.ready["base_url"])
        link = LINK.search(server.log())
        assert link is not None
        await screen.open(link[1])
        await screen.press("Sign in")
        await screen.sees("Signed in as")
        with shell.terminal("login", "--no-browser", "--name", "the desk") as terminal:
            url = URL.search(await trio.to_thread.run_sync(terminal.expect, PROMPT))
            assert url is not None
            await screen.open(url[0])
            assert "the desk" in await screen.sees("Did you start sexton login just now?")
            await screen.click("#approve")
            await screen.sees("Type this code")
            terminal.type(f"{await screen.text('#code')}\n")
            await trio.to_thread.run_sync(terminal.expect, "Signed in to ")
            assert await trio.to_thread.run_sync(terminal.ends) == 0
        await screen.sees("The terminal is signed in")
        me = await trio.to_thread.run_sync(shell.json, "whoami")
        assert (me["role"], me["platform_admin"]) == ("admin", True)
        await screen.open("about:blank")
