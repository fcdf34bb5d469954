"""The documentation leads to everything that it holds."""

import re
from pathlib import Path

import pytest
from scripts import recipe_pages

from tests.house.survey import ROOT, WINGS

DOCS = ROOT / "docs"
SECTIONS = ["Status", "Context", "Decision", "Alternatives", "Consequences"]
ADR_LINES = 90
GUIDE = DOCS / "how-to" / "work-on-the-code.md"
MANY = 20
HOW_TO = DOCS / "how-to"
WALKS = "tests/tutorials/test_tutorials.py"
"""What runs the commands behind prompts."""


def decisions() -> list[Path]:
    return sorted((DOCS / "adr").glob("[0-9]*.md"))


def test_every_decision_is_listed() -> None:
    index = (DOCS / "adr" / "index.md").read_text()
    listed = re.findall(r"^\| \[(\d{4})\]\((\S+\.md)\) \|", index, re.MULTILINE)

    assert listed == [(path.name[:4], path.name) for path in decisions()]


@pytest.mark.parametrize("path", decisions(), ids=lambda path: path.stem)
def test_a_decision_has_the_form_and_fits_on_a_page(path: Path) -> None:
    lines = path.read_text().splitlines()

    assert lines[0].startswith(f"# {path.name[:4]} ")
    assert [line[3:] for line in lines if line.startswith("## ")] == SECTIONS
    assert len(lines) <= ADR_LINES


def test_the_pages_of_recipes_say_what_their_folders_say() -> None:
    there = {path.name: path.read_text() for path in (DOCS / "recipes").glob("*.md")}

    assert recipe_pages.pages() == there, "run: python -m scripts.recipe_pages --write"


def test_links_out_of_the_readme_lead_somewhere() -> None:
    targets = re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", (ROOT / "README.md").read_text())
    local = [target for target in targets if not target.startswith(("http:", "https:"))]

    assert local
    assert [target for target in local if not (ROOT / target).exists()] == []


def test_the_readme_names_only_targets_that_make_has() -> None:
    rules = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    pages = [ROOT / "README.md", *DOCS.rglob("*.md")]
    named = {
        target
        for page in pages
        for target in re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text(), re.MULTILINE)
    }

    assert {"demo", "up", "test", "check", "bench"} <= named
    assert named <= rules


def test_the_changelog_has_a_place_for_what_is_new() -> None:
    headings = re.findall(r"^## (.+)$", (DOCS / "changelog.md").read_text(), re.MULTILINE)

    assert headings[0] == "Unreleased"


def test_the_files_that_the_guide_to_the_code_names_exist() -> None:
    top = "|".join([*WINGS, "tests"])
    named = re.findall(rf"`((?:{top})/(?:[a-z_]+/)*[\w.-]*)`", GUIDE.read_text())

    assert len(named) > MANY
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_examples_in_the_guide_to_the_code_are_in_the_code() -> None:
    examples = re.findall(
        r"^```(?:python|sql)\n(?:#|--) (\S+)\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL
    )

    assert len(examples) == GUIDE.read_text().count("```python\n") + GUIDE.read_text().count("```sql\n")
    assert [name for name, text in examples if text not in (ROOT / name).read_text()] == []


def how_tos() -> dict[str, str]:
    """Each page that the index of how-tos lists, with what it says runs the page."""
    index = (HOW_TO / "index.md").read_text()
    rows = re.findall(r"^\| \[[^]]+\]\(([\w./-]+\.md)\) \| .+ \| (.+) \|$", index, re.MULTILINE)
    assert len({name for name, _ in rows}) == len(rows)
    return dict(rows)


def test_every_how_to_says_which_test_runs_it_or_why_none_does() -> None:
    listed = how_tos()
    pages = {page.name for page in HOW_TO.glob("*.md")} - {"index.md"}
    tests = {name: re.findall(r"`(tests/[\w./-]+)`", runs) for name, runs in listed.items()}

    assert sorted(pages - listed.keys()) == [], "docs/how-to/index.md lacks a row for these"
    assert [name for name, runs in listed.items() if not (tests[name] or runs.startswith("not run: "))] == []
    assert [test for named in tests.values() for test in named if not (ROOT / test).is_file()] == []


def test_a_how_to_whose_commands_are_run_has_commands_behind_prompts() -> None:
    prompts = {page.name for page in HOW_TO.glob("*.md") if "```console\n$ " in page.read_text()}

    walked = {name for name, runs in how_tos().items() if runs == f"`{WALKS}`" and "/" not in name}

    assert walked
    assert walked <= prompts


def test_each_symptom_has_a_command_that_shows_it_and_a_way_out() -> None:
    _, *symptoms = re.split(r"^## ", (HOW_TO / "troubleshoot.md").read_text(), flags=re.MULTILINE)
    parts = {text.partition("\n")[0]: re.split(r"^```.*$", text, flags=re.MULTILINE) for text in symptoms}

    assert len(parts) > MANY
    assert [name for name, found in parts.items() if len(found) < len(("", "command", "way out"))] == []
    assert [name for name, found in parts.items() if not found[-1].strip()] == []
