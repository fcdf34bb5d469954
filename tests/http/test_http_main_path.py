"""From an installed agent to evidence and a bill, over HTTP."""

from tests.worlds.http import HttpWorld
from tests.worlds.main_path import tell


async def test_an_agent_is_installed_woken_run_gated_billed_and_shown(world: HttpWorld) -> None:
    await tell(world)
