"""The few files that pages load, read once."""

from collections.abc import Mapping
from importlib import resources
from typing import Final

import msgspec

_TYPES: Final = {
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".svg": b"image/svg+xml",
}


class Asset(msgspec.Struct, frozen=True):
    content_type: bytes
    body: bytes


def _load() -> Mapping[str, Asset]:
    folder = resources.files("sexton_http.pages") / "files"
    found = ((entry.name, entry.read_bytes()) for entry in folder.iterdir())
    return {name: Asset(_TYPES[name[name.rindex(".") :]], body) for name, body in found}


ASSETS: Final = _load()
