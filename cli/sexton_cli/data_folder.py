"""Keeps what other commands on the machine need in the data folder: API key and address."""

import os
from pathlib import Path

DATA_VARIABLE = "SEXTON_DATA"
KEY_FILE = "api-key"
ADDRESS_FILE = "address"


def default_data() -> Path:
    """Where a user's programs keep their state, by the XDG convention."""
    return Path.home() / ".local" / "share" / "sexton"


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


def keep_address(data: Path, base_url: str) -> None:
    """Where the server of this folder answers."""
    (data / ADDRESS_FILE).write_text(f"{base_url}\n", encoding="utf-8")


def kept_address(data: Path) -> str | None:
    """None when no server has run on the folder."""
    try:
        return (data / ADDRESS_FILE).read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None
