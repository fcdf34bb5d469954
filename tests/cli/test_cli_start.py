"""How lightly the command starts, and how shells complete it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from sexton_cli.commands.late_group import LateGroup
from sexton_cli.commands.table import COMMANDS, NOUNS, VERBS
from sexton_cli.main import cli
from tests.thorough import THOROUGH
from tests.worlds.shell import Shell
from tests.worlds.warm_start import can_be_warm

HEAVY = frozenset(
    {
        "asyncpg",
        "cryptography",
        "httpx2",
        "hypercorn",
        "msgspec",
        "orjson",
        "pykka",
        "quart",
        "rich",
        "sexton_actors",
        "sexton_engine",
        "sexton_http",
        "sexton_storage",
        "trio",
        "uvloop",
        "yaml",
    }
)
"""What only servers, runners and single commands need."""
CLIENT = frozenset({"msgspec", "orjson"})
"""What help of a command that calls a server may import of it."""
MODULES = 24
"""As many as help may import beside click and what it imports: a client would be 150 more."""
COUNT_MODULES = """
import sys
import click
before = len(sys.modules)
from sexton_cli.main import main
sys.argv = ["sexton", "--help"]
try:
    main()
finally:
    print(len(sys.modules) - before, file=sys.stderr)
"""
COUNT = """
import sys
from sexton_cli.main import main
sys.argv[0] = "sexton"
try:
    main()
finally:
    print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""

WRITE = """
import sys
from sexton_cli.output import Output
Output(sys.argv[1]).thing({"name": "night-watch"}, {"name": "night-watch"})
print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


def imported(*words: str, **environment: str) -> tuple[str, frozenset[str]]:
    """What is said, and the packages that were imported for it."""
    ended = subprocess.run(
        [sys.executable, "-c", COUNT, *words],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin", **environment},
        timeout=60,
    )
    return ended.stdout, frozenset(ended.stderr.split())


@pytest.mark.parametrize("words", [("--help",), ("-h",), ("--version",)])
def test_help_needs_no_server(words: tuple[str, ...]) -> None:
    said, packages = imported(*words)

    assert said
    assert packages & HEAVY == frozenset()
    assert "click" in packages  # The list is of packages indeed.


def test_help_imports_few_modules() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", COUNT_MODULES], capture_output=True, text=True, check=True, env={}, timeout=60
    )
    assert int(ended.stderr) <= MODULES


@pytest.mark.parametrize(
    "words",
    [
        ("agent", "--help"),
        ("agent", "show", "--help"),
        ("agent", "canary", "start", "--help"),
        ("event", "--help"),
        ("event", "watch", "--help"),
        ("model", "preview", "--help"),
        ("assistant", "connect", "--help"),
        ("actor", "--help"),
    ],
)
def test_help_imports_nothing_that_calls_a_server_reads_files_or_draws(words: tuple[str, ...]) -> None:
    said, packages = imported(*words)

    assert said.startswith(f"Usage: sexton {' '.join(words[:-1])} ")
    assert packages & (HEAVY - CLIENT) == frozenset()


@pytest.mark.parametrize(("form", "needed"), [("json", set()), ("yaml", {"yaml"}), ("table", {"rich"})])
def test_an_answer_is_written_with_what_its_form_needs_alone(form: str, needed: set[str]) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", WRITE, form], capture_output=True, text=True, check=True, env={}, timeout=60
    )

    assert "night-watch" in ended.stdout
    assert HEAVY.intersection(ended.stderr.split()) == {"msgspec"} | needed


def test_help_lists_every_command_with_the_first_sentence_of_its_own_help() -> None:
    said, _ = imported("--help")
    context = click.Context(cli, info_name="sexton")
    for name, entry in COMMANDS.items():
        command = cli.get_command(context, name)
        assert command is not None
        assert entry.summary == command.get_short_help_str(limit=1_000), name
        assert f"  {name} " in said
    for noun, verbs in VERBS.items():
        group = cli.get_command(context, noun)
        assert isinstance(group, LateGroup)
        for name, entry in verbs.items():
            command = group.get_command(click.Context(group, parent=context), name)
            assert command is not None
            assert entry.summary == command.get_short_help_str(limit=1_000), (noun, name)


@pytest.mark.parametrize("words", [("--help",), ("event", "--help")])
def test_help_cuts_no_sentence_short(words: tuple[str, ...]) -> None:
    said, _ = imported(*words)
    known = VERBS.get(words[0], NOUNS)
    whole = " ".join(said.split())

    assert [name for name, entry in known.items() if f" {name} {entry.summary}" not in whole] == []


def test_a_shell_is_given_its_completion_by_a_variable_too(shell: Shell, tmp_path: Path) -> None:
    kind = "bash"
    made = shell(_SEXTON_COMPLETE=f"{kind}_source")
    assert made.returncode == 0, made.stderr
    assert "_SEXTON_COMPLETE" in made.stdout

    program = shutil.which(kind)
    if program is None:
        assert f"{kind}_complete" in made.stdout
        return
    script = tmp_path / f"completion.{kind}"
    script.write_text(made.stdout)
    read = subprocess.run([program, "-n", str(script)], capture_output=True, text=True, check=False)
    assert (read.returncode, read.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("sexton ag", ["plain,agent", "plain,agent-key"]),
        (
            "sexton s",
            [
                *("plain,server", "plain,score", "plain,scoring", "plain,schedule", "plain,session"),
                *("plain,sign-ins", "plain,serve", "plain,sign-in-link", "plain,steer", "plain,settings"),
            ],
        ),
        ("sexton agent in", ["plain,init", "plain,install"]),
        ("sexton agent list --st", ["plain,--status"]),
        ("sexton agent list --status ki", ["plain,killed"]),
    ],
)
def test_what_is_begun_is_completed(words: str, expected: list[str]) -> None:
    count = len(words.split()) - 1
    said, packages = imported(_SEXTON_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(count))

    assert said.splitlines() == expected
    assert packages & (HEAVY - CLIENT - {"sexton_actors", "sexton_storage"}) == frozenset()


def test_the_first_word_is_completed_without_importing_any_command() -> None:
    _, packages = imported(_SEXTON_COMPLETE="bash_complete", COMP_WORDS="sexton ", COMP_CWORD="1")
    assert packages & HEAVY == frozenset()


@pytest.mark.parametrize(
    "words", [("--version",), ("agent", "list", "--json"), ("agent", "flee"), ("whoami",)]
)
def test_a_command_of_the_tests_that_is_forked_says_what_one_of_its_own_says(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    shell = Shell(tmp_path, SEXTON_BASE_URL="http://127.0.0.1:9")
    forked, own = shell(*words), shell(*words, LC_ALL="C.UTF-8")

    assert (can_be_warm(shell.environment), can_be_warm({"LC_ALL": "C.UTF-8"})) == (not THOROUGH, False)
    assert (forked.returncode, forked.stdout, forked.stderr) == (own.returncode, own.stdout, own.stderr)
