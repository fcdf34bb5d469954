"""``sexton up`` as an operator and his scripts meet it: a real process each time."""

import socket
import stat
from pathlib import Path

import httpx2
import pytest
import trio
from click.testing import CliRunner

from sexton_cli.commands import server as commands
from sexton_cli.up import UpSettings
from tests.worlds.cluster_template import put_cluster
from tests.worlds.server_process import ServerProcess, open_server
from tests.worlds.shell import Ended, run_command

CONFIG = 78
UNAVAILABLE = 69


def sexton(*words: str, **environment: str) -> Ended:
    """Run a command that is to end by itself."""
    return run_command(words, {"PATH": "/usr/bin:/bin", **environment})


async def test_the_ready_file_holds_all_that_a_script_needs_and_is_its_owners_alone(tmp_path: Path) -> None:
    async with open_server(tmp_path, "--port", "0", "--runners", "1", from_nothing=True) as server:
        assert server.ready.keys() == {
            "base_url",
            "tenant_id",
            "workspace_id",
            "api_key",
            "admin_token",
            "pids",
        }
        assert stat.S_IMODE((tmp_path / "ready.json").stat().st_mode) == 0o600
        assert server.ready["pids"].keys() == {"server", "postgres", "runners"}
        assert len(server.ready["pids"]["runners"]) == 1

        async with httpx2.AsyncClient(base_url=server.ready["base_url"], timeout=30) as http:
            assert (await http.get("/readyz")).json()["ready"] is True

            bearer = {"authorization": f"Bearer {server.ready['admin_token']}"}
            fleet = (await http.get("/v1/fleet/runners", headers=bearer)).json()
            assert [runner["liveness"] for runner in fleet["items"]] == ["online"]
        assert await server.stop() == 0

        first = server.ready
        await server.start()
        assert server.ready["api_key"] == first["api_key"]
        assert server.ready["workspace_id"] == first["workspace_id"]

        await _the_same_runner_is_back(server)


async def _the_same_runner_is_back(server: ServerProcess) -> None:
    async with httpx2.AsyncClient(base_url=server.ready["base_url"], timeout=30) as http:
        bearer = {"authorization": f"Bearer {server.ready['admin_token']}"}
        assert (await http.get("/v1/fleet/runners", headers=bearer)).json()["total"] == 1


async def test_a_second_server_on_the_same_folder_is_told_so_and_the_first_goes_on(tmp_path: Path) -> None:
    async with open_server(tmp_path, "--port", "0", "--runners", "0") as server:
        words = ("up", "--data", str(tmp_path / "data"), "--port", "0", "--runners", "0")
        second = await trio.to_thread.run_sync(lambda: sexton(*words))
        assert second.returncode == UNAVAILABLE
        assert second.stderr.startswith("sexton: UZ-STARTUP-003: ")
        assert second.stderr.rstrip().endswith("Stop that server first, or choose another folder with --data")
        assert "Traceback" not in second.stderr

        async with httpx2.AsyncClient(base_url=server.ready["base_url"], timeout=30) as http:
            assert (await http.get("/healthz")).status_code == 200


def test_a_port_that_is_taken_is_one_clear_line_and_status_78(tmp_path: Path) -> None:
    trio.run(put_cluster, tmp_path / "data")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = sexton("up", "--data", str(tmp_path / "data"), "--port", str(port), "--runners", "0")
    assert ended.returncode == CONFIG

    *logged, said = ended.stderr.splitlines()
    assert said.startswith("sexton: UZ-STARTUP-002: ")
    assert "--port" in said
    assert all(line.startswith("{") for line in logged)


def test_a_database_that_is_no_address_is_one_clear_line_and_status_69(tmp_path: Path) -> None:
    ended = sexton(
        "serve",
        "--data",
        str(tmp_path / "data"),
        "--port",
        "0",
        "--database-wait",
        "0.5",
        DATABASE_URL="postgresql://nobody@127.0.0.1:1/no?x=y",
    )

    assert ended.returncode == UNAVAILABLE, ended.stderr
    assert ended.stderr.splitlines()[-1].startswith("sexton: UZ-STARTUP-003: ")
    assert "DATABASE_URL" in ended.stderr


def test_a_folder_that_cannot_be_made_is_one_clear_line_and_status_78(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    ended = sexton("up", "--data", str(tmp_path / "file" / "data"), "--port", "0", "--runners", "0")

    assert ended.returncode == CONFIG
    assert "--data" in ended.stderr


def test_a_master_key_that_others_can_read_stops_the_start(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    keys = data / "master.keys"
    keys.write_text("1:" + "00" * 32)
    keys.chmod(0o644)
    trio.run(put_cluster, data)
    ended = sexton("up", "--data", str(data), "--port", "0", "--runners", "0")

    assert ended.returncode == CONFIG
    assert "mode 0600" in ended.stderr


def test_certificate_and_key_go_together(tmp_path: Path) -> None:
    ended = sexton("up", "--data", str(tmp_path / "data"), "--tls-cert", str(tmp_path / "cert.pem"))

    assert ended.returncode == 2
    assert "--tls-key" in ended.stderr


def test_the_version_is_that_of_the_distribution() -> None:
    ended = sexton("--version")

    assert ended.returncode == 0
    assert ended.stdout.strip() == "sexton, version 0.1.0"


def test_a_runner_without_its_settings_says_what_is_missing() -> None:
    ended = sexton("runner")

    assert ended.returncode == 2
    assert "--base-url" in ended.stderr


def test_what_runs_may_have_is_checked_and_handed_on_to_the_runners(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started: list[UpSettings] = []

    def run_up(settings: UpSettings) -> int:
        started.append(settings)
        return 0

    monkeypatch.setattr(commands, "run_up", run_up)
    words = ["--data", str(tmp_path), "--run-most"]
    refused = CliRunner().invoke(commands.up, [*words, "memory=lots"])
    taken = CliRunner().invoke(commands.up, [*words, "memory=4GiB"], env={"SEXTON_RUN_DEFAULT": "pids=64"})

    assert (refused.exit_code, taken.exit_code) == (2, 0)
    assert "'memory=lots' is not like cpu=2,memory=2GiB" in refused.output

    [settings] = started
    assert {"--run-most=memory=4GiB", "--run-default=pids=64"} < {*settings.runner_options}
