"""The command runtime runs the one fenced block that SKILL.md has for it."""

import pytest

from sexton_actors.manifest.command_block import NoCommand, find_command
from sexton_actors.manifest.model import Command, Manifest
from sexton_actors.manifest.parse import ManifestRejected, parse

TRIGGER = """\
---
name: echo
runtime: command
triggers: [{type: cron, schedule: "0 0 * * *"}]
---
"""
HEAD = "---\nname: echo\ndescription: Says it.\nversion: 1.0.0\n---\n"


def test_the_command_comes_with_its_language_and_line() -> None:
    manifest = parse(HEAD + "# Echo\n\n```python\nprint('hello')\n\nprint(1)\n```\nMore.\n", TRIGGER)

    assert isinstance(manifest, Manifest)
    assert manifest.command == Command("python", "print('hello')\n\nprint(1)\n", 9)


def test_a_command_with_crlf_is_run_with_line_feeds() -> None:
    manifest = parse((HEAD + "```sh\nset -e\necho hi\n```\n").replace("\n", "\r\n"), TRIGGER)

    assert isinstance(manifest, Manifest)
    assert manifest.command == Command("sh", "set -e\necho hi\n", 7)


def test_without_a_command_the_files_are_refused_with_the_way_out() -> None:
    rejection = parse(HEAD + "Just words.\n", TRIGGER)

    assert isinstance(rejection, ManifestRejected)
    assert rejection.detail.startswith("ERR_ZOMBIE_INVALID_CONFIG: SKILL.md line 6: ")
    assert "```sh" in rejection.detail


def test_an_agent_of_the_other_runtime_may_show_as_many_blocks_as_it_likes() -> None:
    manifest = parse(HEAD + "```sh\na\n```\n```sh\nb\n```\n", TRIGGER.replace("command", "agent"))

    assert isinstance(manifest, Manifest)
    assert manifest.command is None


FOUND = [
    ("```sh\necho a\n```", "echo a\n"),
    ("~~~ sh\necho a\n~~~", "echo a\n"),
    ("````sh\n```\necho a\n````", "```\necho a\n"),
    ("```json\n{}\n```\n```sh title=run\necho a\n```", "echo a\n"),
    ("```text\n```sh\n```\n```sh\necho a\n```", "echo a\n"),
    ("  ```sh\n  echo a\n    echo b\n ```", "echo a\n  echo b\n"),
    ("```SH\necho a\n`````", "echo a\n"),
    ("`` `sh` ``\n```sh\necho a\n~~~\n    ```\n```", "echo a\n~~~\n    ```\n"),
]


@pytest.mark.parametrize(("body", "code"), FOUND)
def test_fences_are_read_as_markdown_reads_them(body: str, code: str) -> None:
    found = find_command(body, body_line=1)

    assert isinstance(found, Command)
    assert (found.language, found.code) == ("sh", code)


NOT_FOUND = [
    ("", 1, "needs a command"),
    ("    ```sh\n    a\n    ```", 1, "needs a command"),
    ("```bash\na\n```", 1, "needs a command"),
    ("```sh\na\n", 1, "not closed"),
    ("x\n```sh\na\n``", 2, "not closed"),
    ("```sh\na\n~~~", 1, "not closed"),
    ("```sh\n\n```", 2, "empty"),
    ("```sh\na\n```\n```python\nb\n```", 4, "a second"),
]


@pytest.mark.parametrize(("body", "line", "says"), NOT_FOUND)
def test_what_cannot_be_run_is_told_with_its_line(body: str, line: int, says: str) -> None:
    found = find_command(body, body_line=1)

    assert isinstance(found, NoCommand)
    assert found.line == line
    assert says in found.message
