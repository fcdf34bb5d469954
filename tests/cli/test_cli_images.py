"""``sexton image``: made, listed, checked and removed, over the command itself."""

from pathlib import Path

from click.testing import CliRunner, Result

from sexton_cli.commands.image import image
from sexton_cli.exits import Fault
from tests.worlds.images import layer, small_root, write_layout


def sexton_image(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(image, ["--images", str(folder), *words])


def test_an_image_is_made_listed_checked_and_removed(tmp_path: Path) -> None:
    layout = write_layout(tmp_path / "layout", [layer(small_root("one"))])
    recipe = tmp_path / "image.yaml"
    recipe.write_text(f"from: oci:{layout}:test\n")
    folder = tmp_path / "images"
    made = sexton_image(folder, "build", "small", "--file", str(recipe))
    assert made.exit_code == 0, made.output

    name = made.stdout.strip()
    assert name.startswith("small@sha256:")
    assert sexton_image(folder, "list").stdout == f"{name}  from oci:{layout}:test\n"
    assert sexton_image(folder, "check", "small").stdout == f"{name} is whole\n"

    (folder / "small" / "root" / "etc" / "marker").write_text("two")
    changed = sexton_image(folder, "check", "small")
    assert isinstance(changed.exception, Fault)
    assert "its digest differs" in str(changed.exception)

    assert sexton_image(folder, "remove", "small").exit_code == 0
    assert sexton_image(folder, "list").stdout == ""
    assert isinstance(sexton_image(folder, "remove", "small").exception, Fault)


def test_a_recipe_with_other_keys_is_refused(tmp_path: Path) -> None:
    recipe = tmp_path / "image.yaml"
    for text in ("from: [host]", "run: make", "- host", "apt: git", "from: &a host\n\t"):
        recipe.write_text(text)
        refused = sexton_image(tmp_path / "images", "build", "web", "--file", str(recipe))

        assert isinstance(refused.exception, Fault), text

    assert not (tmp_path / "images").exists()
