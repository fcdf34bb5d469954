"""No type of the house is one that msgspec frees wrongly."""

import os
import subprocess
import sys

from tests.house.survey import PACKAGES, ROOT

ALL_STRUCTS = f"""
import contextlib, importlib, pkgutil, sys
import msgspec
sys.path.insert(0, {str(ROOT / "clients" / "python")!r})
for name in {[*PACKAGES, "sexton_client"]!r}:
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, name + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
made, todo = 0, [msgspec.Struct]
while todo:
    for struct in todo.pop().__subclasses__():
        todo.append(struct)
        with contextlib.suppress(TypeError, NameError):
            msgspec.json.Decoder(struct)
            made += 1
print(made)
"""
FEWEST = 300


def test_every_struct_can_be_forgotten_without_harm() -> None:
    """What it fails by is told in docs/explanation/msgspec-union-fault.md."""
    # An allocator that marks its blocks: what is freed wrongly ends the process for certain, and not by luck.
    checked = os.environ | {"PYTHONMALLOC": "debug"}
    done = subprocess.run(
        [sys.executable, "-c", ALL_STRUCTS], env=checked, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > FEWEST
