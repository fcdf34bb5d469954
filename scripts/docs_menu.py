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
    for page in sorted(pages, key=index_first):
        folders[str(PurePosixPath(page).parent)].append(page)
    home, *rest = folders.pop(".")
    sections = [{SECTIONS[folder]: inside} for folder, inside in folders.items() if inside]
    return [home, *sections, *rest]


def index_first(page: str) -> tuple[bool, str]:
    return PurePosixPath(page).name != INDEX, page
