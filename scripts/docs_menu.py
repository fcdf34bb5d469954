"""Builds the menu of the documentation from its folders, so that no page can be left out."""

from collections.abc import Iterable
from pathlib import PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files

INDEX = "index.md"
# In the order in which a newcomer meets them. A page in any other folder is an error.
SECTIONS = {
    "tutorial": "Tutorial",
    "how-to": "How to",
    "recipes": "Recipes",
    "reference": "Reference",
    "explanation": "Explanation",
    "adr": "Decisions",
}

# The tutorials go on from one another; one that is not named here comes after these.
TUTORIALS = (
    "watch-the-demo.md",
    "your-first-agent.md",
    "your-first-webhook.md",
    "an-agent-that-opens-a-pull-request.md",
    "watch-it-work.md",
    "a-runner-on-another-machine.md",
    "your-own-runner.md",
    "from-laptop-to-production.md",
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Set the menu. mkdocs calls this once it has found the pages, before it needs the menu."""
    config.nav = menu(file.src_uri for file in files.documentation_pages())
    return files


def menu(pages: Iterable[str]) -> list[str | dict[str, list[str]]]:
    """Home, the sections, then what else is at the root. Titles are the pages' own.

    >>> menu(["glossary.md", "adr/0001-b.md", "index.md", "adr/index.md"])
    ['index.md', {'Decisions': ['adr/index.md', 'adr/0001-b.md']}, 'glossary.md']
    """
    folders: dict[str, list[str]] = {folder: [] for folder in (*SECTIONS, ".")}
    for page in sorted(pages, key=place_of):
        folders[str(PurePosixPath(page).parent)].append(page)
    home, *rest = folders.pop(".")
    sections = [{SECTIONS[folder]: inside} for folder, inside in folders.items() if inside]
    return [home, *sections, *rest]


def place_of(page: str) -> tuple[bool, int, str]:
    """An index first, then the tutorials in the order of a newcomer's first day, the rest by name.

    >>> sorted(
    ...     ["tutorial/a-b.md", "tutorial/your-first-agent.md", "tutorial/watch-the-demo.md"], key=place_of
    ... )
    ['tutorial/watch-the-demo.md', 'tutorial/your-first-agent.md', 'tutorial/a-b.md']
    """
    name = PurePosixPath(page).name
    turn = TUTORIALS.index(name) if name in TUTORIALS else len(TUTORIALS)
    return name != INDEX, turn, page
