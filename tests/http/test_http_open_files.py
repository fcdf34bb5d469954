"""A server that may open few files: it holds fewer connections, says so, and goes on answering its health."""

import resource
from pathlib import Path

import httpx2
import trio

from tests.worlds.server_process import ServerProcess, open_server

SOFT, HARD = 256, 512
SENDERS = 4
"""Addresses, so that no one of them meets the ceiling of an address."""
EACH = 150
HALF = b"GET /v1/whoami HTTP/1.1\r\nHost: x\r\n"
HEALTH = ("/healthz", "/readyz")


async def ask(server: ServerProcess, path: str) -> httpx2.Response:
    """On a connection of its own."""
    headers = {"authorization": f"Bearer {server.ready['api_key']}"}
    async with httpx2.AsyncClient(base_url=server.ready["base_url"], headers=headers, timeout=30) as http:
        return await http.get(path)


def port_of(server: ServerProcess) -> int:
    return httpx2.URL(server.ready["base_url"]).port or 0


async def hold(server: ServerProcess, count: int, sender: str) -> list[trio.SocketStream]:
    """Connections whose request never comes to its end."""
    held = []
    for _ in range(count):
        stream = await trio.open_tcp_stream("127.0.0.1", port_of(server), local_address=sender)
        await stream.send_all(HALF)
        held.append(stream)
    return held


def open_files(server: ServerProcess) -> int:
    return len(list(Path(f"/proc/{server.pid}/fd").iterdir()))


async def test_more_connections_than_files_do_not_stop_the_server(tmp_path: Path) -> None:
    options = ("--runners", "0", "--port", "0")
    async with open_server(tmp_path, *options, open_files=(SOFT, HARD)) as server:
        held: list[trio.SocketStream] = []
        for number in range(SENDERS):
            held += await hold(server, EACH, f"127.0.0.{number + 2}")
        healthy = [(await ask(server, path)).status_code for path in HEALTH]
        refused = await ask(server, "/v1/whoami")

        limits, used = resource.prlimit(server.pid, resource.RLIMIT_NOFILE), open_files(server)
        for stream in held:
            await trio.aclose_forcefully(stream)

        assert healthy == [200, 200]
        assert (refused.status_code, refused.json()["error_code"]) == (503, "UZ-API-005")
        assert limits == (HARD, HARD)
        assert SOFT < used < HARD
        assert "open_files_too_few" in server.log()

        while (await ask(server, "/v1/whoami")).status_code != 200:
            await trio.sleep(0.05)

        # Not a file left to accept with: it tries again until there is.
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (open_files(server), HARD))
        held = await hold(server, 8, "127.0.0.2")
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (HARD, HARD))
        status = (await ask(server, "/healthz")).status_code
        for stream in held:
            await trio.aclose_forcefully(stream)

    assert status == 200
