"""The page that shows how requests travel shows what the code does."""

import os
import subprocess
import sys

from tests.house.survey import ROOT


def test_the_pictures_show_the_way_that_requests_take() -> None:
    done = run("--check")

    assert done.returncode == 0, done.stdout + done.stderr


def run(*options: str) -> subprocess.CompletedProcess[str]:
    alone = {key: value for key, value in os.environ.items() if not key.startswith(("DATABASE_URL", "PG"))}
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts/trace_requests.py"), *options],
        cwd=ROOT,
        env=alone,
        capture_output=True,
        text=True,
        check=False,
    )
