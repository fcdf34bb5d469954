"""Records the terminal that the README shows: a server, and the first commands of a newcomer.

``python -m scripts.terminal_picture docs/images/terminal.svg`` starts a server on an empty database, carries
the commands out, and draws what they printed. Nothing in the picture comes from elsewhere, and it moves only
where the reader likes that.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from io import StringIO
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

ROOT: Final = Path(__file__).resolve().parents[1]
COLUMNS: Final = 98
SEXTON: Final = Path(sys.executable).with_name("sexton")
INIT: Final = "sexton agent init scribe --runtime command"
COMMANDS: Final = (
    INIT,
    "sexton agent install scribe",
    "sexton steer scribe 'How many words are these?'",
    "sexton events list",
)
MOST_LINES: Final = 12
"""Of one command; what is between is left out, and three dots say so."""
READY_S: Final = 120
FETCHED: Final = re.compile(r"@font-face \{.*?\}\s*|<!--.*?-->\s*", re.DOTALL)
SECRET: Final = re.compile(r"\b(zap|zwh)_[\w-]+")
LINE_S: Final = 0.12
COMMAND_S: Final = 0.9


def main(path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lines = record(Path(folder))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(draw(lines), encoding="utf-8")


def record(folder: Path) -> list[str]:
    """What stands in the terminal at the end. Raises CalledProcessError where a command fails."""
    ready, data, home = folder / "ready.json", folder / "data", folder / "home"
    home.mkdir()
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("SEXTON_", "PG"))}
    environment |= {"HOME": str(home), "XDG_CONFIG_HOME": str(home), "NO_COLOR": "1", "COLUMNS": str(COLUMNS)}
    environment.pop("DATABASE_URL", None)
    up = [str(SEXTON), "up", "--data", str(data), "--port", "0", "--ready-file", str(ready)]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(up, env=environment, cwd=folder, stdout=log, stderr=log)
    try:
        key = data / "api-key"
        address = wait_for(ready, server)["base_url"]
        login = [str(SEXTON), "login", "--base-url", address]
        subprocess.run(login, env=environment, input=key.read_bytes(), capture_output=True, check=True)
        lines: list[str] = []
        for command in COMMANDS:
            words = [str(SEXTON), *shlex.split(command)[1:]]
            done = subprocess.run(
                words, env=environment, cwd=folder, capture_output=True, text=True, check=True
            )
            if command == INIT:
                (folder / "scribe" / "SKILL.md").write_text(tutorial_skill(), encoding="utf-8")
            printed = (done.stderr + done.stdout).replace(address, "http://127.0.0.1:8300")
            printed = SECRET.sub(r"\1_…", printed)
            lines += [f"$ {command}", *shortened([line for line in printed.splitlines() if line.strip()]), ""]
        return lines[:-1]
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=READY_S)


def tutorial_skill() -> str:
    """The file that the tutorial of the first agent has its reader write."""
    page = (ROOT / "docs" / "tutorial" / "your-first-agent.md").read_text(encoding="utf-8")
    found = re.search(r"^````markdown\n(.*?)^````$", page, re.MULTILINE | re.DOTALL)
    if found is None:
        raise ValueError("the tutorial shows no SKILL.md any more")
    return found[1]


def wait_for(ready: Path, server: subprocess.Popen[bytes]) -> dict[str, str]:
    until = time.monotonic() + READY_S
    while time.monotonic() < until and server.poll() is None:
        if ready.exists() and (text := ready.read_text(encoding="utf-8")):
            told: dict[str, str] = json.loads(text)
            return told
        time.sleep(0.1)
    raise TimeoutError("the server did not start")


def shortened(lines: list[str]) -> list[str]:
    """What fits, with the end, which says how it went.

    >>> shortened([str(number) for number in range(20)])[9:]
    ['…', '18', '19']
    """
    if len(lines) <= MOST_LINES:
        return lines
    return [*lines[: MOST_LINES - 3], "…", *lines[-2:]]


def draw(lines: list[str]) -> str:
    """Draw them as SVG; each line comes up after the one before, and stays."""
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True)
    for line in lines:
        style = "bold #8fd3ff" if line.startswith("$ ") else ""
        fitting = line if len(line) <= COLUMNS else f"{line[: COLUMNS - 1]}…"
        console.print(Text(fitting, style=style), soft_wrap=True)
    picture = FETCHED.sub("", console.export_svg(title="sexton", unique_id="t"))
    picture = picture.replace("font-family: Fira Code", "font-family: ui-monospace, Menlo, Consolas")
    at, rules = 0.3, ["@keyframes up { from { opacity: 0 } to { opacity: 1 } }"]
    for number, line in enumerate(lines):
        at += COMMAND_S if line.startswith("$ ") else LINE_S
        rules.append(f'[clip-path="url(#t-line-{number})"] {{ animation: up .1s {at:.2f}s both }}')
    moving = "@media (prefers-reduced-motion: no-preference) {\n" + "\n".join(rules) + "\n}\n"
    return picture.replace("</style>", f"{moving}</style>", 1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
