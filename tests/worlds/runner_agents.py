"""Runs agents of a model in whole runners, against a model server and a control plane on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

from sexton_runner.providers.retries import Patience
from sexton_runner.providers.settings import ModelSettings
from sexton_runner.timing import Timing
from tests.fakes.control_plane import Plane, Report, open_plane
from tests.fakes.model_servers import KEY, Call, ModelServer
from tests.worlds.runner import PACE, running, settings_for

HASTE = Patience(tries=3, wait_first_s=0.001, wait_max_s=0.01)
TASK = "You look after herons. Say what is wrong with the heron of the event."
Protocol = Literal["anthropic", "openai"]
both = pytest.mark.parametrize("protocol", ["anthropic", "openai"])

SHELL = {"tools": ["shell"]}


def shell(command: str, call_id: str = "") -> Call:
    return Call("shell", {"command": command}, id=call_id)


@asynccontextmanager
async def runner_with(
    model: ModelServer, folder: Path, timing: Timing = PACE, **changes: Any
) -> AsyncIterator[Plane]:
    """Give a control plane whose runner speaks with ``model``."""
    models = ModelSettings(addresses={model.protocol: model.base_url}, patience=HASTE)
    async with open_plane() as plane:
        settings = settings_for(plane, folder, models=models, **changes)
        async with running(settings, timing):
            yield plane


def give(plane: Plane, model: ModelServer, **changes: Any) -> dict[str, Any]:
    """Queue a lease for an agent of that model."""
    policy = {
        "provider": model.protocol,
        "model": "m-1",
        "api_key": KEY,
        "context": {"context_cap_tokens": 100_000},
    }
    policy |= changes.pop("policy", {})
    return plane.give(changes.pop("instructions", TASK), runtime="agent", policy=policy, **changes)


async def reported(plane: Plane, count: int = 1) -> Report:
    """Wait for that many reports and give the last."""
    await plane.until(lambda: len(plane.reports()) >= count)
    report: Report = plane.reports()[count - 1]
    return report


def shown(plane: Plane) -> str:
    """Give all the text that was streamed."""
    return "".join(frame["text"] for frame in plane.frames("chunk"))
