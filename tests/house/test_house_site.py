"""The documentation has a page for each error code, and shows each diagram drawn."""

import logging
import re
from types import SimpleNamespace
from typing import Any, cast

import pytest
from click import Context, Group
from scripts import docs_diagrams, docs_errors
from scripts.docs_menu import TUTORIALS

from sexton_cli.main import cli
from sexton_http.describe.error_pages import READ_MORE, answered_by
from sexton_http.problems import CODES
from sexton_http.routes.table import OPERATIONS
from tests.house.survey import ROOT

COMMAND = re.compile(r"`(sexton [^`]+)`")
LEAST_CHARS = 40
PICTURES = 2
PICTURE_BYTES = 150_000


def test_each_code_has_a_page_with_its_cause_the_way_out_and_an_example() -> None:
    pages = docs_errors.pages()

    assert set(pages) == {f"reference/errors/{code}.md" for code in CODES}

    for row in CODES.values():
        text = pages[f"reference/errors/{row.code}.md"]

        assert f"\n## What it means\n\n{row.cause}\n" in text, row.code
        assert f"\n## What to do\n\n{row.way_out}\n" in text, row.code
        assert "\n## An example" in text, row.code


def test_each_way_out_says_more_than_the_cause_and_is_a_code_s_own() -> None:
    ways_out = [row.way_out for row in CODES.values()]

    assert len(set(ways_out)) == len(ways_out)
    assert [row.code for row in CODES.values() if len(row.way_out) < LEAST_CHARS] == []
    assert [row.code for row in CODES.values() if row.way_out == row.cause or not row.detail] == []


def test_ways_out_name_commands_and_options_that_exist() -> None:
    for row in CODES.values():
        for command in COMMAND.findall(row.way_out):
            found, options = resolve(command.split()[1:])
            named = {word for word in command.split() if word.startswith("--")}

            assert found, f"{row.code}: there is no command '{command}'"
            assert named <= options, f"{row.code}: '{command}' has no such option"


def test_a_page_lists_the_routes_that_declare_its_code_and_leads_on() -> None:
    folder = ROOT / "docs" / "reference"
    for row in CODES.values():
        routes = [route for route in OPERATIONS if row.code in route.all_codes()]
        lines = answered_by(row)

        assert bool(lines) == bool(routes), row.code
        assert sum(line.startswith("- ") for line in lines) in {0, len(routes)}, row.code

    for _, path in READ_MORE.values():
        assert (folder / path.partition("#")[0]).is_file(), path


def test_every_diagram_is_drawn_as_its_source_is_now_and_none_is_left_over() -> None:
    shown = {docs_diagrams.name_of(source) for source in docs_diagrams.sources()}
    drawn = {path.stem for path in docs_diagrams.DRAWN.glob("*.svg")}

    assert drawn == shown, "run 'make diagrams'"

    for path in docs_diagrams.DRAWN.glob("*.svg"):
        drawing = path.read_text()

        assert "@import" not in drawing, path
        assert "://" not in drawing.replace("http://www.w3.org/2000/svg", ""), path


def test_a_diagram_that_nobody_has_drawn_is_a_warning_which_fails_the_build(
    caplog: pytest.LogCaptureFixture,
) -> None:
    page = cast("Any", SimpleNamespace(file=SimpleNamespace(src_uri="new.md")))
    new = "# New\n\n```mermaid\nstateDiagram-v2\n    [*] --> new\n```\n"
    old = f"# Old\n\n```mermaid\n{docs_diagrams.sources()[0]}```\n"

    with caplog.at_level(logging.WARNING, "mkdocs.hooks.diagrams"):
        assert docs_diagrams.on_page_markdown(old, page).count("data-drawn=") == 1
        assert caplog.messages == []

        docs_diagrams.on_page_markdown(new, page)
    assert caplog.messages == ["new.md: a diagram is not drawn yet: run 'make diagrams'"]

    filled = docs_diagrams.on_post_page(docs_diagrams.on_page_markdown(old, page))
    assert "<svg" in filled
    assert "mermaid" not in filled
    assert "<style" not in filled


def test_the_pictures_of_the_readme_are_small_and_ask_no_other_host_for_anything() -> None:
    named = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", (ROOT / "README.md").read_text())
    drawings = [(ROOT / name).read_text() for name in named if name.endswith(".svg")]

    assert len(named) == PICTURES
    assert all((ROOT / name).stat().st_size < PICTURE_BYTES for name in named)
    assert len(drawings) == 1
    assert "sexton agent install" in drawings[0].replace("&#160;", " ")
    assert "font-face" not in drawings[0]

    for url in re.findall(r"https?://[^\"'\s<&]+", drawings[0]):
        assert url.startswith(("http://www.w3.org/", "http://127.0.0.1:8300")), url


def test_the_site_is_built_so_that_a_warning_fails() -> None:
    recipe = re.search(r"^docs:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)

    assert recipe is not None

    (build,) = [line for line in recipe[1].splitlines() if "mkdocs build" in line]

    assert "--strict" in build
    assert "--quiet" not in build


def resolve(words: list[str]) -> tuple[bool, set[str]]:
    """Whether these words begin with a whole command, and the options that it takes."""
    command: Any = cli
    context = Context(cli)
    while isinstance(command, Group):
        name = words.pop(0) if words else ""
        command = command.get_command(context, name)
    return command is not None, {name for option in getattr(command, "params", ()) for name in option.opts}


def test_each_tutorial_has_its_place_in_the_menu() -> None:
    pages = {path.name for path in (ROOT / "docs" / "tutorial").glob("*.md")}

    assert set(TUTORIALS) == pages
