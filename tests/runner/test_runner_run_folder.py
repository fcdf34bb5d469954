"""What a run leaves on disk is removed, however it left it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from sexton_runner import run_folder
from tests.worlds.ordinary_user import as_ordinary_user, own_folder

ROOT = Path(run_folder.__file__).parents[1]
HOSTILE = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from sexton_runner.run_folder import remove_folder
outside = Path(sys.argv[1]) / "outside"
outside.mkdir(mode=0o500)
folder = Path(sys.argv[1]) / "run"
(folder / "closed" / "within").mkdir(parents=True)
(folder / "closed" / "within" / "file").write_text("x")
(folder / "link").symlink_to(outside)
os.chmod(folder / "closed" / "within", 0)
os.chmod(folder / "closed", 0)
at = os.getcwd()
os.chdir(folder)
for _ in range(3000):
    os.mkdir("d", 0o300)
    os.chdir("d")
os.chdir(at)
remove_folder(folder)
print(folder.exists(), oct(outside.stat().st_mode & 0o777))
remove_folder(folder)
"""


def test_folders_that_are_closed_or_too_deep_are_removed_and_links_are_not_followed() -> None:
    with own_folder() as folder, tempfile.TemporaryDirectory() as stage:
        argv = as_ordinary_user([sys.executable, "-c", HOSTILE, str(folder), str(ROOT)], Path(stage))
        done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=folder)

    assert done.stdout.split() == ["False", "0o500"], done.stderr
