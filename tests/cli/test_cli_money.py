"""Whoever runs a server sees when a balance is used up, and mends it; and its own tenant has no limit."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx2
import orjson
import pytest
import trio
from prometheus_client.parser import text_string_to_metric_families

from tests.worlds.samples import NOBODY, agent_files, command_body
from tests.worlds.server_process import ServerProcess
from tests.worlds.shell import Shell, said, wait_until


@pytest.fixture(scope="module")
def poor_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server whose first tenant has a limit, and begins with nothing."""
    folder = tmp_path_factory.mktemp("poor")
    billing = folder / "billing.toml"
    billing.write_text("[credit]\nfirst_tenant_dollars = 0\n")
    process = ServerProcess(folder, "--port", "0", "--runners", "0", "--billing", str(billing))
    trio.run(process.start)
    yield process
    assert trio.run(process.stop) == 0


def shell_of(server: ServerProcess, folder: Path) -> Shell:
    return Shell(folder, SEXTON_BASE_URL=server.ready["base_url"], SEXTON_TOKEN=server.ready["admin_token"])


def caller_of(server: ServerProcess, token: str) -> httpx2.Client:
    headers = {"authorization": f"Bearer {token}"}
    return httpx2.Client(base_url=server.ready["base_url"], headers=headers, timeout=30)


def install(server: ServerProcess) -> tuple[str, str]:
    """An agent that a webhook wakes: its path and its webhook's address."""
    body = agent_files("worker", "runtime: command", trigger=NOBODY, body=command_body("true"))
    path = f"/v1/workspaces/{server.ready['workspace_id']}/zombies"
    with caller_of(server, server.ready["api_key"]) as http:
        made = http.post(path, json=body)
    assert made.status_code == 201, made.text
    return f"{path}/{made.json()['zombie_id']}", str(made.json()["webhook_urls"]["nobody"])


def leased(server: ServerProcess, runner_token: str) -> int:
    """How many leases a runner is given at once."""
    with caller_of(server, runner_token) as http:
        answer = http.post("/v1/runners/me/leases", json={})
    assert answer.status_code == 200, answer.text
    return len(answer.json()["leases"])


def metric(server: ServerProcess, name: str) -> float:
    text = httpx2.get(f"{server.ready['base_url']}/metrics").text
    families = {family.name: family for family in text_string_to_metric_families(text)}
    return float(families[name].samples[0].value)


def test_a_used_up_balance_is_told_everywhere_and_credit_lets_work_go_on(
    poor_server: ServerProcess, tmp_path: Path
) -> None:
    server, shell = poor_server, shell_of(poor_server, tmp_path)
    shell.environment["SEXTON_WORKSPACE"] = str(server.ready["workspace_id"])
    path, url = install(server)
    with caller_of(server, server.ready["admin_token"]) as http:
        enrolled = http.post("/v1/runners", json={"host_id": "h", "sandbox_tier": "bubblewrap"})
        runner = str(enrolled.json()["runner_token"])
        assert http.get(path).json()["waiting_for"] is None
        assert http.post(url, json={"event_id": "1", "type": "t", "data": {}}).status_code == 202

        wait_until(lambda: leased(server, runner) == 0 and http.get(path).json()["waiting_for"] == "credit")
    told = shell.json("balance")
    assert (told["balance_nanos"], told["is_exhausted"], told["is_unlimited"]) == (0, True, False)
    assert "UZ-BILLING-005" in said(shell("steer", "worker", "go"))
    assert re.search("^waiting for +credit$", shell("agent", "show", "worker").stdout, re.MULTILINE)
    assert "1 event waits for credit, 1 tenant has none" in shell("top").stdout

    checks = {check["name"]: check for check in orjson.loads(shell("doctor", "--json").stdout)["checks"]}
    assert checks["balance"]["state"] == "fail"
    assert "sexton billing credit" in checks["balance"]["way_out"]

    wait_until(lambda: metric(server, "sexton_events_blocked") == 1)
    assert metric(server, "sexton_tenants_exhausted") == 1
    assert (shell("credit", "much").returncode, shell("credit", "-1").returncode) == (2, 2)
    assert "$20.00" in shell("credit", "20", "--reason", "try").stdout

    wait_until(lambda: leased(server, runner) == 1)
    assert shell.json("balance")["is_exhausted"] is False

    wait_until(lambda: metric(server, "sexton_events_blocked") == 0)


def test_the_tenant_of_the_first_start_has_no_limit(server: ServerProcess, tmp_path: Path) -> None:
    shell = shell_of(server, tmp_path)
    told = shell.json("balance")

    assert (told["balance_nanos"], told["is_exhausted"], told["is_unlimited"]) == (5_000_000_000, False, True)
    assert "none: work goes on below zero" in shell("balance").stdout
