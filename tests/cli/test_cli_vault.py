"""``vault`` against a real server, which is killed and comes back with all its secrets."""

from pathlib import Path

import httpx2
import trio

from tests.worlds.server_process import ServerProcess
from tests.worlds.shell import Shell, said


def keep_secrets(server: ServerProcess, count: int) -> str:
    """Secrets in the first workspace; gives the address of its own model key, which is one of them."""
    workspace = f"/v1/workspaces/{server.ready['workspace_id']}"
    headers = {"authorization": f"Bearer {server.ready['api_key']}"}
    with httpx2.Client(base_url=server.ready["base_url"], headers=headers) as http:
        for number in range(count):
            body = {"name": f"c{number}", "data": {"value": number}}
            assert http.post(f"{workspace}/credentials", json=body).status_code == 201
        key = {"provider": "openai", "api_key": "sk-1"}
        assert http.put(f"{workspace}/credentials/llm", json=key).status_code == 204
    return f"{workspace}/credentials/llm"


def test_the_master_key_is_rotated_over_a_kill_and_everything_opens(
    server: ServerProcess, shell: Shell
) -> None:
    secrets = keep_secrets(server, 3)
    refused = shell("vault", "status", SEXTON_TOKEN=server.ready["api_key"])
    assert (refused.returncode != 0, "UZ-AUTH-021" in said(refused)) == (True, True)

    shell.environment["SEXTON_TOKEN"] = server.ready["admin_token"]
    before = shell.json("vault", "status")
    assert [(key["version"], key["secrets"]) for key in before["keys"]] == [(1, 6)]

    after = shell.json("vault", "rotate")
    assert [(key["version"], key["secrets"], key["seals"]) for key in after["keys"]] == [
        (1, 0, False),
        (2, 6, True),
    ]

    table = shell("vault", "status")
    assert table.returncode == 0
    assert "SECRETS" in table.stdout

    trio.run(_kill_and_start, server)
    headers = {"authorization": f"Bearer {server.ready['api_key']}"}
    with httpx2.Client(base_url=server.ready["base_url"], headers=headers) as http:
        assert http.get(secrets).json()["provider"] == "openai"


async def _kill_and_start(server: ServerProcess) -> None:
    server.kill()
    await server.start()


def test_the_start_tells_where_the_catalogue_is_and_it_has_prices(server: ServerProcess) -> None:
    base_url = server.ready["base_url"]
    lines = [line for line in server.log().splitlines() if "/cap.json" in line]
    address = lines[-1].split()[1]
    assert address.startswith(f"{base_url}/_um/")

    with httpx2.Client() as http:
        shown = http.get(address).json()
        assert {"anthropic", "openai"} <= {row["provider"] for row in shown["models"]}
    assert Path(address).name == "cap.json"
