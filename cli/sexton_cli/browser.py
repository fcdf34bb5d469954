"""Opens a page in a browser."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping


def find_browser(environ: Mapping[str, str]) -> Callable[[str], None] | None:
    """A way to open a page; None where there is no screen to open it on.

    ``BROWSER`` may name a program and its words, with ``%s`` for the address; of several the first counts.
    """
    words = _named(environ.get("BROWSER", "").split(os.pathsep)[0]) or _usual(environ)
    if not words:
        return None
    if not any("%s" in word for word in words):
        words.append("%s")
    return lambda url: _launch([word.replace("%s", url) for word in words])


def _named(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return []


def _usual(environ: Mapping[str, str]) -> list[str]:
    if sys.platform == "darwin":
        return ["open"]
    screen = environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")
    program = shutil.which("xdg-open") if screen else None
    return [program] if program else []


def _launch(command: list[str]) -> None:
    # Nobody waits for it, and nobody hears it: the address is on the screen anyway.
    quiet = subprocess.DEVNULL
    try:
        subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
    except OSError:
        return
