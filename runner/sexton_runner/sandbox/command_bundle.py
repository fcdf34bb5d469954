"""Puts the command server and what it imports into one file, which an interpreter in a sandbox can run."""

import functools
import io
import zipfile
from pathlib import Path

from sexton_runner.sandbox import command_logs, command_processes, command_server

SERVER = "command_server.zip"
PACKAGE = "sexton_runner/sandbox"
MODULES = (command_server, command_logs, command_processes)
MAIN = """\
import sys

from sexton_runner.sandbox.command_server import main

sys.exit(main(sys.argv[1:]))
"""


@functools.cache
def bundled() -> bytes:
    """Give the file: the modules stand in it under their own names, so they import one another as here."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as bundle:
        bundle.writestr("__main__.py", MAIN)
        for package in (PACKAGE.partition("/")[0], PACKAGE):
            bundle.writestr(f"{package}/__init__.py", "")
        for module in MODULES:
            file = Path(str(module.__file__))
            bundle.writestr(f"{PACKAGE}/{file.name}", file.read_bytes())
    return content.getvalue()
