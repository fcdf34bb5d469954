"""The few files that pages load, read once."""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from importlib import resources
from pathlib import PurePath
from typing import Final

import msgspec

_TYPES: Final = {
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".svg": b"image/svg+xml",
}


class Asset(msgspec.Struct, frozen=True):
    """A file; ``address`` has its hash in it, so that what a browser keeps under it never goes stale."""

    content_type: bytes
    body: bytes
    address: str


def _load() -> Iterator[tuple[str, Asset]]:
    for entry in (resources.files("sexton_http.pages") / "files").iterdir():
        body, name = entry.read_bytes(), PurePath(entry.name)
        if name.suffix not in _TYPES:
            continue
        versioned = f"{name.stem}.{sha256(body).hexdigest()[:12]}{name.suffix}"
        yield entry.name, Asset(_TYPES[name.suffix], body, f"/assets/{versioned}")


ASSETS: Final[Mapping[str, Asset]] = dict(_load())
BY_ADDRESS: Final[Mapping[str, Asset]] = {asset.address: asset for asset in ASSETS.values()}
