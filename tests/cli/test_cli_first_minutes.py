"""What somebody meets who has just cloned the repository: on a machine that can, and on one that cannot."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from sexton_cli import local_runners
from sexton_cli.first_commands import program_name
from tests.patience import PATIENCE_S
from tests.worlds.server_process import ServerProcess
from tests.worlds.shell import Shell

USAGE = 2
UNAVAILABLE = 69
BROKEN = "#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n"


@pytest.fixture
def narrow_shell(tmp_path: Path) -> Shell:
    """On a machine where nobody may make user namespaces."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "bwrap").write_text(BROKEN)
    (folder / "bwrap").chmod(0o755)
    return Shell(tmp_path, PATH=f"{folder}:/usr/bin:/bin")


def test_the_demo_says_before_it_begins_that_commands_cannot_be_shut_in(narrow_shell: Shell) -> None:
    ended = narrow_shell("demo")

    assert ended.returncode == UNAVAILABLE
    assert ended.stderr.startswith(
        "sexton: UZ-RUN-007: commands cannot be sandboxed here: bwrap: setting up uid"
    )
    assert "sexton runner doctor" in ended.stderr
    assert len((ended.stdout + ended.stderr).splitlines()) <= 3
    assert "Traceback" not in ended.stderr


def test_a_server_with_runners_says_so_before_it_makes_a_database(
    narrow_shell: Shell, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    ended = narrow_shell("up", "--data", str(data), "--port", "0")

    assert ended.returncode == UNAVAILABLE
    assert ended.stderr.startswith("sexton: UZ-RUN-007: ")
    assert len((ended.stdout + ended.stderr).splitlines()) <= 3
    assert not data.exists()


def test_the_first_start_says_of_each_line_what_it_is(server: ServerProcess) -> None:
    _, _, after = server.log().partition("Sexton is up.\n")
    told = dict(line.strip().split(maxsplit=1) for line in after.partition("\nNext, ")[0].splitlines())
    base, key = re.escape(server.ready["base_url"]), re.escape(server.ready["api_key"])
    expected = {
        "address": base,
        "sign": rf"in +{base}/auth/sign-in/\w+ \(in a browser, once, within an hour\)",
        "API": rf"key +{key} \(shown this once; kept in \S+/api-key\)",
        "workspace": server.ready["workspace_id"],
        "runners": "none on this machine",
        "reference": rf"{base}/docs \(the HTTP interface\)",
        "prices": rf"{base}/_um/\w+/cap\.json \(of models, for clients of an older kind\)",
    }

    assert list(told) == list(expected)
    assert [name for name, form in expected.items() if not re.fullmatch(form, told[name])] == []


def test_the_first_commands_can_be_pasted_as_they_stand(server: ServerProcess, bare_shell: Shell) -> None:
    _, _, after = server.log().partition("check the setup:\n")
    lines = [line.strip() for line in after.splitlines() if line.startswith("  ")]
    assert [line.split()[1] for line in lines] == ["login", "agent", "steer", "doctor"]
    assert {line.split()[0] for line in lines} == {program_name(Path.cwd())}

    for line in lines:
        # Nobody carries it out here, so nobody waits for the answer.
        words = f"{line} --no-wait" if " steer " in line else line
        ended = subprocess.run(
            ["/bin/sh", "-c", words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            env=bare_shell.environment,
        )
        assert ended.returncode == 0, f"{line}: {ended.stdout}{ended.stderr}"
        # What is tried first needs nothing that is not there yet.
        assert "(warning)" not in ended.stderr


def test_a_program_on_the_path_is_called_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = Path(sys.executable).parent / "sexton"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert program_name(program.parents[2]) == str(program.relative_to(program.parents[2]))
    assert program_name(tmp_path) == str(program)

    (tmp_path / "sexton").symlink_to(program)
    assert program_name(tmp_path) == "sexton"


def test_another_program_of_that_name_is_not_taken_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sexton").write_text("#!/bin/sh\n")
    (tmp_path / "sexton").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert Path(program_name(tmp_path)).is_absolute()


async def test_a_child_that_has_been_reaped_is_waited_for_like_any_other() -> None:
    process = subprocess.Popen(["/bin/sh", "-c", "exit 69"])
    assert process.wait() == UNAVAILABLE

    with trio.fail_after(PATIENCE_S):
        assert await local_runners.wait(process) == UNAVAILABLE


def test_who_makes_the_first_agent_is_told_which_runtime_needs_a_model(tmp_path: Path) -> None:
    ended = Shell(tmp_path)("agent", "init", "helper")

    assert ended.returncode == USAGE
    assert "--runtime command for a program of yours, which needs no model and no key" in ended.stderr
    assert "--runtime agent for a language model" in ended.stderr


def test_who_names_a_folder_that_is_not_there_is_told_how_to_write_one(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    folder = tmp_path / "helper"
    missing = shell("agent", "install", str(folder))
    made = shell("agent", "init", "helper", "--runtime", "command", "--dir", str(folder))

    assert missing.returncode == USAGE
    assert "'sexton agent init helper --runtime command' writes one." in missing.stderr
    assert made.returncode == 0, made.stderr
    assert (folder / "SKILL.md").exists()
