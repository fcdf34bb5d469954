"""Knows which files are the project's own, and reads them."""

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WINGS = ["engine", "storage", "actors", "http", "runner", "cli"]
PACKAGES = [f"sexton_{wing}" for wing in WINGS]

_BUILT = {".git", ".venv", "node_modules", ".cache", "site", "dist", "__pycache__"}
_BUILT_SUFFIXES = ("_cache", ".egg-info")


@cache
def project_files() -> tuple[Path, ...]:
    """Every file that belongs to the project: what git has, or would take."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode == 0:
        found = [ROOT / name for name in listing.stdout.split("\0") if name]
    else:  # an unpacked archive has no git
        found = [path for path in ROOT.rglob("*") if not any(_is_built(part) for part in _parts(path))]
    return tuple(sorted(path for path in found if path.is_file() and not path.is_symlink()))


def texts() -> Iterator[tuple[str, str]]:
    """Each file of text, as its path from the root and its content."""
    for path in project_files():
        try:
            yield relative(path), path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


@cache
def modules() -> tuple[Path, ...]:
    return tuple(path for path in project_files() if path.suffix == ".py")


@cache
def wing_modules() -> tuple[Path, ...]:
    return tuple(path for path in modules() if _parts(path)[0] in WINGS)


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _parts(path: Path) -> tuple[str, ...]:
    return path.relative_to(ROOT).parts


def _is_built(part: str) -> bool:
    return part in _BUILT or part.endswith(_BUILT_SUFFIXES)
