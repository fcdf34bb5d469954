"""What a host cannot give is said beforehand, and refused where that is wanted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
import structlog

from sexton_runner import doctor
from sexton_runner.__main__ import command
from sexton_runner.doctor import Grade, examine
from sexton_runner.errors import TooWeak
from sexton_runner.main import run_runner
from sexton_runner.sandbox.bubblewrap_advice import namespace_advice
from tests.fakes.control_plane import open_plane
from tests.worlds.ordinary_user import may_lower
from tests.worlds.plain_logs import log_plainly
from tests.worlds.runner import settings_for


@pytest.fixture(autouse=True)
def _logs() -> Iterator[None]:
    yield
    structlog.reset_defaults()
    log_plainly()


def test_the_report_of_a_host_that_can_run_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["doctor", "--json"]) == 0

    found = [orjson.loads(line) for line in capsys.readouterr().out.splitlines()]
    grades = {one["name"]: one["grade"] for one in found}
    assert grades["self-test inside the sandbox"] == "good"
    assert grades["bwrap"] == "good"
    assert set(grades.values()) <= {"good", "weak"}


def test_a_host_without_bubblewrap_is_told_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)

    assert command(["doctor"]) == 69
    assert "missing  bwrap: not installed (Debian and Ubuntu: apt-get install bubblewrap)" in (
        capsys.readouterr().out
    )


async def test_what_is_weak_is_no_reason_to_fail_but_a_strict_runner_takes_no_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "this_machine", lambda: None)
    grades = {one.name: one.grade for one in await examine(tmp_path)}
    assert grades["system calls"] is Grade.WEAK

    async with open_plane() as plane:
        with pytest.raises(TooWeak, match="system calls: not filtered"):
            await run_runner(settings_for(plane, tmp_path, strict=True))
        assert plane.of("poll") == []


@pytest.mark.skipif(not may_lower(), reason="only root can become another user, where the host lets it")
async def test_a_root_whose_number_commands_keep_is_weak(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "a command's user on the host"
    assert {one.name: one.grade for one in await examine(tmp_path)}[name] is Grade.GOOD

    monkeypatch.setattr(doctor, "find_lowering", lambda *_: None)
    assert {one.name: one.grade for one in await examine(tmp_path)}[name] is Grade.WEAK


@pytest.mark.parametrize(("words", "status"), [([], 0), (["--strict"], 69)])
def test_the_exit_status_says_whether_what_is_weak_counts(
    words: list[str], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "this_machine", lambda: None)
    assert doctor.command(words) == status


def test_words_that_the_doctor_does_not_know_are_refused() -> None:
    with pytest.raises(SystemExit):
        command(["doctor", "--heal"])


@pytest.mark.parametrize(
    ("file", "value", "advice"),
    [
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "bwrap-userns-restrict"),
        ("kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "0", "user.max_user_namespaces="),
        ("user/max_user_namespaces", "96000", "in a container"),
    ],
)
def test_the_advice_is_about_what_forbids_namespaces_here(
    tmp_path: Path, file: str, value: str, advice: str
) -> None:
    (tmp_path / file).parent.mkdir()
    (tmp_path / file).write_text(f"{value}\n")

    assert advice in namespace_advice(tmp_path)
