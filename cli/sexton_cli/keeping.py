"""Keeps the first API key in the data folder, so that a later start on the same machine can show it again."""

import os
from pathlib import Path

KEY_FILE = "api-key"


def keep_api_key(data: Path, made: str | None) -> str | None:
    """Write a key that was just made (mode 0600); give the one that is kept, None without one."""
    path = data / KEY_FILE
    if made is not None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{made}\n")
            file.flush()
            os.fsync(file.fileno())
        return made
    try:
        return path.read_text(encoding="ascii").strip() or None
    except OSError:
        return None
