"""Fixtures of the runner's tests."""

from pathlib import Path

import pytest

from tests.worlds.sandbox import Cage


@pytest.fixture
def cage(tmp_path: Path) -> Cage:
    return Cage(tmp_path)
