"""Puts the drawn diagrams into the pages of the documentation, in place of their source.

A diagram is drawn once, by ``scripts/diagrams.py``, and kept under the hash of its source. So the site is
built without node, a browser or a network, and a diagram that was not drawn since it changed fails the build.
"""

import hashlib
import logging
import re
from html import escape
from pathlib import Path

from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
DRAWN = ROOT / "docs" / "images" / "diagrams"
FENCE = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
PLACE = re.compile(r'<div class="diagram" data-drawn="(\w+)"(.*?)></div>')
STYLE = re.compile(r"<style>.*?</style>\s*", re.DOTALL)
"""The site's own stylesheet has what the drawings need, once."""
KINDS = {"stateDiagram-v2": "States", "sequenceDiagram": "Sequence", "flowchart": "Parts"}

log = logging.getLogger("mkdocs.hooks.diagrams")


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Leave a place for each diagram, named by the heading above it. mkdocs calls this for each page."""

    def place(found: re.Match[str]) -> str:
        source = found[1]
        if not file_of(source).is_file():
            log.warning("%s: a diagram is not drawn yet: run 'make diagrams'", page.file.src_uri)
            return found[0]
        above = HEADING.findall(markdown, 0, found.start())
        kind = KINDS.get(source.split()[0], "Diagram")
        label = escape(f"{kind}: {above[-1] if above else page.file.src_uri}", quote=True)
        return f'<div class="diagram" data-drawn="{name_of(source)}" aria-label="{label}"></div>'

    return FENCE.sub(place, markdown)


def on_post_page(output: str, **_: object) -> str:
    """Fill the places, once the text is indexed for the search. mkdocs calls this for each page."""

    def fill(found: re.Match[str]) -> str:
        drawing = STYLE.sub("", (DRAWN / f"{found[1]}.svg").read_text(encoding="utf-8"))
        return f'<div class="diagram" role="img" tabindex="0"{found[2]}>{drawing}</div>'

    return PLACE.sub(fill, output)


def sources(folder: Path = ROOT / "docs") -> list[str]:
    """The source of every diagram of the documentation."""
    pages = (path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.md")))
    return [source for page in pages for source in FENCE.findall(page)]


def name_of(source: str) -> str:
    """What a drawing is kept as, without its ending."""
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def file_of(source: str) -> Path:
    return DRAWN / f"{name_of(source)}.svg"
