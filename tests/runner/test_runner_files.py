"""The files that runs leave, from a sandbox of a real runner over a real server to a real database."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from sexton_runner.providers.settings import ModelSettings
from sexton_runner.run_files.files_pipe import SENDER
from sexton_runner.run_files.sent_files import SentFile, SentFiles
from sexton_runner.settings import RunnerSettings
from sexton_storage.postgres import PostgresStorage
from tests.fakes.model_servers import KEY, Call, Say, open_model
from tests.worlds.http import HttpWorld, open_http_world_on
from tests.worlds.runner_death import a_runner, until_it_ends
from tests.worlds.samples import NOBODY, agent_files, command_body

MANY = int(os.environ.get("SEXTON_MANY_FILES", "1100"))
SECRET = "files-canary-5f2d0c77"
BIG = bytes(range(256)) * 12_000
GOOD = """\
mkdir -p out/deep/er
printf 'hello' >out/deep/er/a.html
python3 -c 'import sys; sys.stdout.buffer.write(bytes(range(256)) * 12000)' >out/big.bin
: >out/empty
echo done
"""
LINKS = "mkdir out; ln -s /etc/passwd out/link; mkfifo out/pipe; echo x >out/kept"
NAMES = "mkdir out; : >\"$(printf 'out/a\\nb')\"; : >\"$(printf 'out/\\377')\"; echo x >out/kept"
NO_FOLDER = "ln -s /etc out"
GROWS = "mkdir out; (while :; do echo more; done) >out/log & sleep 0.2; echo started"
NOISE = "printf 'F\\377\\377\\377\\377' >\"$SEXTON_RUN/files\"; mkdir out; echo x >out/lost"
FAILS = "mkdir out; echo why >out/reason.txt; exit 3"
HOSTILE = {
    "links": (LINKS, ["link: it is no file", "pipe: it is no file"], ["kept"]),
    "names": (NAMES, ["characters that cannot be seen", "its name is no UTF-8"], ["kept"]),
    "no-folder": (NO_FOLDER, ["it is no folder"], []),
    "noise": (NOISE, ["the files could not be read: a frame is too long"], []),
}


@asynccontextmanager
async def at_work(storage: PostgresStorage, folder: Path, **models: str) -> AsyncIterator[HttpWorld]:
    async with open_http_world_on(storage) as world:
        settings = RunnerSettings(
            base_url=world.base_url,
            state_dir=folder / "state",
            runner_token=await world.enrol(),
            models=ModelSettings(addresses=models),
        )
        async with a_runner(settings):
            yield world


async def run(world: HttpWorld, name: str, files: dict[str, str]) -> dict[str, Any]:
    """Install an agent, wake it, and give its event when that has ended."""
    made = await world.post(f"{world.ws}/zombies", files)
    assert made.status_code == 201, made.text
    zombie_id = made.json()["zombie_id"]
    woken = await world.post(f"{world.ws}/zombies/{zombie_id}/messages", {"message": name})
    assert woken.status_code == 202, woken.text
    return await until_it_ends(world, zombie_id)


def command(name: str, script: str) -> dict[str, str]:
    return agent_files(name, "runtime: command", trigger=NOBODY, body=command_body(script))


async def names(world: HttpWorld, event: dict[str, Any]) -> dict[str, dict[str, Any]]:
    answer = await world.get(f"{world.ws}/events/{event['event_id']}/artefacts", params={"limit": "200"})
    return {item["name"]: item for item in answer.json()["items"]}


async def test_what_a_program_leaves_in_out_is_kept_and_told(
    postgres_storage: PostgresStorage, tmp_path: Path
) -> None:
    async with at_work(postgres_storage, tmp_path) as world:
        event = await run(world, "good", command("good", GOOD))
        kept = await names(world, event)
        big = await world.get(f"{world.ws}/artefacts/{kept['big.bin']['artefact_id']}/content")

        assert (event["status"], event["response_text"]) == ("processed", "done\n")
        assert {name: one["size"] for name, one in kept.items()} == {
            "big.bin": len(BIG),
            "deep/er/a.html": 5,
            "empty": 0,
        }
        assert kept["deep/er/a.html"]["media_type"] == "text/html"
        assert big.content == BIG

        told = {one["name"]: one["artefact_id"] for one in event["evidence"]["files"]}
        assert told == {name: one["artefact_id"] for name, one in kept.items()}

        event = await run(world, "fails", command("fails", FAILS))
        assert (event["failure_label"], list(await names(world, event))) == ("agent_run", ["reason.txt"])

        event = await run(world, "grows", command("grows", GROWS))
        assert event["failure_label"] in {None, "files_refused"}, event
        assert event["status"] in {"processed", "agent_error"}


async def test_what_cannot_be_kept_ends_the_run_with_a_label_that_says_so(
    postgres_storage: PostgresStorage, tmp_path: Path
) -> None:
    async with at_work(postgres_storage, tmp_path) as world:
        events: dict[str, dict[str, Any]] = {}

        async def one(name: str, script: str) -> None:
            events[name] = await run(world, name, command(name, script))

        async with trio.open_nursery() as nursery:
            for name, (script, _, _) in HOSTILE.items():
                nursery.start_soon(one, name, script)

        for name, (_, told, kept) in HOSTILE.items():
            event = events[name]
            assert (event["failure_label"], event["error_code"]) == ("files_refused", "UZ-FILE-010"), event
            assert [words for words in told if words not in event["response_text"]] == [], event
            assert list(await names(world, event)) == kept, name


async def test_what_an_agents_tools_leave_is_kept_but_for_secrets(
    postgres_storage: PostgresStorage, tmp_path: Path
) -> None:
    encoded = SECRET.encode().hex()
    script = f"mkdir -p out; echo fine >out/fine.txt; echo 'x {encoded} y' >out/leak.txt"
    async with (
        open_model("anthropic", Say("", (Call("shell", {"command": script}),)), Say("done")) as model,
        at_work(postgres_storage, tmp_path, anthropic=model.base_url) as world,
    ):
        key = {"provider": "anthropic", "api_key": KEY}
        await world.call("PUT", f"{world.ws}/credentials/llm", json=key)
        secret = {"name": "canary", "data": {"token": SECRET}}
        await world.post(f"{world.ws}/credentials", secret)
        lent = "credentials: [canary]\nnetwork: {allow: [example.com]}"
        config = f"runtime: agent\nmodel: m-1\ntools: [shell]\n{lent}"
        event = await run(world, "agent", agent_files("agent", config, trigger=NOBODY))
        kept = await names(world, event)

        assert list(kept) == ["fine.txt"]
        assert kept["fine.txt"]["sha256"] == hashlib.sha256(b"fine\n").hexdigest()
        assert event["failure_label"] == "files_refused"
        assert "leak.txt: it holds a secret" in event["response_text"]
        assert event["evidence"]["tools"][0]["ok"]


class Piped:
    """What a sender wrote, as its runner reads it."""

    def __init__(self, content: bytes) -> None:
        self._left = content

    async def receive_some(self, max_bytes: int | None = None, /) -> bytes:
        piece, self._left = self._left[:max_bytes], self._left[max_bytes or 0 :]
        return piece


async def sent(folder: Path, total: int, walls: str = "open") -> tuple[dict[str, bytes], list[str]]:
    """Run the sender over ``folder``; give the files and the notes that it sends."""
    words = [sys.executable, "-I", str(SENDER), str(total), walls]
    done = await trio.run_process(words, cwd=folder, capture_stdout=True)
    files, read, notes = SentFiles(Piped(done.stdout)), dict[str, bytes](), list[str]()
    while (one := await files.next()) is not None:
        if isinstance(one, SentFile):
            read[one.name] = await files.read(one.size)
            assert hashlib.sha256(read[one.name]).hexdigest() == one.sha256
        else:
            notes.append(f"{one.name}: {one.why}")
    return read, notes


async def test_a_sender_keeps_to_its_bounds(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    assert await sent(tmp_path, 100) == ({}, [])

    folder.mkdir()
    for number in range(MANY):
        (folder / f"{number:06}").touch()

    files, notes = await sent(tmp_path, 100)

    bound = "10000 entries" if MANY > 10_000 else "1000 files"
    assert (len(files), notes) == (1000, [f": there are more than {bound}, and the others were left out"])


async def test_a_sender_sends_no_more_bytes_than_it_may_and_no_file_of_elsewhere(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(b"of elsewhere")
    (folder / "hard").hardlink_to(tmp_path / "secret")
    (folder / "soft").symlink_to(tmp_path / "secret")
    (folder / "elsewhere").symlink_to(tmp_path)
    (folder / "a").write_bytes(b"first")
    with (folder / "sparse").open("wb") as sparse:
        sparse.truncate(1 << 40)
    (folder / "z").write_bytes(b"last")

    files, notes = await sent(tmp_path, 1 << 20)

    assert files == {"a": b"first"}
    assert notes == [
        "elsewhere: it is no file",
        "hard: it is no file of its own",
        "soft: it is no file",
        ": the files are larger together than they may be, and the others were left out",
    ]
    assert "hard" in (await sent(tmp_path, 1 << 20, "walled"))[0]
