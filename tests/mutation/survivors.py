"""Says of each mutant that no test notices why that is well."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

FILE: Final = Path(__file__).with_name("survivors.toml")


def explained() -> dict[str, dict[str, str]]:
    """The reasons, by module and by the mutant's name."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))
