"""What starts Sexton elsewhere names files, options and variables that there are."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from sexton_actors.exposition import ANY_RUNNER
from tests.house.survey import ROOT

COMPOSE = ROOT / "compose.yaml"
CONTAINERFILE = ROOT / "Containerfile"
CHART = ROOT / "charts" / "sexton"
UNITS = sorted((ROOT / "systemd").glob("*.service"))
PACKAGES = [COMPOSE, CONTAINERFILE, *UNITS, *sorted(CHART.glob("templates/*.yaml"))]
OPTION = re.compile(r"(?:^| |\[|- )(--[a-z][a-z-]+)\b")
VARIABLE = re.compile(r"\bSEXTON_[A-Z_]+\b")
OF_OTHERS = frozenset(
    {
        "--build",
        "--config",
        "--directory",
        "--from",
        "--group",
        "--home-dir",
        "--interval",
        "--mode",
        "--no-build-isolation",
        "--no-cache-dir",
        "--no-create-home",
        "--no-deps",
        "--no-index",
        "--no-install-recommends",
        "--owner",
        "--quiet",
        "--require-hashes",
        "--shell",
        "--storage",
        "--to",
        "--uid",
        "--user-group",
        "--wait",
        "--yes",
    }
)
"""Options of pip, apt, useradd, install, Caddy, Prometheus and compose."""


def reference() -> str:
    """All that is said of options and variables."""
    pages = [ROOT / "docs" / "reference" / name for name in ("cli.md", "runner.md", "http.md", "metrics.md")]
    guides = (ROOT / "docs" / "how-to").glob("*.md")
    return "\n".join(page.read_text() for page in (*pages, *guides) if page.name != "run-in-containers.md")


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_a_package_uses_options_and_variables_that_there_are(package: Path) -> None:
    text, known = package.read_text(), reference()
    options = set(OPTION.findall(text)) - OF_OTHERS

    assert sorted(word for word in options if f"{word}" not in known) == []
    assert sorted(name for name in set(VARIABLE.findall(text)) if name not in known) == []


def test_the_image_has_what_the_locks_say() -> None:
    text = CONTAINERFILE.read_text()
    locks = set(re.findall(r"requirements/\w+\.lock", text))

    assert {"requirements/runtime.lock", "requirements/models.lock", "requirements/otel.lock"} < locks
    assert [lock for lock in locks if not (ROOT / lock).exists()] == []
    assert re.search(r"^USER 10001:10001$", text, re.MULTILINE)

    kept = (ROOT / ".containerignore").read_text()
    wings = {folder.name for folder in ROOT.iterdir() if any(folder.glob("sexton_*/__init__.py"))}
    assert {f"!{wing}" for wing in wings - {"clients"}} <= set(kept.split())


def test_what_compose_mounts_is_there() -> None:
    compose = yaml.safe_load(COMPOSE.read_text())
    files = [ROOT / config["file"] for config in compose["configs"].values() if "file" in config]

    assert [file for file in files if not file.is_file()] == []

    for name, service in compose["services"].items():
        used = {config["source"] for config in service.get("configs", ())}
        assert used <= compose["configs"].keys(), name
        volumes = {volume.split(":")[0] for volume in service.get("volumes", ())}
        assert volumes <= compose["volumes"].keys(), name
        assert set(service.get("depends_on", ())) <= compose["services"].keys(), name


def test_the_chart_is_of_this_version_and_scales_by_a_number_that_there_is() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    query = (CHART / "templates" / "runners.yaml").read_text()

    assert chart["version"] == chart["appVersion"] == project["version"]
    assert f'default "{ANY_RUNNER}"' in query
    assert "`sexton_label_slots_wanted`" in (ROOT / "docs" / "reference" / "metrics.md").read_text()
