"""A run may ask people, but not without end."""

from pathlib import Path

import trio

from tests.fakes.control_plane import Plane, open_plane
from tests.fakes.model_servers import Call, Say, open_model
from tests.worlds.runner import running, settings_for
from tests.worlds.runner_agents import give, reported as agent_reported, runner_with

# Asks in rounds of ``at_once``, each round when the one before has been answered.
ASKING = """Ask.
```python
import os
folder = os.environ["SEXTON_RUN"]
with open(folder + "/requests", "wb", 0) as asks, open(folder + "/replies") as answers:
    for first in range(0, {total}, {at_once}):
        round = range(first, min(first + {at_once}, {total}))
        for number in round:
            asks.write(b"ask %d QQ== - - - -\\n" % number)
        for _ in round:
            answers.readline()
print("answered")
```
"""


async def approve_all(plane: Plane) -> None:
    """Approve whatever is asked, until cancelled."""
    while True:
        for gate in list(plane.gates.values()):
            if gate["status"] == "pending":
                plane.resolve(gate["gate_id"], "approved")
        await plane._changed.wait()


async def reported(folder: Path, total: int, at_once: int) -> tuple[str | None, str, int]:
    """Let a run ask; give its failure, its text, and how many asks came to people."""
    async with open_plane() as plane, running(settings_for(plane, folder)), trio.open_nursery() as nursery:
        nursery.start_soon(approve_all, plane)
        plane.give(ASKING.format(total=total, at_once=at_once))
        await plane.until(plane.reports)
        nursery.cancel_scope.cancel()
    (report,) = plane.reports()
    return report.failure_reason, report.response_text, len(plane.gates)


async def test_as_many_asks_as_there_may_be_are_answered(tmp_path: Path) -> None:
    assert await reported(tmp_path, 256, 32) == (None, "answered\n", 256)


async def test_one_ask_too_many_ends_the_run_and_comes_to_nobody(tmp_path: Path) -> None:
    reason, text, asked = await reported(tmp_path, 257, 32)

    assert (reason, asked) == ("resource_kill", 256)
    assert "it asked for more than 256 approvals" in text


async def test_too_many_asks_at_a_time_end_the_run(tmp_path: Path) -> None:
    reason, text, _ = await reported(tmp_path, 33, 33)

    assert reason == "resource_kill"
    assert "more than 32 approvals at a time" in text


async def test_a_model_may_not_ask_without_end_either(tmp_path: Path) -> None:
    calls = [Call("memory_store", {"key": "n", "content": "a heron"}, id=f"n{n}") for n in range(257)]
    gates = {"rules": [{"tool": "memory_store", "action": "*", "behavior": "approve"}]}
    turns = [Say("I note it.", tuple(calls[first : first + 64])) for first in range(0, 257, 64)]
    async with (
        open_model("openai", *turns, Say("Done.")) as model,
        runner_with(model, tmp_path) as plane,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(approve_all, plane)
        give(plane, model, policy={"tools": ["memory_store"], "gates": gates})
        report = await agent_reported(plane)
        nursery.cancel_scope.cancel()

    assert (report.failure_reason, len(plane.gates)) == ("resource_kill", 256)
    assert "more than 256 approvals" in report.response_text
