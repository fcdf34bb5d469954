"""What the tiers of the sandbox differ in stands in one table, which everything else asks."""

import ast
from pathlib import Path
from typing import Any

import pytest

import sexton_runner
from sexton_runner.redact import Redactor
from sexton_runner.sandbox.jobs import Sandbox
from sexton_runner.sandbox.landlock import Landlock
from sexton_runner.sandbox.podman import Client, Podman
from sexton_runner.sandbox.registry import TIERS
from sexton_runner.sandbox.tiers import Bare, Bubblewrap, Tier
from sexton_runner.sandbox.walls import WALLS
from sexton_runner.settings import SandboxTier
from sexton_runner.tools.programs import Programs
from tests.worlds.sandbox import LIMITS

ROOT = Path(sexton_runner.__file__).parent
NAMED_BY = {
    "__main__.py": "which tier an operator may choose, and gets who chooses none",
    "settings.py": "the same",
    "doctor.py": "what this host gives the tier that is the default",
    "sandbox/walls.py": "the table",
    "sandbox/registry.py": "who makes each of them",
    "sandbox/tiers.py": "each tier's own name",
    "sandbox/landlock.py": "the same",
    "sandbox/podman.py": "the same",
}


def names_a_tier(path: Path) -> bool:
    return any(
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "SandboxTier"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    )


def test_nothing_but_the_table_asks_which_tier_it_is() -> None:
    found = {str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py") if names_a_tier(path)}

    assert found == set(NAMED_BY)


def test_each_tier_has_its_walls_and_somebody_who_makes_it() -> None:
    assert set(WALLS) == set(SandboxTier) == set(TIERS)


@pytest.mark.parametrize(
    ("tier", "stays", "reaches"),
    [
        (Bubblewrap("bwrap", ""), True, True),
        (Podman(Client("podman", "runc", Path("/srv"))), True, True),
        (Landlock("prlimit", "nice"), False, False),
        (Bare("prlimit", "env"), False, True),
    ],
)
def test_a_model_is_told_what_a_program_may_leave_running_and_reach(
    tier: Tier, stays: bool, reaches: bool
) -> None:
    sandbox = Sandbox(tier=tier, layout=None, name="x", limits=LIMITS, setpriv="setpriv")
    network: Any = type("Network", (), {"variables": ()})()
    tool_sandbox: Any = None

    programs = Programs(
        tool_sandbox=tool_sandbox,
        sandbox=sandbox,
        redactor=Redactor({}),
        network=network,
        hosts=("a.example",),
    )

    assert ("goes on for the whole event" in programs.told) is stays
    assert ("is ended with it" in programs.told) is not stays
    assert ("a.example" in programs.told) is reaches
    assert ("without network" in programs.told) is not reaches
