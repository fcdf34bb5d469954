"""Builds the wheel and tries it where nothing else is installed.

The wheel must hold the six packages with all their data and the examples, and nothing else at its root,
install beside the locked dependencies, and run ``sexton --version`` from a folder that is not the repository.
Without extras all of it can be imported but the modules that need one; with them, those too.
There, where no bubblewrap is on the path, it must find the one that was installed with it. The one-line
install of the documents is tried with this wheel. The Python client has a wheel of its own, which is
installed where nothing of the server is.
"""

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {
    "sexton_engine": "engine",
    "sexton_storage": "storage",
    "sexton_actors": "actors",
    "sexton_http": "http",
    "sexton_runner": "runner",
    "sexton_cli": "cli",
}
DATA = {"sexton_cli/examples": "examples"}  # a place in the wheel, and the folder it is taken from
CLIENT = ROOT / "clients" / "python"
LOCK = ROOT / "requirements" / "runtime.lock"
EXTRAS = {
    "models": {
        "sexton_runner.providers.anthropic_api",
        "sexton_runner.providers.openai_api",
        "sexton_runner.tools.mcp_session",
    },
    "otel": {"sexton_http.outbound.otlp_messages"},
    "parquet": {"sexton_storage.archives.parquet"},
}
"""What each extra is needed for. Its lock has its name."""
EXECUTABLE = stat.S_IXUSR
IMPORT_ALL = f"""
import http.client, importlib, pkgutil
for package in {tuple(PACKAGES)}:
    for found in pkgutil.walk_packages(importlib.import_module(package).__path__, package + "."):
        try:
            found.name.endswith("__main__") or importlib.import_module(found.name)
        except ImportError:
            print(found.name)
"""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="sexton-wheel-") as name:
        folder = Path(name)
        wheel = build_wheel(folder / "dist")
        check_contents(wheel)
        wheels = fetch_locked(folder / "wheels")
        python = install_alone(wheel, wheels, folder / "venv")
        check_imports(python, folder, set().union(*EXTRAS.values()))
        told = run(python.with_name("sexton"), "--version", cwd=folder)
        for extra in EXTRAS:
            add_extra(python, wheels, extra)
        check_imports(python, folder, set())
        check_bubblewrap(python.with_name("sexton"), folder)
        check_tool(wheel, wheels, folder)
        check_client(wheels, folder, wheel.name.split("-")[1])
    version = wheel.name.split("-")[1]
    if version not in told.split():
        sys.exit(f"{wheel.name} says that it is {told.strip()!r}.")
    print(f"{wheel.name}: {told.strip()}")


def run(*command: str | Path, cwd: Path, **changes: str) -> str:
    """Run without the caller's Python settings; the answer is what the command wrote. Its failure is ours."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        command, check=True, cwd=cwd, env=environment | changes, stdout=subprocess.PIPE, text=True
    )
    return done.stdout


def check_imports(python: Path, folder: Path, missing: set[str]) -> None:
    """Import every module; those that cannot be are the ones that need what is not installed."""
    found = set(run(python, "-I", "-c", IMPORT_ALL, cwd=folder).split())
    if found != missing:
        sys.exit(f"Other modules than expected cannot be imported: {sorted(found ^ missing)}")


def add_extra(python: Path, wheels: Path, extra: str) -> None:
    """Install what the lock of an extra adds."""
    pip = (python, "-m", "pip", "--disable-pip-version-check")
    locked = ("--require-hashes", "-r", LOCK.with_name(f"{extra}.lock"))
    run(*pip, "install", "--quiet", "--no-index", "--find-links", wheels, *locked, cwd=ROOT)
    run(*pip, "check", cwd=ROOT)


def check_bubblewrap(sexton: Path, folder: Path) -> None:
    """Look for the program that shuts commands in, with nothing else of the system's within reach."""
    (folder / "bin").mkdir()
    for name in ("setpriv", "prlimit"):
        (folder / "bin" / name).symlink_to(shutil.which(name) or sys.exit(f"{name} is not installed."))
    environment = os.environ | {"PATH": str(folder / "bin")}
    # Its exit status is about this machine, which may forbid namespaces; that it is found is about the wheel.
    done = subprocess.run(
        [sexton, "runner", "doctor", "--json"],
        check=False,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    found = {one["name"]: one for one in map(json.loads, done.stdout.splitlines())}
    if found["bwrap"]["grade"] != "good" or "installed with sexton" not in found["bwrap"]["seen"]:
        sys.exit(f"The wheel does not bring bubblewrap along: {found['bwrap']}")


def check_tool(wheel: Path, wheels: Path, folder: Path) -> None:
    """Install it as the documents say, ``uv tool install``, here from the wheel and with what is locked."""
    places = {"UV_TOOL_DIR": str(folder / "tools"), "UV_TOOL_BIN_DIR": str(folder / "tool-bin")}
    # uv comes with the development environment, beside this Python.
    install = (Path(sys.executable).with_name("uv"), "tool", "install", "--quiet", "--offline", "--no-index")
    wanted = f"sexton[models] @ {wheel.as_uri()}"
    run(*install, "--python", sys.executable, "--find-links", wheels, wanted, cwd=folder, **places)
    told = run(folder / "tool-bin" / "sexton", "--version", cwd=folder)
    if not told.startswith("sexton"):
        sys.exit(f"The installed tool says {told!r}.")


def check_client(wheels: Path, folder: Path, version: str) -> None:
    """Build the client's wheel, install it with what it asks for and no more, and import it."""
    wheel = build_wheel(folder / "client-dist", CLIENT)
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    if not {"sexton_client/py.typed", "sexton_client/generated/models.py"} <= names:
        sys.exit(f"The client's wheel lacks what it needs: {sorted(names)}")
    if any(not name.startswith("sexton_client/") for name in names):
        sys.exit(f"The client's wheel holds what is not the client's: {sorted(names)}")
    venv.create(folder / "client-venv", with_pip=True)
    python = folder / "client-venv" / "bin" / "python"
    pip = (python, "-m", "pip", "--disable-pip-version-check")
    run(*pip, "install", "--quiet", "--no-index", "--find-links", wheels, wheel, cwd=ROOT)
    told = run(python, "-I", "-c", "import sexton_client; print(sexton_client.VERSION)", cwd=folder)
    if told.strip() != version:
        sys.exit(f"The client says that it is {told.strip()!r}, the product is {version!r}.")


def build_wheel(folder: Path, source: Path = ROOT) -> Path:
    """Without isolation: the build backend is the locked one, and nothing is fetched."""
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ".", cwd=source)
    (wheel,) = folder.glob("*.whl")
    return wheel


def check_contents(wheel: Path) -> None:
    """Compare the wheel with the source tree, both ways: names, and what may be executed."""
    entries = [entry for entry in zipfile.ZipFile(wheel).infolist() if not entry.is_dir()]
    inside = {
        (entry.filename, bool(entry.external_attr >> 16 & EXECUTABLE))
        for entry in entries
        if ".dist-info/" not in entry.filename
    }
    sources = {package: ROOT / wing / package for package, wing in PACKAGES.items()}
    sources |= {place: ROOT / folder for place, folder in DATA.items()}
    expected = {
        (f"{place}/{path.relative_to(source).as_posix()}", bool(path.stat().st_mode & EXECUTABLE))
        for place, source in sources.items()
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    if inside != expected:
        names = "\n  ".join(sorted({name for name, _ in inside ^ expected}))
        sys.exit(f"The wheel and the source tree differ in:\n  {names}")
    if not any(entry.filename.endswith(".dist-info/licenses/LICENSE") for entry in entries):
        sys.exit("The wheel lacks the licence.")


def fetch_locked(folder: Path) -> Path:
    """Fetch what is locked, by hash, for both ways to install; the answer is the folder."""
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    for name in (LOCK.stem, *EXTRAS):
        lock = LOCK.with_name(f"{name}.lock")
        run(*pip, "download", "--quiet", "--require-hashes", "--dest", folder, "-r", lock, cwd=ROOT)
    return folder


def install_alone(wheel: Path, wheels: Path, folder: Path) -> Path:
    """Install the locked runtime and the wheel; the answer is that environment's Python."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    pip = (python, "-m", "pip", "--disable-pip-version-check")
    locked = ("--require-hashes", "-r", LOCK)
    run(*pip, "install", "--quiet", "--no-index", "--find-links", wheels, *locked, cwd=ROOT)
    run(*pip, "install", "--quiet", "--no-index", "--no-deps", wheel, cwd=ROOT)
    # What the wheel asks for must be what the lock gives.
    run(*pip, "check", cwd=ROOT)
    return python


if __name__ == "__main__":
    main()
