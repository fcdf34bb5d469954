"""Reads an agent's folder, and says what is wrong with its files before a server does."""

import os
from pathlib import Path
from typing import Any, Final

from sexton_actors.manifest.parse import Reading, read
from sexton_actors.manifest.problems import SKILL_FILE, TRIGGER_FILE, ManifestRejected
from sexton_cli.exits import FAILED, USAGE, Fault
from sexton_cli.runner_environment import surroundings

MAX_READ_BYTES: Final = 128 * 1024
"""More than a file may have, so that one that is too long is told its size's bound."""


class Files:
    """Both files of one folder. Raises Fault when they cannot be read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source = _read(folder / SKILL_FILE)
        self.trigger = _read(folder / TRIGGER_FILE)

    def __repr__(self) -> str:
        return f"<Files of {self.folder}>"

    def check(self) -> Reading | ManifestRejected:
        """Offline, and by the very rules of the server of this version."""
        return read(self.source, self.trigger, surroundings(os.environ))

    def checked(self) -> Reading:
        """As ``check``; raises Fault with the first problem."""
        found = self.check()
        if isinstance(found, Reading):
            return found
        way_out = f"Fix it; 'sexton agent check {self.folder}' lists everything that has to be fixed."
        raise Fault(found.detail, way_out, status=FAILED, code=found.code)

    def body(self) -> dict[str, Any]:
        """As the server takes them."""
        return {"source_markdown": self.source, "trigger_markdown": self.trigger}


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_READ_BYTES)
    except OSError as fault:
        way_out = (
            f"An agent is a folder with {SKILL_FILE} and {TRIGGER_FILE};"
            f" 'sexton agent init {path.parent.name or 'NAME'} --runtime command' writes one."
        )
        raise Fault(f"{path}: {fault.strerror}", way_out, status=USAGE) from fault
    try:
        return raw.decode()
    except UnicodeDecodeError as fault:
        line = raw.count(b"\n", 0, fault.start) + 1
        raise Fault(f"{path} line {line}: not UTF-8", "Save the file as UTF-8.", status=FAILED) from fault
