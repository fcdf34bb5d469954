"""Builds the wheel and tries it where nothing else is installed.

The wheel must hold the six packages with all their data and nothing else at its root, install beside the locked
dependencies, and run ``sexton --version`` from a folder that is not the repository.
"""

import os
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
IMPORT_ALL = f"import http.client; import {', '.join(PACKAGES)}"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="sexton-wheel-") as folder:
        wheel = build_wheel(Path(folder) / "dist")
        check_contents(wheel)
        python = install_alone(wheel, Path(folder) / "venv")
        elsewhere = {"cwd": folder, "env": clean_environment()}
        subprocess.run([python, "-I", "-c", IMPORT_ALL], check=True, **elsewhere)
        told = subprocess.run(
            [python.with_name("sexton"), "--version"], check=True, capture_output=True, text=True, **elsewhere
        )
    print(f"{wheel.name}: {told.stdout.strip()}")


def build_wheel(folder: Path) -> Path:
    """Without isolation: the build backend is the locked one, and nothing is fetched."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (wheel,) = folder.glob("*.whl")
    return wheel


def check_contents(wheel: Path) -> None:
    """Compare the wheel with the source tree, both ways."""
    names = {name for name in zipfile.ZipFile(wheel).namelist() if not name.endswith("/")}
    inside = {name for name in names if ".dist-info/" not in name}
    expected = {
        path.relative_to(ROOT / wing).as_posix()
        for package, wing in PACKAGES.items()
        for path in (ROOT / wing / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    licences = [name for name in names if name.endswith(".dist-info/licenses/LICENSE")]
    if inside != expected or not licences:
        difference = "\n  ".join(sorted(inside ^ expected)) or "the licence"
        sys.exit(f"The wheel and the source tree differ in:\n  {difference}")


def install_alone(wheel: Path, folder: Path) -> Path:
    """Install the locked runtime and the wheel; the answer is that environment's Python."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    lock = ROOT / "requirements" / "runtime.lock"
    environment = clean_environment()
    subprocess.run([*pip, "--require-hashes", "-r", lock], check=True, env=environment)
    subprocess.run([*pip, "--no-index", "--no-deps", wheel], check=True, env=environment)
    # What the wheel asks for must be what the lock gives.
    subprocess.run([python, "-m", "pip", "check"], check=True, env=environment, stdout=subprocess.DEVNULL)
    return python


def clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


if __name__ == "__main__":
    main()
