"""What is found before a command starts: a sandbox that does not hold, or none at all."""

import dataclasses
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import trio

from sexton_runner.errors import SandboxUnavailable
from sexton_runner.run import Outcome
from sexton_runner.sandbox import programs
from sexton_runner.sandbox.jobs import Sandbox, entered
from sexton_runner.sandbox.probe import make_sandbox, probe
from sexton_runner.sandbox.process import start
from sexton_runner.sandbox.tiers import Job
from sexton_runner.sandbox.walls import WALLS
from sexton_runner.settings import SandboxTier
from tests.worlds.ordinary_user import may_lower
from tests.worlds.sandbox import LIMITS, Cage


class Broken:
    """A tier that cannot be given: its program ends before anything of the command has begun."""

    name = SandboxTier.BUBBLEWRAP
    walls = WALLS[name]

    def __init__(self, like: Sandbox, words: Sequence[str]) -> None:
        self._like, self._words = like.tier, list(words)

    def inside(self, run_dir: Path, workspace: Path) -> Any:
        return self._like.inside(run_dir, workspace)

    def wrap(self, job: Job) -> list[str]:
        return self._words


@pytest.mark.parametrize(
    "words", [["/bin/sh", "-c", "echo bwrap: no >&2; exit 1"], ["/bin/true"], ["/no/such/program"]]
)
async def test_a_sandbox_that_does_not_stand_fails_the_event_closed(
    cage: Cage, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = make_sandbox(cage.tier, cage.limits, cage.folder)
    broken = dataclasses.replace(sandbox, tier=Broken(sandbox, words))
    monkeypatch.setattr("tests.worlds.sandbox.make_sandbox", lambda *_: broken)
    ending = await cage.run("sh", "echo I must not run")
    assert (ending.outcome, ending.failure_reason) == (Outcome.AGENT_ERROR, "startup_posture")
    assert ending.response_text.startswith("UZ-RUN-007")

    with pytest.raises(SandboxUnavailable):
        await probe(broken)


async def test_the_self_test_passes_where_the_sandbox_stands(tmp_path: Path) -> None:
    await probe(make_sandbox(SandboxTier.BUBBLEWRAP, LIMITS, tmp_path))


async def test_the_self_test_finds_a_sandbox_that_shuts_nothing_in(tmp_path: Path) -> None:
    bare = make_sandbox(SandboxTier.NONE, LIMITS, tmp_path)

    class Pretender:
        name = SandboxTier.BUBBLEWRAP
        walls = WALLS[name]
        inside = staticmethod(bare.tier.inside)
        wrap = staticmethod(bare.tier.wrap)

    fake = dataclasses.replace(bare, tier=Pretender())
    with pytest.raises(SandboxUnavailable, match="no pid namespace of its own"):
        await probe(fake)


async def test_without_bubblewrap_there_is_no_runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(SandboxUnavailable, match="apt-get install bubblewrap"):
        make_sandbox(SandboxTier.BUBBLEWRAP, LIMITS, tmp_path)


async def test_where_the_system_has_no_bubblewrap_the_one_that_came_along_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("setpriv", "prlimit", "env", "unshare", "mount", "chown", "mkdir"):
        (tmp_path / "bin" / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert programs.find_bubblewrap() == programs.bundled_bubblewrap()

    cage = Cage(tmp_path)
    sandbox = make_sandbox(cage.tier, cage.limits, tmp_path)
    assert (sandbox.lowering is not None) is may_lower()

    await probe(sandbox)
    ending = await cage.run("sh", "echo shut in")
    assert ending.response_text == "shut in\n"


def test_the_system_s_bubblewrap_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "bwrap"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert programs.find_bubblewrap() == str(own)


async def test_the_landlock_tier_is_refused_rather_than_pretended(tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable, match="landlock"):
        make_sandbox(SandboxTier.LANDLOCK, LIMITS, tmp_path)


@pytest.mark.parametrize(("runner", "status"), [(os.getpid(), 0), (1 << 22, 125)], ids=["lives", "died"])
async def test_nothing_is_started_for_a_runner_that_died_meanwhile(
    tmp_path: Path, runner: int, status: int
) -> None:
    words = ["/bin/sh", "-c", f"touch {tmp_path}/begun"]
    child = start(entered(words, runner=runner, setpriv="setpriv", group=None), {"PATH": os.environ["PATH"]})
    assert await child.wait() == status

    await child.finish()
    assert (tmp_path / "begun").exists() is (status == 0)


async def test_a_command_is_never_started_from_another_thread() -> None:
    with pytest.raises(SandboxUnavailable, match="main thread"):
        await trio.to_thread.run_sync(start, ["/bin/true"], {})
