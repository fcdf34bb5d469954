"""Has the search of the built site work from a folder too, and colours code, both without a network.

A page that was opened from a folder may neither start a worker nor read a file, but it may load a script: so
the index is written as one, beside the library that reads it.
"""

import re
import shutil
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.contrib import search
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from pygments.formatters import HtmlFormatter

LIGHT, DARK = "friendly", "github-dark"
LIBRARY = Path(search.__file__).parent / "templates" / "search" / "lunr.js"
BLOCK = ".codehilite"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the colours of code. mkdocs calls this once it has found the pages."""
    files.append(File.generated(config, "stylesheets/code.css", content=colours()))
    return files


def colours() -> str:
    """A stylesheet for light and for dark.

    >>> colours().count("@media")
    1
    """
    light, dark = (rules(style) for style in (LIGHT, DARK))
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"


def rules(style: str) -> str:
    made = HtmlFormatter(style=style).get_style_defs(BLOCK)
    return "\n".join(line for line in made.splitlines() if line.startswith(BLOCK))


@event_priority(-100)
def on_post_build(config: MkDocsConfig) -> None:
    """Write the index as a script. mkdocs calls this last, after the plugin that has made the index."""
    folder = Path(config.site_dir) / "search"
    index = (folder / "search_index.json").read_text(encoding="utf-8")
    # Two characters that JSON allows in a text, and older JavaScript does not.
    index = re.sub("[\u2028\u2029]", " ", index)
    (folder / "search_index.js").write_text(f"var searchIndex = {index};\n", encoding="utf-8")
    shutil.copy(LIBRARY, folder / LIBRARY.name)
