"""Makes a page for each error code, and has every code that a page names lead to its own."""

import re

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

from sexton_http.describe.error_pages import error_page
from sexton_http.problems import CODES

FOLDER = "reference/errors"
NAMED = re.compile(r"(?<![\[`\w])`(UZ-[A-Z0-9]+-[0-9]{3})`(?![\]`])")
FENCES = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, which stand in no menu: there are many, and the table of codes leads to them."""
    for path, text in pages().items():
        files.append(File.generated(config, path, content=text, inclusion=InclusionLevel.NOT_IN_NAV))
    return files


def pages() -> dict[str, str]:
    """Each page as Markdown, by its path."""
    return {f"{FOLDER}/{row.code}.md": error_page(row) for row in CODES.values()}


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Make links of codes. mkdocs calls this for each page."""
    here = page.file.src_uri
    parts = FENCES.split(markdown)
    parts[::2] = [link_codes(part, here) for part in parts[::2]]
    return "".join(parts)


def link_codes(text: str, here: str) -> str:
    """Text outside of fences, with its codes as links; headings and a code's own page stay as they are.

    >>> link_codes("See `UZ-REQ-001`, `UZ-NO-001`.", "how-to/x.md")
    'See [`UZ-REQ-001`](../reference/errors/UZ-REQ-001.md), `UZ-NO-001`.'
    """
    up = "../" * here.count("/")

    def link(found: re.Match[str]) -> str:
        code = found[1]
        if code not in CODES or here == f"{FOLDER}/{code}.md":
            return found[0]
        return f"[{found[0]}]({up}{FOLDER}/{code}.md)"

    return "\n".join(line if line.startswith("#") else NAMED.sub(link, line) for line in text.split("\n"))
