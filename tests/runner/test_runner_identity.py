"""The settings are checked before anything starts, and the token is kept where only its owner can read it."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from sexton_runner.__main__ import VARIABLES, read_arguments
from sexton_runner.errors import BadSettings
from sexton_runner.identity import Kept, load, own_state_dir, save
from sexton_runner.settings import RunnerSettings, SandboxTier
from sexton_runner.timing import Timing, backoff, jittered

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "runner.md"
GOOD: dict[str, Any] = {"base_url": "http://127.0.0.1:1", "state_dir": Path("state")}


@pytest.mark.parametrize(
    "changes",
    [
        {"base_url": "127.0.0.1:80"}, {"base_url": "http://"}, {"slots": 0}, {"slots": 257}, {"host_id": ""},
        {"host_id": "h" * 257}, {"labels": ("",)}, {"labels": ("l" * 65,)}, {"labels": ("a",) * 65},
        {"drain_s": -1.0},
        {"run_wall_s": 0.0}, {"run_memory_bytes": 1}, {"run_pids": 1}, {"runner_token": "zmb_t_1"},
        {"enrolment_token": "zrn_1"}, {"runner_token": "zrn_1\n"},
    ],
)  # fmt: skip
def test_settings_that_cannot_be_used_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(BadSettings):
        RunnerSettings(**GOOD | changes)


def test_tokens_do_not_show_in_the_settings() -> None:
    settings = RunnerSettings(**GOOD, runner_token="zrn_secret", enrolment_token="zre_secret")
    assert "secret" not in repr(settings)


def test_no_sandbox_is_never_the_default() -> None:
    assert RunnerSettings(**GOOD).sandbox_tier is SandboxTier.BUBBLEWRAP


def test_the_state_file_is_its_owner_s_alone(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        save(tmp_path, Kept("http://a", "r1", "zrn_1"))
        save(tmp_path, Kept("http://a", "r1", "zrn_2"))
    finally:
        os.umask(old)

    assert stat.S_IMODE((tmp_path / "runner.json").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["runner.json"]
    assert load(tmp_path) == Kept("http://a", "r1", "zrn_2")
    assert "zrn_2" not in repr(load(tmp_path))


def test_no_state_file_is_no_fault_but_a_broken_one_is(tmp_path: Path) -> None:
    assert load(tmp_path) is None

    (tmp_path / "runner.json").write_text("{")
    with pytest.raises(BadSettings):
        load(tmp_path)


def test_the_state_folder_is_made_private_and_held(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    with own_state_dir(folder):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        with pytest.raises(BadSettings, match="in use"), own_state_dir(folder):
            pass
    with own_state_dir(folder):
        pass


def test_the_command_line_takes_tokens_from_the_environment_and_forgets_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SEXTON_RUNNER_TOKEN", "zrn_1")
    settings = read_arguments(["--base-url=http://a", "--state-dir=s", "--label=x", "--label=y", "--slots=7"])

    assert (settings.runner_token, settings.labels, settings.slots) == ("zrn_1", ("x", "y"), 7)
    assert "SEXTON_RUNNER_TOKEN" not in os.environ


def test_every_option_and_variable_is_in_the_help_and_on_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        read_arguments(["--help"])
    said, page = capsys.readouterr().out, PAGE.read_text()
    options = {word.strip("[],|") for word in said.split() if word.strip("[").startswith("--")} - {"--help"}

    assert {"--run-default", "--run-most"} < options
    assert "SEXTON_EGRESS_BYTES_OUT" in VARIABLES
    assert [name for name in VARIABLES if name not in said] == []
    assert [
        name for name in (*VARIABLES, *options) if f"`{name}`" not in page and f"`{name} " not in page
    ] == []


def test_jitter_stays_within_a_tenth() -> None:
    assert [jittered(10.0, luck) for luck in (0.0, 0.5, 1.0)] == pytest.approx([9.0, 10.0, 11.0])


def test_back_off_grows_and_stays_bounded() -> None:
    waits = [backoff(attempt, 1.0, Timing()) for attempt in range(40)]

    assert waits == sorted(waits)
    assert max(waits) == Timing().backoff_max_s
    assert backoff(10**9, 0.0, Timing()) > 0
