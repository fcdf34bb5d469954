"""A page that is open while its server stands still: it says so, and is right again by itself."""

import signal
from pathlib import Path
from typing import Any

import httpx2
import trio

from tests.pages.screen import Screen
from tests.pages.test_pages_terminal import sign_in
from tests.patience import PATIENCE_S
from tests.worlds.samples import agent_files
from tests.worlds.server_process import ServerProcess, open_server

ROWS = (
    "return [...document.querySelectorAll('#events tbody tr')].map((row) => row.cells[3].textContent.trim());"
)
IMPATIENT = "clearTimeout(hush); quiet = 200; back = 100; listen(); return live.textContent;"
"""What the server promises in some seconds, a test need not wait for."""
UNTOUCHED = "return window.untouched;"


class Api:
    """The calls that the test makes beside the page."""

    def __init__(self, server: ServerProcess, http: httpx2.AsyncClient) -> None:
        self._http = http
        self._path = f"/v1/workspaces/{server.ready['workspace_id']}/zombies"
        self._headers = {"authorization": f"Bearer {server.ready['api_key']}"}

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = await self._http.post(self._path + path, json=body, headers=self._headers)
        assert answer.status_code in (201, 202), answer.text
        return dict(answer.json())


async def rows(screen: Screen, count: int) -> list[str]:
    with trio.fail_after(PATIENCE_S):
        while len(found := await screen.run(ROWS)) < count:
            await trio.sleep(0.05)
    return list(found)


async def test_a_page_says_since_when_its_server_is_away_and_comes_back_by_itself(
    screen: Screen, tmp_path: Path
) -> None:
    async with (
        open_server(tmp_path, "--port", "0", "--runners", "0") as server,
        httpx2.AsyncClient(base_url=server.ready["base_url"], timeout=30) as http,
        trio.open_nursery() as nursery,
    ):
        api = Api(server, http)
        await sign_in(screen, server)
        agent = (await api.post("", agent_files("doctor")))["zombie_id"]
        messages = f"/{agent}/messages"
        before = await api.post(messages, {"message": "Before."})
        await screen.open(f"{server.ready['base_url']}/console/-/events")
        await screen.sees("● live")
        await screen.run("window.untouched = true;")

        server.send(signal.SIGSTOP)
        try:
            assert await screen.run(IMPATIENT) == "● live"
            shown = await screen.sees("● away since ")
            await screen.run("quiet = 6000;")
            nursery.start_soon(api.post, messages, {"message": "Meanwhile."})
            assert shown.split("● away since ")[1][:2].isdigit()
        finally:
            server.send(signal.SIGCONT)
        await screen.sees("● live")
        after = await api.post(messages, {"message": "After."})
        found = await rows(screen, 3)

        assert len(found) == len({*found}) == 3, found
        assert [found[0], found[-1]] == [one["event_id"][-8:] for one in (after, before)]
        assert await screen.run(UNTOUCHED), "the page was not loaded again"

        await screen.open("about:blank")
