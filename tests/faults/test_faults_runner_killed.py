"""A local runner that is killed gives its work to the next one at once: nobody waits for its term."""

import os
import signal
from pathlib import Path

from tests.faults.test_faults_server_stops import Api
from tests.worlds.runner import eventually, gone
from tests.worlds.server_process import open_server


async def test_what_a_killed_local_runner_held_goes_on_without_waiting_for_its_term(tmp_path: Path) -> None:
    marker = f"4.{os.getpid()}5"
    async with open_server(tmp_path, "--port", "0", "--runners", "1") as server:
        api = Api(server)
        zombie = await api.sleeper(marker)
        (event,) = (await api.call("GET", f"{api.workspace}/zombies/{zombie}/events"))["items"]
        assert event["attempts"] == 1

        os.kill(server.ready["pids"]["runners"][0], signal.SIGKILL)
        log = tmp_path / "data" / "runners" / "runner-1.log"
        await eventually(lambda: log.read_text().count('"lease_taken"') > 1)

        cause = await api.cause_of_the_first_reclaim(zombie)
        assert cause == "died"

        await gone(f"sleep\0{marker}")
        await server.stop()
        await server.start("--runners", "0")
        event = await api.event(zombie)
        assert (event["status"], event["attempts"]) == ("processed", 2)
