"""The tier of containers shuts a run in, leaves nothing behind, and tells no secret."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

import orjson
import pytest
import trio

from sexton_runner.errors import SandboxUnavailable
from sexton_runner.sandbox import podman
from sexton_runner.sandbox.limits import Limits
from sexton_runner.sandbox.podman import Client, Podman, find_client, own_folder
from sexton_runner.sandbox.probe import group_name
from sexton_runner.sandbox.tiers import Job, Root
from tests.patience import PATIENCE_S
from tests.runner.attacks import ATTACKS, CANARY
from tests.runner.network_attacks import NETWORK_ATTACKS
from tests.runner.podman_attacks import MARKER, UNAVAILABLE
from tests.thorough import THOROUGH
from tests.worlds.ordinary_user import ORDINARY, as_ordinary_user, own_folder as ordinary_folder
from tests.worlds.runner import eventually, gone, processes_with

ROOT = Path(__file__).resolve().parents[2]
MODULE = "tests.runner.podman_attacks"


@contextlib.contextmanager
def place(*, ordinary: bool) -> Iterator[tuple[Path, list[str]]]:
    """Give a folder of the user's who attacks, and the words before a program of his."""
    with (
        ordinary_folder() if ordinary else tempfile.TemporaryDirectory() as name,
        tempfile.TemporaryDirectory() as stage,
    ):
        try:
            yield Path(name), as_ordinary_user([], Path(stage)) if ordinary else []
        finally:
            if ordinary or os.geteuid() != 0:
                end_pause(ORDINARY if ordinary else os.geteuid())


def end_pause(user: int) -> None:
    """End the process that podman keeps for an ordinary user."""
    with contextlib.suppress(OSError, ValueError):
        told = Path(tempfile.gettempdir()) / f"sexton-podman-{user}" / "tmp" / "pause.pid"
        os.kill(int(told.read_text(encoding="ascii")), signal.SIGKILL)


def environment() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}/runner:{ROOT}", "SEXTON_CANARY": CANARY}


@pytest.mark.parametrize(
    "ordinary",
    [
        False,
        pytest.param(
            True,
            marks=pytest.mark.skipif(
                not THOROUGH or os.geteuid() != 0, reason="in make test-thorough, and as root"
            ),
        ),
    ],
)
async def test_attacks_fail_and_a_killed_runner_leaves_no_container_and_told_no_secret(
    ordinary: bool,
) -> None:
    with place(ordinary=ordinary) as (folder, before):
        async with holding([*before, sys.executable, "-m", MODULE, str(folder)]) as (process, line):
            found: dict[str, str] = orjson.loads(line)
            heard, lent = found.pop("background").split()

            assert heard == "heard"
            assert lent.startswith("sxt_")
            assert {name: came for name, came in found.items() if came != "held"} == {}
            assert set(found) >= set(NETWORK_ATTACKS)

            # What the program was lent is neither on a command line nor in podman's records.
            asked = [] if ordinary else container_of(folder)

            assert processes_with(MARKER)
            assert processes_with(lent) == []
            assert [lent in say("inspect", name) for name in asked] == [False] * (not ordinary)

            process.kill()
            await gone(MARKER)
            if asked:
                await eventually(lambda: not container_of(folder))


def say(*words: str) -> str:
    """Give what podman says of the containers of this user's runners."""
    return find_client().call(*words).stdout


def container_of(folder: Path) -> list[str]:
    """Name the containers of a runner by its folder."""
    return [
        name for name in say("ps", "--all", "--format", "{{.Names}}").split() if group_name(folder) in name
    ]


@contextlib.asynccontextmanager
async def holding(words: list[str]) -> AsyncIterator[tuple[subprocess.Popen[bytes], bytes]]:
    """Start the program and wait for its line; skips where podman cannot run a container."""
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=errors, cwd=ROOT, env=environment()
        ) as process,
    ):
        assert process.stdout is not None
        try:
            line = await trio.to_thread.run_sync(process.stdout.readline)
            if not line:
                errors.seek(0)
                why = errors.read().decode()
                if process.wait() == UNAVAILABLE:
                    pytest.skip(why)
                pytest.fail(why)
            yield process, line
        finally:
            process.kill()


@pytest.mark.skipif(not THOROUGH, reason="in make test-thorough: each attack in a container of its own")
@pytest.mark.parametrize("ordinary", [False, True])
def test_every_attack_fails_in_a_container_of_its_own(ordinary: bool) -> None:
    with place(ordinary=ordinary and os.geteuid() == 0) as (folder, before):
        words = [*before, sys.executable, "-m", MODULE, str(folder), "each"]
        done = subprocess.run(
            words, capture_output=True, cwd=ROOT, env=environment(), timeout=PATIENCE_S, check=False
        )
        if done.returncode == UNAVAILABLE:
            pytest.skip(done.stderr.decode())
        assert done.returncode == 0, done.stderr.decode()

        found: Mapping[str, str] = orjson.loads(done.stdout)

    assert {name: came for name, came in found.items() if came not in ATTACKS[name].expect} == {}
    assert set(found) == set(ATTACKS)


def job(folder: Path, image: Root | None = None) -> Job:
    return Job(
        argv=["/usr/bin/env"],
        env={"TOKEN": CANARY},
        run_dir=folder,
        workspace=folder,
        read_only={Path("/opt/python"): Path("/srv/python")},
        limits=Limits(wall_s=10, memory_bytes=1 << 30, pids=64),
        grouped=True,
        image=image,
        owner="runner",
    )


def test_podman_s_command_line_has_the_walls_and_nothing_that_the_program_is_given(tmp_path: Path) -> None:
    client = Client("/usr/bin/podman", "runc", tmp_path / "records")

    words = Podman(client).wrap(job(tmp_path))

    plan = orjson.loads(words[-1])
    for wall in ("--network none", "--read-only", "--cap-drop all", "no-new-privileges", "--log-driver none"):
        assert wall in " ".join(plan["podman"])

    assert "type=bind,src=/srv/python,dst=/opt/python,ro" in plan["podman"]
    assert CANARY not in " ".join(words)


def test_an_image_stands_in_place_of_the_host_s_programs(tmp_path: Path) -> None:
    root = tmp_path / "image"
    for name in ("usr", "etc", "opt", "proc", "srv"):
        (root / name).mkdir(parents=True)
    (root / "bin").symlink_to("usr/bin")
    client = Client("/usr/bin/podman", "runc", tmp_path / "records")

    plan = orjson.loads(Podman(client).wrap(job(tmp_path, Root(root, whole=True)))[-1])
    added = orjson.loads(Podman(client).wrap(job(tmp_path, Root(root, whole=False)))[-1])

    binds = {word.split("src=")[1] for word in plan["podman"] if "src=" in word}

    assert {f"{root}/{name},dst=/{name},ro" for name in ("usr", "opt", "srv")} <= binds
    assert not any(bind.startswith(("/usr,", f"{root}/etc", f"{root}/proc")) for bind in binds)
    assert (plan["etc"], plan["links"]) == (f"{root}/etc", [["bin", "usr/bin"]])
    assert f"type=bind,src={root}/opt,dst=/opt,ro" in added["podman"]
    assert "type=bind,src=/usr,dst=/usr,ro" in added["podman"]


def test_a_host_without_podman_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)

    with pytest.raises(SandboxUnavailable, match="apt-get install podman"):
        find_client.__wrapped__()


def test_no_runtime_that_works_is_told_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "podman"
    program.write_text("#!/bin/sh\necho Error: hybrid groups >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(podman, "find_program", lambda *_: str(program))
    monkeypatch.setattr(podman, "own_folder", lambda: own_folder(tmp_path))
    monkeypatch.setattr(podman, "PATH", str(tmp_path))
    monkeypatch.setattr(podman, "RUNTIMES", ("podman",))

    with pytest.raises(SandboxUnavailable, match="with podman: Error: hybrid groups"):
        find_client.__wrapped__()


def test_a_folder_of_records_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    own_folder(tmp_path).chmod(0o777)

    with pytest.raises(SandboxUnavailable, match="remove it"):
        own_folder(tmp_path)
