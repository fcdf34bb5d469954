"""Which part of the instructions is the program."""

import pytest

from sexton_runner.code_blocks import Block, first_runnable


def test_the_first_sh_or_python_block_is_the_program() -> None:
    text = "# Do\n\n```yaml\na: 1\n```\n\n```python\nprint(1)\n```\n\n```sh\necho 2\n```\n"
    assert first_runnable(text) == Block("python", "print(1)\n")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no fence",
        "```\necho\n```",
        "```bash\necho\n```",
        "```shell\necho\n```",
        "    ```sh\n    echo\n    ```",
    ],
)
def test_text_without_a_sh_or_python_block_holds_no_program(text: str) -> None:
    assert first_runnable(text) is None


def test_a_block_that_is_never_closed_is_no_program() -> None:
    assert first_runnable("```sh\nrm -rf /\n") is None


def test_a_fence_within_a_longer_fence_is_part_of_the_text() -> None:
    assert first_runnable("````text\n```sh\nnot me\n```\n````\n```sh\nme\n```\n") == Block("sh", "me\n")
    assert first_runnable("~~~sh\necho '```'\n```\n~~~\n") == Block("sh", "echo '```'\n```\n")


def test_a_block_keeps_its_own_indentation_and_loses_the_fence_s() -> None:
    assert first_runnable("  ```python\n  if 1:\n      print()\n  ```\n") == Block(
        "python", "if 1:\n    print()\n"
    )


def test_line_ends_of_other_systems_and_rare_separators_do_not_change_the_program() -> None:
    assert first_runnable("```sh\r\necho a\x0cb\u2028c\r\n```\r\n") == Block("sh", "echo a\x0cb\u2028c\n")


def test_words_after_the_language_do_not_matter() -> None:
    assert first_runnable("```sh title=run\necho\n```  \n") == Block("sh", "echo\n")
