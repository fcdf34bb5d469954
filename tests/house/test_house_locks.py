"""The locks hold all that is needed, each file by its hash, and say nothing about where from."""

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import metadata

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.house.survey import ROOT

LOCKS = ["build", "runtime", "models", "otel", "parquet", "dev", "audit", "fuzz", "packages"]
PIN = re.compile(r"(?P<name>[a-z0-9-]+)(?:\[[a-z0-9,-]+\])?==(?P<version>\S+)(?: ; (?P<marker>.+))?")
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Pin:
    """One version of one package, and where it is wanted."""

    name: str
    version: Version
    marker: Marker | None
    hashes: frozenset[str]

    def applies(self, environment: dict[str, str] | None = None) -> bool:
        return self.marker is None or self.marker.evaluate(environment)


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_is_pins_with_hashes_and_nothing_else(lock: str) -> None:
    pins = read_lock(lock)

    assert pins
    assert [pin.name for pin in pins if not pin.hashes] == []


@pytest.mark.parametrize("lock", ["build", "runtime", "models", "otel", "parquet"])
def test_the_dev_lock_holds_all_of_the_other_locks(lock: str) -> None:
    dev = {(pin.name, pin.version, pin.hashes) for pin in read_lock("dev")}

    assert {(pin.name, pin.version, pin.hashes) for pin in read_lock(lock)} <= dev


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
def test_each_python_gets_one_version_of_each_package(python: str) -> None:
    environment = {"python_version": python, "python_full_version": f"{python}.0"}
    names = [pin.name for pin in read_lock("dev") if pin.applies(environment)]

    assert sorted(names) == sorted(set(names))
    assert {"quart", "quart-trio", "trio"} <= set(names)


def test_the_runtime_lock_holds_what_the_project_needs_and_what_that_needs() -> None:
    assert missing(project()["dependencies"], "runtime") == []


def test_the_lock_of_an_extra_holds_what_it_adds_and_what_that_needs() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]

    assert [missing(wanted, name) for name, wanted in extras.items()] == [[]] * len(extras)


def test_the_dev_lock_holds_what_the_checks_need_and_what_that_needs() -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]

    assert missing(groups["dev"], "dev") == []


def test_the_build_lock_holds_the_backend_and_what_it_needs() -> None:
    system = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]

    assert missing(system["requires"], "build") == []


def test_a_package_that_is_not_locked_would_be_missed() -> None:
    assert missing(["no-such-package>=1"], "dev") == ["no-such-package>=1"]
    assert missing(["trio>=9999"], "dev") == ["trio>=9999"]
    assert "click" in {name.partition(">")[0] for name in missing(project()["dependencies"], "build")}


def missing(wanted: Iterable[str], lock: str) -> list[str]:
    """List what is wanted, here, directly or by something wanted, and not met by the lock."""
    pins = {pin.name: pin for pin in read_lock(lock) if pin.applies()}
    unmet: list[str] = []
    seen: set[str] = set()
    open_ends = [Requirement(text) for text in wanted]
    while open_ends:
        requirement = open_ends.pop()
        if str(requirement) in seen:
            continue
        seen.add(str(requirement))
        pin = pins.get(canonicalize_name(requirement.name))
        if pin is None or not requirement.specifier.contains(pin.version, prereleases=True):
            unmet.append(str(requirement))
        else:
            open_ends.extend(requirements_of(requirement))
    return sorted(unmet)


def requirements_of(requirement: Requirement) -> Iterator[Requirement]:
    """Read what an installed package needs here, with the extras that are asked of it."""
    extras = requirement.extras or {""}
    for text in metadata.requires(requirement.name) or ():
        needed = Requirement(text)
        if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras):
            yield needed


def project() -> dict[str, list[str]]:
    table: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return table


@cache
def read_lock(lock: str) -> tuple[Pin, ...]:
    """Read strictly: a line of another form (an address, an option, a path) is an error."""
    text = (ROOT / "requirements" / f"{lock}.lock").read_text()
    return tuple(read_pin(entry) for entry in text.replace("\\\n", " ").splitlines())


def read_pin(entry: str) -> Pin:
    head, *hashes = re.split(r"\s+(?=--)", entry.strip())
    pin = PIN.fullmatch(head)
    if pin is None or not all(HASH.fullmatch(item) for item in hashes):
        raise ValueError(entry)
    marker = Marker(pin["marker"]) if pin["marker"] else None
    return Pin(pin["name"], Version(pin["version"]), marker, frozenset(hashes))
