"""Reads the catalogue of models and prices from its data file, which an operator may replace."""

from importlib.resources import files
from pathlib import Path

import msgspec

from sexton_actors.catalogue import Catalogue, Model

SHIPPED = "catalogue.json"


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: str
    models: list[Model]


def load_catalogue(replacement: Path | None = None) -> Catalogue:
    """The operator's own file, or the one that is shipped. Raises msgspec.ValidationError and OSError."""
    raw = (files("sexton_cli") / SHIPPED).read_bytes() if replacement is None else replacement.read_bytes()
    file = msgspec.json.decode(raw, type=_File)
    return Catalogue(file.version, file.models)
