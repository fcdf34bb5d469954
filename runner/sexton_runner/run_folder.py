"""Removes what a run has left on the host's disk, however it was left."""

import shutil
import subprocess
from contextlib import suppress
from pathlib import Path


def remove_folder(folder: Path) -> None:
    """Remove a folder whose runs have ended; what cannot be removed stays, and nothing is raised.

    A run may have made folders that even their owner may not enter, or nested them deeper than Python can
    follow. The system's own programs open and remove those without following a link.
    """
    with suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        for words in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
            with suppress(OSError):
                subprocess.run([*words, "--", str(folder)], check=False, capture_output=True)
