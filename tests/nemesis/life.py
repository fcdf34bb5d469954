"""One run: clients at work while faults come over the world, then a quiet end and the last reads."""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import trio

from tests.nemesis.clients.backlog import Backlog
from tests.nemesis.clients.caller import Caller
from tests.nemesis.clients.followers import Follower
from tests.nemesis.clients.holders import SLOTS, Holder
from tests.nemesis.clients.people import Person
from tests.nemesis.clients.senders import CREDENTIAL, SECRET, Sender
from tests.nemesis.injectors import Injectors, Tell
from tests.nemesis.last_reads import read_all, until_all_has_ended
from tests.nemesis.recorder import Recorder
from tests.nemesis.schedule import MEMBERS, Fault, Group, Kind, plan
from tests.nemesis.world import TAG, World, open_world
from tests.worlds.nodes import Node
from tests.worlds.samples import command_body, skill_md, trigger_md

AGENTS: Final = 600
COMMAND_AGENTS: Final = 8
SENDERS: Final = 16
PEOPLE: Final = 2
FOLLOWERS: Final = 6
COMMAND_EVERY_S: Final = 1.5
PATIENCE_S: Final = 300.0
"""For what is under way to come to its end, once all faults have healed."""
INSTALLED_TOGETHER: Final = 8
READER: Final = 999_000
"""The process of the history that reads all rows at its end."""
NO_BOUND: Final = 10**9
TRIGGER: Final = f"type: webhook\n    source: github\n    signature:\n      secret_ref: {CREDENTIAL}"
REPORTED: Final = (
    "SELECT count(*) FROM leases WHERE status = 'reported' AND zombie_id = ANY($1::text[]::uuid[])"
)
HELD_TAG: Final = "held"
SCRIPT: Final = "cat >/dev/null\nsexton-step step look\nsleep 0.2\necho done"
ASKING: Final = "cat >/dev/null\nsexton-step step ask\nsexton-step approve --action go --tool deploy || true"


@dataclass(frozen=True)
class Size:
    """How much of everything."""

    run_s: float
    seed: int
    events_per_s: float = 70.0
    renew_s: float = 0.4
    agents: int = AGENTS
    kinds: tuple[Kind, ...] = tuple(Kind)


@dataclass
class Told:
    """What a run comes to, beside its history."""

    faults: dict[str, int] = field(default_factory=dict)
    lacks: dict[str, str] = field(default_factory=dict)
    unended: int = 0
    command_runs: int = 0
    """Reported by the real runners."""
    spent_s: float = 0.0
    recorder: Recorder | None = None


async def live(size: Size, folder: Path, tell: Tell) -> Told:
    """Live through it; the history is then in ``folder``, with the logs of all servers."""
    began = time.monotonic()
    with (folder / "history.jsonl").open("w", encoding="utf-8") as file:
        async with open_world(folder) as world:
            told = Told(lacks=world.lacks)
            kinds = [kind for kind in size.kinds if kind not in world.lacks]
            faults = plan(size.seed, size.run_s, kinds)
            tell(f"{len(faults)} faults in {size.run_s:.0f} s; setting up")
            async with world.visit() as node:
                crew = await _set_up(node, size.agents)
                given = await node.balance()
                tenant = node.server.ready["tenant_id"]
            told.recorder = recorder = Recorder(file)
            life = Life(world, recorder, size, crew, tell)
            told.faults = await life.live(faults)
            told.unended = await until_all_has_ended(world.database.primary, 0)
            told.command_runs = await world.database.primary.ask(REPORTED, crew.commands)
            await read_all(world.database.primary, recorder, READER, tenant, given)
            recorder.close()
    told.spent_s = time.monotonic() - began
    return told


class Crew(NamedTuple):
    """Who was made before anything goes wrong."""

    agents: list[str]
    """Of the holders."""
    commands: list[str]
    """Agents of the real runners."""
    tokens: list[str]
    """The holders'."""


async def _set_up(node: Node, count: int) -> Crew:
    secret = {"name": CREDENTIAL, "data": {"webhook_secret": SECRET}}
    await node.call("POST", f"{node.workspace}/credentials", secret)
    agents: list[str] = []
    commands: list[str] = []
    room = trio.CapacityLimiter(INSTALLED_TOGETHER)

    async def install(name: str, tag: str, script: str, into: list[str]) -> None:
        async with room:
            files = {
                "source_markdown": skill_md(name, body=command_body(script), tags=tag),
                "trigger_markdown": trigger_md(name, "runtime: command", trigger=TRIGGER),
            }
            into.append((await node.call("POST", f"{node.workspace}/zombies", files))["zombie_id"])

    async with trio.open_nursery() as nursery:
        for number in range(count):
            nursery.start_soon(install, f"held-{number}", HELD_TAG, SCRIPT, agents)
        for number in range(COMMAND_AGENTS):
            nursery.start_soon(install, f"command-{number}", TAG, SCRIPT if number % 4 else ASKING, commands)
    tokens = []
    for number in range(MEMBERS[Group.CLIENT]):
        minted = await node.call("POST", "/v1/fleet/enrolment-tokens", {}, "admin_token")
        body = {
            "host_id": f"holder-{number}",
            "sandbox_tier": "bubblewrap",
            "labels": [HELD_TAG],
            "slots": SLOTS,
        }
        tokens.append((await node.call("POST", "/v1/runners", body, minted["token"]))["runner_token"])
    return Crew(agents, commands, tokens)


class Life:
    """Clients at work, and what comes over them."""

    def __init__(self, world: World, recorder: Recorder, size: Size, crew: Crew, tell: Tell) -> None:
        self._world = world
        self._recorder = recorder
        self._size = size
        self._crew = crew
        self._tell = tell
        self._rng = random.Random(size.seed)
        self._backlog = Backlog()

    async def live(self, faults: Sequence[Fault]) -> dict[str, int]:
        """Clients work while faults come; then senders stop, and the others go on until nothing is left.

        Gives how many faults of each kind there were.
        """
        holders = [Holder(self._caller(), one, self._backlog, self._own()) for one in self._crew.tokens]
        injectors = Injectors(self._world, holders, self._tell)
        async with _background() as workers:
            for holder in holders:
                workers.start_soon(holder.work, self._size.renew_s)
            for _ in range(PEOPLE):
                workers.start_soon(Person(self._caller(), self._own()).decide)
            for number in range(FOLLOWERS):
                followed = (self._crew.agents if number % 3 else self._crew.commands)[number]
                workers.start_soon(Follower(self._caller(), followed, self._own()).follow)
            async with _background() as senders:
                self._send(senders)
                senders.start_soon(_say_how_it_goes, self._recorder, self._tell)
                ends = trio.current_time() + self._size.run_s
                await injectors.suffer_all(faults)
                await trio.sleep_until(ends)
            self._recorder.stop_gaps()
            self._tell("all faults have healed; what is under way comes to its end")
            left = await until_all_has_ended(self._world.database.primary, PATIENCE_S)
            self._tell(f"{left} events have not ended")
        return dict(injectors.done)

    def _send(self, senders: trio.Nursery) -> None:
        every_s = SENDERS / self._size.events_per_s
        for _ in range(SENDERS):
            sender = Sender(self._caller(), self._crew.agents, self._backlog, self._own())
            senders.start_soon(sender.send, every_s)
        # What the real runners do is not known to be done: their pace is slow, and bounds it.
        beside = Sender(self._caller(), self._crew.commands, Backlog(NO_BOUND), self._own())
        senders.start_soon(beside.send, COMMAND_EVERY_S)

    def _caller(self) -> Caller:
        return Caller(self._world, self._recorder)

    def _own(self) -> random.Random:
        return random.Random(self._rng.getrandbits(64))


async def _say_how_it_goes(recorder: Recorder, tell: Tell) -> None:
    while True:
        await trio.sleep(10)
        sent = recorder.ends["send"]["ok"]
        tell(f"{sent} sends were accepted, {recorder.renewals} leases renewed")


@asynccontextmanager
async def _background() -> AsyncIterator[trio.Nursery]:
    """Tasks that are ended with the block."""
    async with trio.open_nursery() as nursery:
        yield nursery
        nursery.cancel_scope.cancel()
