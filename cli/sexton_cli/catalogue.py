"""Reads the catalogue of models and prices from a file, which an operator may replace."""

from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final

import msgspec

from sexton_actors.catalogue import Catalogue, Model
from sexton_cli.exits import CONFIG, StartupFault

SHIPPED: Final = "catalogue.json"
CATALOGUE_FILE: Final = "catalogue.json"
"""In the data folder, where no other is named."""
RATE_MAX: Final = 10**12
"""A thousand dollars for a million tokens: above it a cost could leave its column."""

Name = Annotated[str, msgspec.Meta(pattern=r"^[!-~]{1,128}$")]
Rate = Annotated[int, msgspec.Meta(ge=0, le=RATE_MAX)]


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: Name
    provider: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,31}$")]
    context_cap_tokens: Annotated[int, msgspec.Meta(ge=1, le=10**9)]
    input_nanos_per_mtok: Rate
    cached_input_nanos_per_mtok: Rate
    output_nanos_per_mtok: Rate
    cache_write_nanos_per_mtok: Rate | None = None
    """None: as any other input."""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: Annotated[str, msgspec.Meta(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
    models: list[_Row]
    source: str = ""
    """Where the prices are from, for people."""


def load_catalogue(replacement: Path | None, data: Path) -> Catalogue:
    """The operator's own file (None: that of the data folder), or the one that is shipped.

    Raises StartupFault.
    """
    file = data / CATALOGUE_FILE if replacement is None else replacement
    if replacement is None and not file.exists():
        return read_catalogue((files("sexton_cli") / SHIPPED).read_bytes())
    try:
        return read_catalogue(file.read_bytes())
    except (OSError, ValueError) as fault:
        what, way_out = f"{file}: {fault}", "Fix the file, or give another with --catalogue"
        raise StartupFault("UZ-STARTUP-002", what, way_out, CONFIG) from fault


def read_catalogue(raw: bytes) -> Catalogue:
    """Raises ValueError that says where the mistake is."""
    file = msgspec.json.decode(raw, type=_File)
    seen: set[str] = set()
    for row in file.models:
        if row.id in seen:
            raise ValueError(f"the model {row.id} stands there twice")
        seen.add(row.id)
    models = [Model(**msgspec.structs.asdict(row)) for row in file.models]
    return Catalogue(file.version, models)
