"""``sexton image``: the images of this machine, for the runners on it."""

import os
import shutil
from pathlib import Path
from typing import Any

import click
import yaml

from sexton_cli.commands.late_group import noun
from sexton_cli.exits import FAILED, USAGE, Fault
from sexton_runner.images.build import CannotBuild, Recipe, build
from sexton_runner.images.store import Image, all_images, default_folder, load
from sexton_runner.images.tree import digest_of

KEYS = frozenset({"from", "apt", "pip", "requirements", "npm"})
LISTS = ("apt", "pip", "npm")
MAX_FILE_BYTES = 65536


@noun()
@click.option(
    "--images",
    "folder",
    type=click.Path(path_type=Path),
    envvar="SEXTON_IMAGES",
    help="The folder of images. [default: ~/.local/share/sexton/images]",
)
@click.pass_context
def image(ctx: click.Context, folder: Path | None) -> None:
    """Make, list, check and remove the images that runs on this machine may have."""
    ctx.obj = folder or default_folder(os.environ)


@image.command("build")
@click.argument("name")
@click.option("--from", "base", help="What it is made from: host, debian:SUITE or oci:FOLDER[:NAME].")
@click.option("--apt", default="", help="Packages of Debian, with commas between.")
@click.option("--pip", default="", help="Packages of Python, NAME==VERSION, with commas between.")
@click.option(
    "--requirements",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A file of pip's with a hash for each package.",
)
@click.option("--npm", default="", help="Packages of npm, NAME@VERSION, with commas between.")
@click.option(
    "--file",
    "recipe",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A YAML file with the keys from, apt, pip, requirements and npm.",
)
@click.pass_obj
def build_image(
    folder: Path,
    *,
    name: str,
    base: str | None,
    apt: str,
    pip: str,
    requirements: Path | None,
    npm: str,
    recipe: Path | None,
) -> None:
    """Make the image NAME, in place of the one that is there; runs that have that go on with it."""
    given = {} if recipe is None else _read(recipe)
    if recipe is not None and "requirements" in given:
        requirements = requirements or recipe.parent / given["requirements"]
    try:
        built = build(
            folder,
            name,
            Recipe(
                base=base or given.get("from", "host"),
                apt=(*given.get("apt", ()), *_words(apt)),
                pip=(*given.get("pip", ()), *_words(pip)),
                requirements=requirements,
                npm=(*given.get("npm", ()), *_words(npm)),
            ),
        )
    except CannotBuild as fault:
        raise Fault(str(fault), "", status=FAILED) from fault
    for each in built.left_out:
        click.echo(f"left out: {each}", err=True)
    click.echo(f"{name}@{built.image.facts.digest}")


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for each in text.split(",") if (word := each.strip()))


def _read(file: Path) -> dict[str, Any]:
    try:
        found = yaml.safe_load(file.read_bytes()[:MAX_FILE_BYTES])
    except (OSError, yaml.YAMLError, UnicodeError) as fault:
        raise Fault(f"{file} cannot be read: {fault}", "", status=USAGE) from fault
    right = isinstance(found, dict) and found.keys() <= KEYS
    if right and all(_fits(key, value) for key, value in found.items()):
        return dict(found)
    way_out = "It has the keys from and requirements, which are text, and the lists apt, pip and npm."
    raise Fault(f"{file} is no recipe of an image", way_out, status=USAGE)


def _fits(key: str, value: object) -> bool:
    if key in LISTS:
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    return isinstance(value, str)


@image.command("list")
@click.pass_obj
def list_images(folder: Path) -> None:
    """List the images of this machine."""
    for each in all_images(folder):
        click.echo(f"{each.name}@{each.facts.digest}  from {each.facts.made_from}")


@image.command()
@click.argument("name")
@click.pass_obj
def check(folder: Path, *, name: str) -> None:
    """Compare what the image NAME holds with its digest."""
    found = _named(folder, name)
    if digest_of(found.root) != found.facts.digest:
        raise Fault(f"{name} is not what was made: its digest differs", "Make it again.", status=FAILED)
    click.echo(f"{name}@{found.facts.digest} is whole")


@image.command()
@click.argument("name")
@click.pass_obj
def remove(folder: Path, *, name: str) -> None:
    """Remove the image NAME. Events of agents that need it wait for a runner that has it."""
    shutil.rmtree(_named(folder, name).root.parent)
    click.echo(f"{name} is removed")


def _named(folder: Path, name: str) -> Image:
    found = load(folder, name)
    if found is None:
        raise Fault(
            f"there is no image {name!r} in {folder}", "'sexton image list' shows all.", status=FAILED
        )
    return found
