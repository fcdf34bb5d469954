"""From an installed agent to evidence and a bill, over HTTP."""

from tests.http.house import House
from tests.http.story import tell


async def test_an_agent_is_installed_woken_run_gated_billed_and_shown(house: House) -> None:
    await tell(house)
