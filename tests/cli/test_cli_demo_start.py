"""The demo says how its server failed to come up."""

from pathlib import Path

import pytest

from sexton_cli.demo import environment
from sexton_cli.demo.environment import NotReady, open_demo_server


async def test_a_server_that_ends_at_once_is_told_with_its_status(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("no folder can be made here")

    with pytest.raises(NotReady, match=r"it ended with status [1-9]"):
        async with open_demo_server(tmp_path):
            pass

    assert (tmp_path / "server.log").read_text()


async def test_a_server_that_takes_too_long_is_told_with_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "READY_S", 0.0)

    with pytest.raises(NotReady, match="it was not ready within 0 seconds"):
        async with open_demo_server(tmp_path):
            pass
