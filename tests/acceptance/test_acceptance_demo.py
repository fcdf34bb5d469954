"""The demo is true: it ends with status 0 only if every claim it makes held."""

import os
import re
import subprocess
import sys
from pathlib import Path


def test_the_demo_shows_the_whole_path_and_every_claim_holds(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "sexton_cli.main", "demo"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
        | {"HOME": str(tmp_path)},
    )
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-2000:]
    summary = re.search(r"(\d+) of (\d+) claims held", ended.stdout)
    assert summary is not None
    assert summary[1] == summary[2]
    assert int(summary[1]) >= 18
    assert "✗" not in ended.stdout
