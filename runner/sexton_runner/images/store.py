"""The images that a runner has: a folder each, with a root and what is known of it."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

IMAGES_VARIABLE = "SEXTON_IMAGES"
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
FACTS_FILE = "image.json"
ROOT = "root"
MAX_IMAGES = 100
"""A runner tells of no more: there are two offers for each."""


class Facts(msgspec.Struct, frozen=True):
    """What was found out about an image when it was made; ``python`` is a path inside."""

    digest: str
    made_from: str
    python: str = ""
    whole: bool = True
    """False: it only adds ``/opt/sexton`` to what the host has."""


@dataclass(frozen=True, slots=True)
class Image:
    """One image of this host."""

    name: str
    root: Path
    facts: Facts

    @property
    def environment(self) -> Mapping[str, str]:
        """Give what programs need to find what was added with pip and npm."""
        added = {"PYTHONPATH": "/opt/sexton/python", "NODE_PATH": "/opt/sexton/node/lib/node_modules"}
        return {name: place for name, place in added.items() if (self.root / place.strip("/")).is_dir()}

    @property
    def path(self) -> str:
        """Give where its own programs are looked for first."""
        return "/opt/sexton/bin:/opt/sexton/python/bin:/opt/sexton/node/bin"


def default_folder(environment: Mapping[str, str]) -> Path:
    """Give the folder of images that runners and ``sexton image`` share.

    >>> default_folder({"HOME": "/me"})
    PosixPath('/me/.local/share/sexton/images')
    """
    if named := environment.get(IMAGES_VARIABLE):
        return Path(named)
    home = environment.get("HOME") or "/var/lib"
    return Path(environment.get("XDG_DATA_HOME") or f"{home}/.local/share") / "sexton" / "images"


def load(folder: Path, name: str) -> Image | None:
    """Give one image; None where there is none, or it is not complete."""
    place = folder / name
    if not NAME.fullmatch(name) or place.is_symlink():
        return None
    try:
        facts = msgspec.json.decode((place / FACTS_FILE).read_bytes(), type=Facts)
    except (OSError, msgspec.MsgspecError):
        return None
    return Image(name, place / ROOT, facts) if (place / ROOT).is_dir() else None


def all_images(folder: Path) -> list[Image]:
    """Give every complete image, by name."""
    try:
        names = sorted(each.name for each in os.scandir(folder))
    except OSError:
        return []
    return [image for name in names if (image := load(folder, name)) is not None][:MAX_IMAGES]


def find(folder: Path | None, wanted: str) -> Image | None:
    """Give the image of this name, and of this digest if one is named.

    >>> find(None, "web") is None
    True
    """
    name, _, digest = wanted.partition("@")
    image = None if folder is None else load(folder, name)
    return None if image is None or (digest and image.facts.digest != digest) else image


def offered(folder: Path) -> Iterator[str]:
    """Say which images this runner has, each by name, and by name and digest."""
    for image in all_images(folder):
        yield f"image:{image.name}"
        yield f"image:{image.name}@{image.facts.digest}"
