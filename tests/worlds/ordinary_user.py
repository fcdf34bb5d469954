"""Runs a program as a user without privileges, also when the tests are run by root."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ORDINARY = 1000


def may_lower() -> bool:
    """Tell whether the host lets this user mount, and become one that no account has."""
    words = ["unshare", "--mount", "setpriv", "--reuid", "1879048193", "--clear-groups", "/bin/true"]
    return os.geteuid() == 0 and subprocess.run(words, capture_output=True, check=False).returncode == 0


def closed_ancestor(path: Path) -> Path | None:
    """Give the topmost folder above ``path`` that others may not enter; None when all are open."""
    for folder in [*reversed(path.parents), path]:
        if folder.stat().st_mode & 0o005 != 0o005:
            return folder
    return None


def as_ordinary_user(argv: list[str], stage: Path) -> list[str]:
    """Give the words that run ``argv`` without privileges; ``stage`` is an empty folder for our use.

    Root's interpreter often lives in root's home, which nobody else may enter. In a mount namespace of its
    own the program finds the same paths under folders that it may enter.
    """
    if os.geteuid() != 0:
        return argv
    needed = {
        Path(sys.base_prefix).resolve(),
        Path(sys.prefix).resolve(),
        Path(__file__).resolve().parents[2],
    }
    closed = {path: top for path in needed if (top := closed_ancestor(path)) is not None}
    lines = ["set -e", f"mount -t tmpfs -o mode=755 tmpfs '{stage}'"]
    for number, path in enumerate(closed):
        lines += [f"mkdir '{stage}/{number}'", f"mount --rbind '{path}' '{stage}/{number}'"]
    lines += [f"mount -t tmpfs -o mode=755 tmpfs '{top}'" for top in sorted(set(closed.values()))]
    for number, path in enumerate(closed):
        lines += [f"mkdir -p '{path}'", f"mount --rbind '{stage}/{number}' '{path}'"]
    lines += [f'exec setpriv --reuid {ORDINARY} --regid {ORDINARY} --clear-groups -- "$@"']
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", "\n".join(lines), "sh", *argv]


@contextmanager
def own_folder() -> Iterator[Path]:
    """Make a folder that belongs to the ordinary user."""
    folder = Path(tempfile.mkdtemp(prefix="sexton-ordinary-"))
    try:
        if os.geteuid() == 0:
            os.chown(folder, ORDINARY, ORDINARY)
        yield folder
    finally:
        shutil.rmtree(folder)
