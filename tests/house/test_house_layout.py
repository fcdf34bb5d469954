"""The repository keeps the shape that its plan draws."""

import http
import os
import subprocess
import sys
import tomllib

import pytest

from tests.house.survey import PACKAGES, ROOT, WINGS
from tests.sharing import EARLY, TOGETHER


def test_no_folder_at_the_root_is_a_package() -> None:
    packages = sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))

    assert packages == []


def test_the_folder_http_does_not_shadow_the_standard_library() -> None:
    program = "import http, http.client, sys; sys.exit('sexton' in (http.__file__ or 'sexton'))"

    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)

    assert http.__file__ is not None


@pytest.mark.parametrize("wing", WINGS)
def test_a_wing_holds_one_typed_package_and_nothing_else(wing: str) -> None:
    inside = sorted(path.name for path in (ROOT / wing).iterdir() if path.name != "__pycache__")

    assert inside == [f"sexton_{wing}"]
    assert (ROOT / wing / f"sexton_{wing}" / "__init__.py").is_file()
    assert (ROOT / wing / f"sexton_{wing}" / "py.typed").is_file()


def test_every_tool_is_told_all_six_wings() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    tool = settings["tool"]
    folders = [f"{wing}/sexton_{wing}" for wing in WINGS]

    assert tool["hatch"]["build"]["targets"]["wheel"]["packages"] == folders
    assert tool["hatch"]["build"]["dev-mode-dirs"] == WINGS
    assert tool["ruff"]["src"] == WINGS
    assert tool["ruff"]["lint"]["isort"]["known-first-party"][: len(PACKAGES)] == PACKAGES
    assert tool["mypy"]["files"][: len(folders)] == folders
    assert tool["basedpyright"]["include"] == folders
    assert tool["importlinter"]["root_packages"] == PACKAGES


def test_tests_are_no_packages_and_their_names_differ() -> None:
    tests = ROOT / "tests"
    names = [path.name for path in tests.rglob("test_*.py")]

    assert list(tests.rglob("__init__.py")) == []
    assert sorted(names) == sorted(set(names))


def test_what_is_to_run_early_is_there() -> None:
    missing = [name for name in (*EARLY, *TOGETHER) if not (ROOT / name).exists()]

    assert missing == []
    assert len(set(EARLY)) == len(EARLY)


@pytest.mark.parametrize("script", ["scripts/make-venv", ".ci/run"])
def test_a_script_of_the_house_can_be_run(script: str) -> None:
    assert os.access(ROOT / script, os.X_OK)
    subprocess.run(["/bin/bash", "-n", ROOT / script], check=True)
