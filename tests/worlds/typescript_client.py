"""The TypeScript client as its users have it: built, packed and installed, once for all tests of a run."""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
SOURCES: Final = ROOT / "clients" / "typescript"
COMPILER: Final = str(ROOT / "requirements" / "node" / "node_modules" / ".bin" / "tsc")
INSTALLED: Final = Path("node_modules") / "@sexton" / "client"


def need_node() -> str:
    """The path of node; a test is passed over where it, or what builds the client, is not installed."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None or not Path(COMPILER).exists():
        pytest.skip("the TypeScript client cannot be built; `make node` installs its compiler where npm is")
    return node


def install_client(factory: pytest.TempPathFactory) -> Path:
    """A folder in which programs may import ``@sexton/client``."""
    need_node()
    own = factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    folder = shared / "typescript"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / INSTALLED).exists():
            _build(folder)
    return folder


def _build(folder: Path) -> None:
    package = folder / "built"
    # `make clients` looks at the types; here they would take longer than all else.
    untyped = ["--noCheck", "--declaration", "false", "--lib", "es5"]
    built = [COMPILER, "--project", str(SOURCES), *untyped, "--outDir", str(package / "dist")]
    done = subprocess.run(built, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    for name in ("package.json", "README.md"):
        shutil.copy(SOURCES / name, package)
    subprocess.run(["npm", "pack", "--silent"], cwd=package, check=True, capture_output=True)
    [packed] = package.glob("*.tgz")
    place = folder / INSTALLED
    place.parent.mkdir(parents=True)
    subprocess.run(["tar", "-xzf", packed, "-C", folder], check=True)
    (folder / "package").rename(place)
