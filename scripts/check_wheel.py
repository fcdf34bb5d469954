"""Builds the wheel and tries it where nothing else is installed.

The wheel must hold the six packages with all their data and the examples, and nothing else at its root,
install beside the locked dependencies, and run ``sexton --version`` from a folder that is not the repository.
"""

import os
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
EXECUTABLE = stat.S_IXUSR
IMPORT_ALL = f"import http.client; import {', '.join(PACKAGES)}"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="sexton-wheel-") as name:
        folder = Path(name)
        wheel = build_wheel(folder / "dist")
        check_contents(wheel)
        python = install_alone(wheel, folder / "venv")
        run(python, "-I", "-c", IMPORT_ALL, cwd=folder)
        told = run(python.with_name("sexton"), "--version", cwd=folder)
    version = wheel.name.split("-")[1]
    if version not in told.split():
        sys.exit(f"{wheel.name} says that it is {told.strip()!r}.")
    print(f"{wheel.name}: {told.strip()}")


def run(*command: str | Path, cwd: Path) -> str:
    """Run without the caller's Python settings; the answer is what the command wrote. Its failure is ours."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, check=True, cwd=cwd, env=environment, stdout=subprocess.PIPE, text=True)
    return done.stdout


def build_wheel(folder: Path) -> Path:
    """Without isolation: the build backend is the locked one, and nothing is fetched."""
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ".", cwd=ROOT)
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


def install_alone(wheel: Path, folder: Path) -> Path:
    """Install the locked runtime and the wheel; the answer is that environment's Python."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    pip = (python, "-m", "pip", "--disable-pip-version-check")
    run(*pip, "install", "--quiet", "--require-hashes", "-r", "requirements/runtime.lock", cwd=ROOT)
    run(*pip, "install", "--quiet", "--no-index", "--no-deps", wheel, cwd=ROOT)
    # What the wheel asks for must be what the lock gives.
    run(*pip, "check", cwd=ROOT)
    return python


if __name__ == "__main__":
    main()
