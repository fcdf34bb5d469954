"""A runner is killed, or frozen past its lease, while it sends: what it says too late is added to nothing."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import trio

from sexton_runner.settings import RunnerSettings
from sexton_storage.postgres import PostgresStorage
from sexton_storage.postgres.journal import committer
from tests.patience import PATIENCE_S
from tests.worlds.held_calls import HeldCalls
from tests.worlds.http import HttpWorld, open_http_world_on
from tests.worlds.runner import PATIENT, Process, process
from tests.worlds.runner_death import TERM_MS, a_runner
from tests.worlds.samples import NOBODY, agent_files, command_body

HOWS = ("killed", "frozen")
MOMENTS = {
    "transcript": ("POST transcript", 2),
    "file": ("PUT uploads", 3),
    "workspace": ("PUT workspace", 1),
    "report": ("POST reports", 1),
}
"""The call of an agent's first run that is kept back: which one, and how many of them have come then.

When the report is kept back the workspace has been left already, and must not count all the same.
"""
EVERY = {f"{how}-{moment}" for how in HOWS for moment in MOMENTS}
NAMES = (
    EVERY
    if os.environ.get("SEXTON_LATE_WRITES") == "all"
    else {
        "killed-workspace",
        "frozen-file",
        "frozen-transcript",
    }
)
"""Each kind once; with ``SEXTON_LATE_WRITES=all`` each kind of both, and the report."""
OF_LEASE = re.compile(r"([A-Z]+) /v1/runners/me/leases/([0-9a-f-]{36})/([a-z]+)")
LINES, BIG_BYTES = 40_000, (1 << 20) + 40_000
PROGRAM = f"""\
read -r event
echo "found: $(cat mark 2>/dev/null)"
echo "attempt $SEXTON_ATTEMPT" >mark
mkdir out
echo "attempt $SEXTON_ATTEMPT" >out/a
case "$event" in
*write-a-file*) head -c {BIG_BYTES} /dev/zero | tr '\\0' "$SEXTON_ATTEMPT" >out/big ;;
*write-a-transcript*)
    seq -f "attempt $SEXTON_ATTEMPT, line %.0f" {LINES}
    [ "$SEXTON_ATTEMPT" != 1 ] || sleep 1000 ;;
esac
"""


def printed(name: str, attempt: int) -> str:
    """What an agent's program prints when it comes to its end."""
    lines = range(1, LINES + 1) if name.endswith("transcript") else ()
    return "found: \n" + "".join(f"attempt {attempt}, line {line}\n" for line in lines)


def left(name: str, attempt: int) -> dict[str, str]:
    """The files that it leaves, by name with their SHA-256."""
    files = {"a": f"attempt {attempt}\n".encode()}
    if name.endswith("file"):
        files["big"] = str(attempt).encode() * BIG_BYTES
    return {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}


class Agents:
    """The agents of the test and what is kept of their only events."""

    def __init__(self, world: HttpWorld, storage: PostgresStorage) -> None:
        self._world, self._storage = world, storage
        self._names: dict[UUID, str] = {}
        self._events: dict[str, str] = {}
        self._calls = Counter[tuple[str, str]]()

    async def wake(self, name: str) -> None:
        """Install an agent that only the runners with its label are given, and wake it."""
        how, _, moment = name.partition("-")
        config = "runtime: command\nworkspace: keep"
        files = agent_files(name, config, trigger=NOBODY, tags=how, body=command_body(PROGRAM))
        made = await self._world.post(f"{self._world.ws}/zombies", files)
        assert made.status_code == 201, made.text
        zombie_id = made.json()["zombie_id"]
        self._names[UUID(zombie_id)] = name
        path = f"{self._world.ws}/zombies/{zombie_id}/messages"
        self._events[name] = (await self._world.post(path, {"message": f"write-a-{moment}"})).json()[
            "event_id"
        ]

    async def choose(self, how: str, line: str) -> str:
        """Name the call that is to be kept back."""
        if "/v1/runners/me/reports" in line:
            return f"{how}-report"
        found = OF_LEASE.match(line)
        lease = None if found is None else await self._storage.leases.load(UUID(found[2]))
        if found is None or lease is None:
            return ""
        name, call = self._names[lease.zombie_id], f"{found[1]} {found[3]}"
        self._calls[name, call] += 1
        return name if (call, self._calls[name, call]) == MOMENTS[name.partition("-")[2]] else ""

    async def all_are(self, *statuses: str) -> None:
        with trio.fail_after(PATIENCE_S):
            while {event["status"] for event in [await self._event(name) for name in NAMES]} - {*statuses}:
                await trio.sleep(0.05)

    async def kept(self) -> dict[str, dict[str, Any]]:
        """All that is kept of them."""
        return {name: await self._kept(name) for name in NAMES}

    async def _kept(self, name: str) -> dict[str, Any]:
        event, [zombie_id] = await self._event(name), [key for key in self._names if self._names[key] == name]
        files = await self._world.get(f"{self._path(name)}/artefacts")
        snapshot = await self._storage.kept_workspaces.newest(zombie_id)
        said: list[dict[str, Any]] = []
        query = {"whole": "true", "limit": "200"}
        while True:
            page = (await self._world.get(f"{self._path(name)}/transcript", params=query)).json()
            said += page["items"]
            if page["next_cursor"] is None:
                break
            query["cursor"] = page["next_cursor"]
        return {"event": event, "files": files.json()["items"], "said": said, "snapshot": snapshot}

    async def _event(self, name: str) -> dict[str, Any]:
        event = dict((await self._world.get(self._path(name))).json())
        del event["request_id"]  # It is of the answer, not of the event.
        return event

    def _path(self, name: str) -> str:
        return f"{self._world.ws}/events/{self._events[name]}"


def of_attempt(kept: dict[str, Any], attempt: int) -> tuple[dict[str, dict[str, Any]], str]:
    """The files by name, and what was printed, of one attempt."""
    files = {one["name"]: one for one in kept["files"] if one["attempt"] == attempt}
    said = [one for one in kept["said"] if (one["attempt"], one["kind"]) == (attempt, "output")]
    return files, "".join(one["data"]["text"] for one in said)


def family(pid: int) -> list[int]:
    """A process of the host and all that descend from it, parents first."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(words[1]), []).append(int(folder.name))
    found = [pid]
    for one in found:
        found += parents.get(one, [])
    return found


@asynccontextmanager
async def frozen(runner: Process) -> AsyncIterator[Callable[[], None]]:
    """Stop a runner with all of its processes, as a host that is suspended does; gives what lets it go on."""
    stopped = family(runner.pid)

    def go_on() -> None:
        while stopped:
            os.kill(stopped.pop(), signal.SIGCONT)

    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield go_on
    finally:
        go_on()


async def pass_a_term(storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the database's clock forward, and this node's with it; runners have clocks of their own."""
    monkeypatch.setattr(committer, "_CLOCK", f"{committer._CLOCK} + {TERM_MS}")
    ahead = f"(extract(epoch FROM statement_timestamp()) * 1000)::bigint + {TERM_MS}"
    function = f"CREATE OR REPLACE FUNCTION sexton_now_ms() RETURNS bigint LANGUAGE sql STABLE RETURN {ahead}"
    await storage.instance._database.change(lambda connection: connection.execute(function))
    assert storage.clock._offset is not None
    storage.clock._offset += TERM_MS


async def until(ready: Callable[[], bool]) -> None:
    with trio.fail_after(PATIENCE_S):
        while not ready():
            await trio.sleep(0.01)


async def test_what_a_killed_or_frozen_runner_sends_too_late_is_added_to_nothing(
    postgres_storage: PostgresStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        open_http_world_on(postgres_storage) as world,
        trio.open_nursery() as nursery,
        AsyncExitStack() as stack,
    ):
        agents = Agents(world, postgres_storage)
        for name in sorted(NAMES):
            await agents.wake(name)
        lines: dict[str, HeldCalls] = {}
        runners: dict[str, Process] = {}
        for how in HOWS:
            lines[how] = HeldCalls(world.base_url, partial(agents.choose, how))
            await nursery.start(lines[how].serve)
            folder = tmp_path / how
            folder.mkdir()
            options = [f"--base-url={lines[how].base_url}", f"--state-dir={folder / 'state'}"]
            # With a slot to spare it would have a poll open, and be given what was taken back from it.
            slots = sum(name.startswith(how) for name in NAMES)
            words = [sys.executable, "-c", PATIENT, *options, f"--slots={slots}"]
            token = {"SEXTON_RUNNER_TOKEN": await world.enrol(how, labels=[how])}
            runners[how] = await stack.enter_async_context(process(folder, words, token))
        await until(lambda: lines["killed"].waiting | lines["frozen"].waiting == NAMES)

        runners["killed"].send(signal.SIGKILL)
        await runners["killed"].ended()
        go_on = await stack.enter_async_context(frozen(runners["frozen"]))
        await pass_a_term(postgres_storage, monkeypatch)
        await agents.all_are("received")
        first = await agents.kept()

        second = RunnerSettings(
            base_url=world.base_url,
            state_dir=tmp_path / "second",
            runner_token=await world.enrol("second", labels=[*HOWS]),
            slots=len(NAMES),
        )
        async with a_runner(second):
            await agents.all_are("processed", "agent_error", "dead_lettered")
        whole = await agents.kept()

        for line in lines.values():
            line.let_go.set()
        go_on()
        await until(lambda: lines["killed"].answered | lines["frozen"].answered == NAMES)
        runners["frozen"].send(signal.SIGINT)
        assert await runners["frozen"].ended() == 0

        late = await agents.kept()
        answers = {**lines["killed"].answers, **lines["frozen"].answers}
        nursery.cancel_scope.cancel()

    assert {name: b"UZ-RUN-005" in answer for name, answer in answers.items()} == dict.fromkeys(NAMES, True)

    changed = {name: [key for key in late[name] if late[name][key] != whole[name][key]] for name in NAMES}
    assert not any(changed.values()), f"a runner whose lease is over has changed {changed}"

    for name in NAMES:
        check(name, first[name], whole[name])


def check(name: str, first: dict[str, Any], whole: dict[str, Any]) -> None:
    """What was taken from the first attempt is still its own, and the second one has everything."""
    files, said = of_attempt(whole, 1)
    assert (files, said) == of_attempt(first, 1), name
    assert printed(name, 1).startswith(said), name
    moment = name.partition("-")[2]
    assert (0 < len(said) < len(printed(name, 1))) if moment == "transcript" else ("a" in files), name
    assert "big" not in files, "half of it had come"
    assert first["snapshot"] is None, name

    event = whole["event"]
    assert (event["status"], event["attempts"]) == ("processed", 2), event
    files, said = of_attempt(whole, 2)
    assert said == printed(name, 2), name
    assert {one: files[one]["sha256"] for one in files} == left(name, 2), name
    assert {one["name"] for one in event["evidence"]["files"]} == {*files}, name
    assert str(whole["snapshot"].lease_id) == files["a"]["lease_id"], name
