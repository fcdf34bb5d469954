"""Makes an image from a recipe, beside the others, and shows it only when it is whole."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from sexton_runner.images.oci_layout import BadLayout, unpack
from sexton_runner.images.store import FACTS_FILE, NAME, ROOT, Facts, Image, load
from sexton_runner.images.tree import BadTree, Tree, digest_of, leave_out_specials

NEEDED = ("usr/bin/nice", "usr/bin/prlimit", "bin/sh")
"""What starts a command inside; in Debian of coreutils, util-linux and dash."""
PYTHONS = ("usr/bin/python3", "usr/local/bin/python3")
ADDED = "opt/sexton/python"
ADDED_BY_NPM = "opt/sexton/node"
SUITE = re.compile(r"[a-z][a-z0-9-]{0,31}")
PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]{0,127}(?:=[A-Za-z0-9.+:~-]{1,128})?")
PINNED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?:\[[A-Za-z0-9,._-]+\])?==[A-Za-z0-9.!+_-]+")
OF_NPM = re.compile(r"(?:@[a-z0-9][a-z0-9._-]*/)?[a-z0-9][a-z0-9._-]*@[0-9][A-Za-z0-9.+-]*")
NODES = ("usr/bin/node", "usr/local/bin/node")
ALWAYS = ("ca-certificates", "python3", "util-linux")
Run = Callable[[Sequence[str]], None]


class CannotBuild(Exception):
    """The image cannot be made; the text says why, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What an image is made of.

    ``base`` is ``host``, ``debian:SUITE`` or ``oci:FOLDER[:NAME]``. ``pip`` are requirements with a version
    each, ``requirements`` a file of pip's with a hash each, ``npm`` packages of npm's with a version each.
    """

    base: str
    apt: tuple[str, ...] = ()
    pip: tuple[str, ...] = ()
    requirements: Path | None = None
    npm: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        kind = self.base.partition(":")[0]
        if kind not in ("host", "debian", "oci"):
            raise CannotBuild(f"--from is host, debian:SUITE or oci:FOLDER[:NAME], not {self.base!r}")
        if self.apt and kind != "debian":
            raise CannotBuild("packages of apt need --from debian:SUITE; other roots are taken as they are")
        if bad := [each for each in self.apt if not PACKAGE.fullmatch(each)]:
            raise CannotBuild(f"{bad[0]!r} is no name of a Debian package")
        if bad := [each for each in self.pip if not PINNED.fullmatch(each)]:
            raise CannotBuild(f"{bad[0]!r} has no version: write NAME==VERSION, or give a file with hashes")
        if bad := [each for each in self.npm if not OF_NPM.fullmatch(each)]:
            raise CannotBuild(f"{bad[0]!r} is no package of npm with a version: write NAME@1.2.3")


@dataclass(slots=True)
class Built:
    """An image that was made, and what of its parts was left out."""

    image: Image
    left_out: list[str] = field(default_factory=list)


def run_program(words: Sequence[str]) -> None:
    """Run one program that an image is made with, and show what it says; raises ``CannotBuild``."""
    done = subprocess.run(list(words), check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise CannotBuild(f"{words[0]} ended with status {done.returncode}; what it said stands above")


def build(folder: Path, name: str, recipe: Recipe, *, run: Run = run_program) -> Built:
    """Make an image, in place of the one of this name; raises ``CannotBuild``, having changed nothing."""
    if not NAME.fullmatch(name):
        raise CannotBuild(f"{name!r} is no name of an image: up to 64 of a to z, 0 to 9, '.', '_' and '-'")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".new-", dir=folder) as draft:
        place = Path(draft) / name
        root = place / ROOT
        root.mkdir(parents=True)
        left_out = _base(recipe, root, run)
        python = _check(root) if recipe.base != "host" else ""
        if recipe.pip or recipe.requirements is not None:
            _add_packages(recipe, root, python, run)
        if recipe.npm:
            _add_node_packages(recipe, root, run)
        root.chmod(0o755)
        place.chmod(0o755)
        facts = Facts(digest_of(root), recipe.base, python, whole=recipe.base != "host")
        (place / FACTS_FILE).write_bytes(msgspec.json.encode(facts))
        # A run that has the old one goes on with it: what is mounted stays, whatever its folder is called.
        if (folder / name).exists():
            (folder / name).rename(Path(draft) / "old")
        place.rename(folder / name)
    image = load(folder, name)
    if image is None:
        raise CannotBuild(f"{folder / name} cannot be read again")
    return Built(image, left_out)


def _base(recipe: Recipe, root: Path, run: Run) -> list[str]:
    kind, _, rest = recipe.base.partition(":")
    if kind == "oci":
        layout, _, wanted = rest.partition(":")
        try:
            return unpack(Path(layout), wanted, root).left_out
        except BadLayout as fault:
            raise CannotBuild(str(fault)) from fault
    if kind == "debian":
        run(debian_words(rest, recipe.apt, root))
        return leave_out_specials(root)
    return []


def debian_words(suite: str, packages: Sequence[str], root: Path) -> list[str]:
    """Give the words that fetch a Debian of this suite; raises ``CannotBuild`` where nothing here can."""
    if not SUITE.fullmatch(suite):
        raise CannotBuild(f"{suite!r} is no suite of Debian, such as bookworm")
    wanted = ",".join(dict.fromkeys((*ALWAYS, *packages)))
    if found := shutil.which("mmdebstrap"):
        return [found, "--variant=minbase", "--format=directory", f"--include={wanted}", suite, str(root)]
    if (found := shutil.which("debootstrap")) and os.geteuid() == 0:
        return [found, "--variant=minbase", f"--include={wanted}", suite, str(root)]
    raise CannotBuild(
        "to make a Debian, install mmdebstrap, or as root debootstrap; or take one from elsewhere as an OCI"
        " layout: 'skopeo copy docker://debian:bookworm oci:debian:bookworm', then --from oci:debian:bookworm"
    )


def _check(root: Path) -> str:
    """Give the Python of a whole root; raises ``CannotBuild`` for one in which no command could begin."""
    tree = Tree(root)

    def has(name: str) -> bool:
        found = tree.resolve(name.split("/"))
        return found is not None and found.is_file()

    try:
        missing = [name for name in NEEDED if not has(name)]
        pythons = [name for name in PYTHONS if has(name)]
    except BadTree as fault:
        raise CannotBuild(str(fault)) from fault
    if missing or not pythons:
        lacks = ", ".join(f"/{name}" for name in (*missing, *(() if pythons else ("usr/bin/python3",))))
        raise CannotBuild(
            f"the root lacks {lacks}: it needs coreutils, util-linux and python3 (3.9 or newer)"
        )
    return f"/{pythons[0]}"


def _add_packages(recipe: Recipe, root: Path, python: str, run: Run) -> None:
    Tree(root).folder(ADDED.split("/")[:-1])
    words = [sys.executable, "-m", "pip", "install", "--target", str(root / ADDED), "--no-compile"]
    # What is built from source would run here, and not in a sandbox.
    words += ["--only-binary=:all:", "--disable-pip-version-check"]
    if python:
        words += ["--implementation=cp", f"--python-version={_version(root, python)}"]
    if recipe.requirements is not None:
        words += ["--require-hashes", "-r", str(recipe.requirements)]
    run([*words, *recipe.pip])


def _add_node_packages(recipe: Recipe, root: Path, run: Run) -> None:
    tree = Tree(root)
    if recipe.base != "host" and not any(tree.resolve(name.split("/")) for name in NODES):
        raise CannotBuild("packages of npm need node in the root: with debian:SUITE, add --apt nodejs")
    if (npm := shutil.which("npm")) is None:
        raise CannotBuild("npm is not installed here (Debian and Ubuntu: apt-get install npm)")
    tree.folder(ADDED_BY_NPM.split("/")[:-1])
    # Scripts of packages would run here, and not in a sandbox.
    words = [npm, "install", "--global", "--prefix", str(root / ADDED_BY_NPM), "--ignore-scripts"]
    run([*words, "--no-audit", "--no-fund", *recipe.npm])


def _version(root: Path, python: str) -> str:
    real = Tree(root).resolve(python.strip("/").split("/"))
    found = re.fullmatch(r"python(3\.[0-9]{1,2})", "" if real is None else real.name)
    if found is None:
        raise CannotBuild(f"which version {python} is does not show in its name, so pip cannot choose for it")
    return found[1]
