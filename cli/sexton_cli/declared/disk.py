"""Reads the files of a folder that somebody else may have written: bounded, and never outside of it."""

import os
import stat
from pathlib import Path
from typing import Final

from sexton_actors.manifest.problems import SKILL_FILE, TRIGGER_FILE, Problems

AGENTS: Final = "agents"
MAX_AGENTS: Final = 1_000
MAX_ENTRIES: Final = 4_000
"""Names that are looked at in one folder."""


class Wrong(Exception):
    """Why a file is not read; the text is for its author."""


def read_text(root: Path, path: Path, most: int) -> str:
    """The text of a plain file below the root, exactly as it stands there. Raises Wrong."""
    real = inside(root, path)
    try:
        if not stat.S_ISREG(real.stat().st_mode):
            raise Wrong("is no plain file")
        with real.open("rb") as file:
            raw = file.read(most + 1)
    except OSError as fault:
        raise Wrong(fault.strerror or "cannot be read") from fault
    if len(raw) > most:
        raise Wrong(f"has more than {most:,} bytes")
    try:
        return raw.decode()
    except UnicodeDecodeError as fault:
        line = raw.count(b"\n", 0, fault.start) + 1
        raise Wrong(f"is not UTF-8 (line {line})") from None


def inside(root: Path, path: Path) -> Path:
    """Where a path leads, links followed. Raises Wrong where that is outside of the root, or nowhere."""
    try:
        real = path.resolve(strict=True)
    except FileNotFoundError:
        raise Wrong("is missing") from None
    except (OSError, RuntimeError):
        raise Wrong("leads nowhere") from None
    if not real.is_relative_to(root.resolve()):
        raise Wrong("is a link out of the folder")
    return real


def agent_folders(root: Path, folder: Path, problems: Problems) -> list[str]:
    """The names of the folders below ``agents``, sorted; what is no folder there is passed over."""
    place = folder / AGENTS
    if not place.exists() and not place.is_symlink():
        return []
    try:
        inside(root, place)
        names = _folders(place)
    except Wrong as wrong:
        problems.add(1, "", f"{AGENTS}: {wrong}")
        return []
    except OSError as fault:
        problems.add(1, "", f"{AGENTS}: {fault.strerror}")
        return []
    by_case: dict[str, str] = {}
    for name in names:
        other = by_case.setdefault(name.lower(), name)
        if other != name:
            problems.add(
                1, "", f"{AGENTS}/{name} differs from {AGENTS}/{other} by the case of its letters only"
            )
    return names


def _folders(place: Path) -> list[str]:
    names = []
    with os.scandir(place) as entries:
        for number, entry in enumerate(entries):
            if number == MAX_ENTRIES:
                raise Wrong(f"holds more than {MAX_ENTRIES:,} entries")
            if entry.is_dir() and not entry.name.startswith("."):
                names.append(entry.name)
    if len(names) > MAX_AGENTS:
        raise Wrong(f"holds more than {MAX_AGENTS:,} agents")
    return sorted(names)


def agent_files(folder: Path, name: str) -> tuple[Path, Path]:
    """Where the two files of an agent stand."""
    return folder / AGENTS / name / SKILL_FILE, folder / AGENTS / name / TRIGGER_FILE
