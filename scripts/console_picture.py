"""Takes the picture of the console that the README shows.

``python scripts/console_picture.py docs/images/console.png`` starts a server on an empty database, has
agents wait, work and fail, and opens the page *Now* in Chromium.
"""

import sys
import tempfile
from pathlib import Path

import trio

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # so that the tests' worlds are found

from sexton_actors.periodic.failure_rounds import Sort
from tests.pages.checks import sign_in
from tests.pages.conftest import open_chromium
from tests.pages.screen import Screen
from tests.pages.test_pages_console import open_gate
from tests.worlds.http import HttpWorld, open_http_world
from tests.worlds.http_agents import report, steer

WIDTH, HEIGHT = 1280, 720
ANSWER = "git push: the remote has rejected the branch release-2.4"


async def fill(world: HttpWorld) -> None:
    """Something that waits for a person, something that is stuck, some that fail, some that run."""
    _, token, lease = await world.working()
    await open_gate(world, token, lease)
    releases = await world.install("release-notes")
    for _ in range(3):
        await steer(world, releases)
        failed = await world.lease(token)
        await report(
            world,
            token,
            failed,
            outcome="agent_error",
            failure_reason="startup_posture",
            response_text=ANSWER,
        )
    await world.system.ask("failure_rounds", "", Sort())
    for name in ("nightly-report", "cost-watch"):
        await steer(world, await world.install(name))
    await world.lease(token)
    await steer(world, await world.install("vision", tags="gpu"))


async def take(folder: Path) -> Path:
    """Give the file of the picture."""
    with open_chromium(folder / "profile") as driver:
        async with open_http_world() as world:
            await fill(world)
            screen = Screen(driver, folder)
            await sign_in(screen, world)
            await screen.command(
                "Emulation.setDeviceMetricsOverride",
                width=WIDTH,
                height=HEIGHT,
                deviceScaleFactor=1,
                mobile=False,
            )
            await screen.open(f"{world.base_url}/console")
            await screen.sees("live")
            return await screen.picture("console")


def main(path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        taken = trio.run(take, Path(folder))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(taken.read_bytes())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
