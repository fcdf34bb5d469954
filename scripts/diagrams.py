"""Draws the diagrams of the documentation, with a tool of JavaScript that needs no browser.

``python -m scripts.diagrams`` draws what is not drawn yet and removes what no page shows any more.
``make diagrams`` calls it, once the tool is installed.
"""

import json
import re
import shutil
import subprocess
import sys

from scripts.docs_diagrams import DRAWN, ROOT, file_of, name_of, sources

TOOLS = ROOT / "requirements" / "node"
PROGRAM = ROOT / "scripts" / "diagrams.mjs"
# The drawing is measured in a font that few have; this one is as wide, and everywhere. Nothing is fetched.
FETCHED = re.compile(r"^ *@import .*\n", re.MULTILINE)
FONT = re.compile(r"font-family: [^;]+;")
TIMEOUT_S = 120


def main() -> int:
    """Draw. The exit status is 1 where the tool is missing or cannot read a diagram."""
    wanted = sources()
    todo = {name_of(source): source for source in wanted if not file_of(source).is_file()}
    node = shutil.which("node")
    if todo and (node is None or not (TOOLS / "node_modules" / "beautiful-mermaid").is_dir()):
        sys.stderr.write("The tool is not installed: install npm, then run 'make diagrams'.\n")
        return 1
    if todo and node is not None:
        done = subprocess.run(
            [node, str(PROGRAM)],
            cwd=TOOLS,
            input=json.dumps(todo),
            stdout=subprocess.PIPE,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        if done.returncode:
            return 1
        DRAWN.mkdir(parents=True, exist_ok=True)
        for name, drawing in json.loads(done.stdout).items():
            (DRAWN / f"{name}.svg").write_text(clean(drawing), encoding="utf-8")
    shown = {name_of(source) for source in wanted}
    gone = [path for path in DRAWN.glob("*.svg") if path.stem not in shown]
    for path in gone:
        path.unlink()
    print(f"{len(todo)} drawn, {len(gone)} removed, {len(shown)} shown.")
    return 0


def clean(drawing: str) -> str:
    r"""The same, so that it asks no other host for anything.

    >>> clean("<style>\n  @import url('https://fonts.example');\n  text { font-family: 'Inter'; }")
    '<style>\n  text { font-family: Arial, Helvetica, sans-serif; }\n'
    """
    return FONT.sub("font-family: Arial, Helvetica, sans-serif;", FETCHED.sub("", drawing)).rstrip() + "\n"


if __name__ == "__main__":
    sys.exit(main())
