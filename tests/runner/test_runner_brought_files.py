"""The files that an event brings, from a sender over a real server into the sandbox of a real runner."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sexton_storage.postgres import PostgresStorage
from tests.fakes.model_servers import KEY, Call, Say, open_model
from tests.http.test_http_message_files import send
from tests.runner.test_runner_files import at_work
from tests.runner.test_runner_kept_workspaces import damage, ended, installed
from tests.worlds.http import HttpWorld
from tests.worlds.samples import NOBODY, agent_files, command_body

LARGE = bytes(range(256)) * 9_000
READS = """\
python3 -c 'import json,sys; print(*[one["name"] for one in json.load(sys.stdin)["files"]])'
cat in/notes/a.txt
wc -c <in/large.bin | tr -d ' '
(echo x >in/notes/a.txt) 2>/dev/null && echo written
rm -f in/notes/a.txt 2>/dev/null && echo removed
mkdir -p out; cp in/large.bin out/large.bin
"""


async def woken(world: HttpWorld, agent: str, files: list[dict[str, Any]]) -> dict[str, Any]:
    body = {"message": "go", "files": files}
    made = await world.post(f"{world.ws}/zombies/{agent}/messages", body)
    assert made.status_code == 202, made.text
    return await ended(world, made.json()["event_id"])


async def test_a_program_and_a_models_tools_find_the_files_of_their_event(
    postgres_storage: PostgresStorage, tmp_path: Path
) -> None:
    look = Call("shell", {"command": "cat in/notes/a.txt; echo x >in/notes/a.txt || echo refused"})
    async with (
        open_model("anthropic", Say("", (look,)), Say("done")) as model,
        at_work(postgres_storage, tmp_path, anthropic=model.base_url) as world,
    ):
        await world.call("PUT", f"{world.ws}/credentials/llm", json={"provider": "anthropic", "api_key": KEY})
        note, large = await send(world, b"a heron\n"), await send(world, LARGE)
        files = [
            {"name": "notes/a.txt", "upload_id": note, "media_type": "text/plain"},
            {"name": "large.bin", "upload_id": large},
        ]
        event: dict[str, Any] = {}
        for name, more in (("reads", ""), ("keeps", "\nworkspace: keep")):
            config = f"runtime: command{more}"
            agent = await installed(
                world, agent_files(name, config, trigger=NOBODY, body=command_body(READS))
            )
            event = await woken(world, agent, files)
            assert (event["status"], event["response_text"]) == (
                "processed",
                f"notes/a.txt large.bin\na heron\n{len(LARGE)}\n",
            ), event
        left = {"name": "large.bin", "event_id": event["event_id"]}

        config = "runtime: agent\nmodel: m-1\ntools: [shell]"
        agent = await installed(world, agent_files("asks", config, trigger=NOBODY))
        event = await woken(world, agent, [files[0], left])
        assert event["status"] == "processed", event

        asked = str(model.asked)
        assert "- in/notes/a.txt (text/plain, 8 bytes)" in asked
        assert "- in/large.bin (application/octet-stream" in asked
        assert "a heron" in str(model.asked[-1])
        assert "refused" in str(model.asked[-1])

        await damage(postgres_storage)
        event = await woken(world, agent, files[:1])
        assert (event["failure_label"], event["error_code"]) == ("files_lost", "UZ-FILE-014"), event
        assert "notes/a.txt is damaged" in event["response_text"]
