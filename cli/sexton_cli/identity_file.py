"""Reads the file that says which identity providers and issuers a server trusts."""

import os
import stat
from pathlib import Path
from typing import Final

from sexton_cli.exits import CONFIG, StartupFault
from sexton_http.identity.settings import IdentityMistake, IdentitySettings, read_identity

IDENTITY_FILE: Final = "identity.toml"
"""In the data folder, where no other is named."""
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def load_identity(path: Path | None, data: Path) -> IdentitySettings:
    """Read the operator's file; None means the data folder's, if there is one. Raises StartupFault."""
    file = data / IDENTITY_FILE if path is None else path
    if path is None and not file.exists():
        return IdentitySettings()
    try:
        settings = read_identity(file.read_text(encoding="utf-8"), os.environ)
        mode = file.stat().st_mode
    except (OSError, UnicodeDecodeError) as fault:
        raise _fault(f"{file} cannot be read: {fault}", "Give another with --identity") from fault
    except IdentityMistake as mistake:
        raise _fault(f"{file}: {mistake}", "Fix the file") from mistake
    if settings.holds_secrets and mode & _OTHERS:
        raise _fault(f"{file} holds a secret and others can read it", f"chmod 600 {file}")
    return settings


def _fault(what: str, way_out: str) -> StartupFault:
    return StartupFault("UZ-STARTUP-002", what, way_out, CONFIG)
