"""Two servers on one PostgreSQL: who is removed on one is refused by the other at once."""

import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import trio

from sexton_http.identity.remembered_tokens import REMEMBER_S
from tests.patience import PATIENCE_S
from tests.worlds.nodes import Node, open_nodes

ROUNDS = 5


async def test_a_removal_on_one_node_is_known_on_the_other(tmp_path: Path, postgres_dsn: str) -> None:
    async with open_nodes(tmp_path, postgres_dsn) as (first, second):
        zombie_id = await first.install("watcher")
        spans = [await leave(first, second, zombie_id, number) for number in range(ROUNDS)]
    shown = "  ".join(f"{span * 1000:.1f}" for span in spans)
    sys.stderr.write(f"\nfrom the answer to the removal until the other node refuses, ms: {shown}\n")

    # The key was used just before: without being told, the other node would believe it most of a second.
    assert min(spans) < REMEMBER_S / 2


async def leave(first: Node, second: Node, zombie_id: str, number: int) -> float:
    """Seconds until a member who is removed on the first node is refused with a key on the second."""
    made = await first.call("POST", "/v1/members", {"name": f"ann-{number}", "role": "operator"})
    member_id = made["member"]["id"]
    key = await key_of(first, made["sign_in_url"], number)
    async with watched(second, zombie_id, key) as chunks:
        assert b"retry" in await anext(chunks)
        assert (await second.get("/v1/whoami", key)).status_code == 200
        await first.call("DELETE", f"/v1/members/{member_id}")
        began = time.perf_counter()
        with trio.fail_after(PATIENCE_S):
            while (answer := await second.get("/v1/whoami", key)).status_code == 200:
                pass
            span = time.perf_counter() - began
            assert answer.json()["error_code"] == "UZ-APIKEY-004"
            async for _ in chunks:
                pass  # The stream that the key opened there comes to its end.
    assert (await first.get("/v1/whoami", key)).status_code == 401
    return span


async def key_of(node: Node, sign_in_url: str, number: int) -> str:
    """A key that the person of the link made, signed in with a browser."""
    site = {"sec-fetch-site": "same-origin"}
    async with httpx2.AsyncClient(timeout=60) as browser:
        assert (await browser.post(sign_in_url, headers=site)).status_code == 303
        base_url = str(node.server.ready["base_url"])
        minted = (await browser.post(f"{base_url}/auth/token", headers=site)).json()
        body = {"key_name": f"key-{number}", "role": "operator"}
        value: str = (await node.call("POST", "/v1/api-keys", body, minted["token"]))["key"]
        return value


@asynccontextmanager
async def watched(node: Node, zombie_id: str, key: str) -> AsyncIterator[AsyncIterator[bytes]]:
    """The bytes of an agent's stream."""
    headers = {"authorization": f"Bearer {key}"}
    url: Any = f"{node.server.ready['base_url']}{node.workspace}/zombies/{zombie_id}/events/stream"
    async with (
        httpx2.AsyncClient(timeout=60) as client,
        client.stream("GET", url, headers=headers) as answer,
    ):
        assert answer.status_code == 200
        yield answer.aiter_bytes()
