"""Three nodes, two runners and a database with a standby: real processes, and links that can be cut."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import httpx2
import trio

from sexton_storage.embedded.roles import DATABASE, ROLE
from tests.fakes.tcp_link import Address, Link, open_link
from tests.nemesis.schedule import MEMBERS, Group
from tests.nemesis.wires.bundle import Cuttable, Door, open_wires
from tests.worlds.nodes import Node
from tests.worlds.runner import SOURCE, cleared, command_line
from tests.worlds.server_process import ServerProcess
from tests.worlds.small_disk import SmallDisk, open_small_disk
from tests.worlds.synchronous_pair import Machine, SynchronousPair, open_synchronous_pair
from tests.worlds.wrong_clock import LIBRARY, Clock

STARTS: Final = 20
"""How often a node is started that ended before it was ready, as an operator's supervisor does."""
PROBE_S: Final = 1.0
PROBE_PATIENCE_S: Final = 3.0
STANDBY_SETTING: Final = "synchronous_standby_names"
RUNNER_SLOTS: Final = 4
DATABASE_SETTINGS: Final = {"autovacuum": "on", "shared_buffers": "256MB"}
"""Of a run that is long enough to need them."""
SOCKET: Final = ".s.PGSQL.5432"
TAG: Final = "commands"
"""Of the agents that only the real runners take."""


class NemesisNode:
    """One server, the links before it, and its ways to both machines of the database."""

    def __init__(self, server: ServerProcess, databases: Sequence[Cuttable], clock: Clock | None) -> None:
        self.server = server
        self.databases = databases
        self.clock = clock
        self.is_up = True
        """What its last probe found."""
        self.link: Door | None = None
        self._port = "0"

    @property
    def address(self) -> Address:
        url = urlsplit(self.server.ready["base_url"])
        return url.hostname or "", url.port or 0

    @property
    def base_url(self) -> str:
        """Where its clients reach it: over a link that can be cut."""
        assert self.link is not None
        return self.link.base_url

    async def start(self) -> None:
        """Start it, again where it ends at once, on the port that it had."""
        for left in reversed(range(STARTS)):
            try:
                await self.server.start("--port", self._port)
            except AssertionError:
                if not left:
                    raise
                await trio.sleep(PROBE_S)
            else:
                break
        self._port = str(self.address[1])

    def cut_database(self) -> None:
        for way in self.databases:
            way.hold()
            way.hang_up()

    def join_database(self) -> None:
        for way in self.databases:
            way.let_go()


class NemesisRunner:
    """One process ``sexton runner``, over as many lives as it takes."""

    def __init__(self, folder: Path, base_url: str, token: str) -> None:
        self._folder = folder
        self._base_url = base_url
        self._token = token
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        settings = {
            "base_url": self._base_url,
            "state_dir": self._folder / "state",
            "slots": RUNNER_SLOTS,
            "sandbox": "none",
            "label": TAG,
        }
        own = {"PYTHONPATH": str(SOURCE), "SEXTON_RUNNER_TOKEN": self._token}
        with (self._folder / "runner.log").open("ab") as log:
            self.process = subprocess.Popen(
                command_line(settings), stdout=log, stderr=log, env={"PATH": os.environ["PATH"], **own}
            )

    def kill(self) -> None:
        """End it and whatever it runs: the runs of a dead runner end with it."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def tidy(self) -> None:
        """Clear away what a killed runner left."""
        cleared(self._folder / "state")


class Database:
    """Which machine is the primary and which the standby; they change places."""

    def __init__(self, pair: SynchronousPair, disks: Sequence[SmallDisk]) -> None:
        self.dsn = pair.dsn
        """Of both; only what is done before there are faults goes without a proxy."""
        self.primary = pair.primary
        self.standby = pair.standby
        self._disks = {disk.folder: disk for disk in disks}

    def disk_of(self, machine: Machine) -> SmallDisk | None:
        return self._disks.get(machine.folder)

    async def wait_for_standby(self) -> None:
        """From now on a commit is acknowledged when the standby has it as well."""
        await self._set("*")
        await self.primary.until("SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")

    async def take_over(self) -> None:
        """Make the standby of a dead primary the primary, and of the other machine a new standby."""
        await self.standby.promote()
        self.primary, self.standby = self.standby, self.primary
        # Until there is a new standby nobody waits for one; and until then the schedule harms no database.
        await self._set("")

    async def make_standby(self) -> None:
        await trio.run_process(["rm", "-rf", str(self.standby.data)])
        await self.standby.follow(self.primary)
        await self.wait_for_standby()

    async def _set(self, names: str) -> None:
        await self.primary.ask(f"ALTER SYSTEM SET {STANDBY_SETTING} = '{names}'")
        await self.primary.ask("SELECT pg_reload_conf()")


class World:
    """Everything that runs, and how it is reached."""

    def __init__(self, folder: Path, database: Database | None, nodes: Sequence[NemesisNode]) -> None:
        """``database`` None: it is another's, and not to be harmed."""
        self.folder = folder
        self._database = database
        self.nodes = nodes
        self.runners: list[NemesisRunner] = []
        self.lacks: dict[str, str] = {}
        """What this machine cannot do, and why."""
        self._turn = count()

    @property
    def database(self) -> Database:
        assert self._database is not None
        return self._database

    def balance(self) -> Address:
        """A node that answered its last probe, if there is one; each in turn."""
        turn = next(self._turn)
        up = [node for node in self.nodes if node.is_up] or self.nodes
        return up[turn % len(up)].address

    async def probe(self, balancer: Link) -> None:
        """Ask each node whether it is ready, as a balancer does; who is not loses its connections."""
        async with httpx2.AsyncClient(timeout=PROBE_PATIENCE_S) as http, trio.open_nursery() as nursery:
            for node in self.nodes:
                nursery.start_soon(self._probe, http, node, balancer)

    async def _probe(self, http: httpx2.AsyncClient, node: NemesisNode, balancer: Link) -> None:
        while True:
            try:
                answer = await http.get(f"{node.server.ready['base_url']}/readyz")
            except httpx2.HTTPError:
                node.is_up = False
            else:
                node.is_up = answer.status_code < 300
            if not node.is_up:
                balancer.hang_up(node.address)
            await trio.sleep(PROBE_S)

    @asynccontextmanager
    async def visit(self, number: int = 0) -> AsyncIterator[Node]:
        """Make calls of one node, past its link."""
        server = self.nodes[number].server
        async with httpx2.AsyncClient(base_url=server.ready["base_url"], timeout=60) as http:
            yield Node(server, http)


@asynccontextmanager
async def open_world(folder: Path) -> AsyncIterator[World]:
    """Everything is up when this is entered, and ended when it is left. Logs stay in ``folder``."""
    async with AsyncExitStack() as stack:
        short = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sx")))
        disks = []
        lacks = {}
        for name in "ab":
            disk = await stack.enter_async_context(open_small_disk(short / name))
            if isinstance(disk, SmallDisk):
                disks.append(disk)
            else:
                lacks["fill-disk"] = disk
        database = Database(
            await stack.enter_async_context(open_synchronous_pair(short, DATABASE_SETTINGS)), disks
        )
        await database.wait_for_standby()
        if LIBRARY is None:
            lacks["skew-clock"] = "libfaketime is missing: install the package `faketime`"
        nodes = []
        for number in range(MEMBERS[Group.NODE]):
            node = await _open_node(stack, folder, short, number, database)
            await stack.enter_async_context(_running(node))
            door = await stack.enter_async_context(open_wires({"clients": (None, node.address)}))
            node.link = door["clients"]
            nodes.append(node)
        world = World(folder, database, nodes)
        world.lacks = lacks
        balancer = await stack.enter_async_context(open_link(world.balance))
        background = await stack.enter_async_context(trio.open_nursery())
        background.start_soon(world.probe, balancer)
        try:
            await _start_runners(world, balancer.base_url)
            yield world
        finally:
            background.cancel_scope.cancel()
            for runner in world.runners:
                runner.kill()
                runner.tidy()


async def _open_node(
    stack: AsyncExitStack, folder: Path, short: Path, number: int, database: Database
) -> NemesisNode:
    ways = {}
    for machine in (database.primary, database.standby):
        folder_of_socket = short / f"{machine.folder.name}{number}"
        folder_of_socket.mkdir()
        ways[str(folder_of_socket)] = (folder_of_socket / SOCKET, machine.folder / SOCKET)
    hosts = ",".join(ways)
    wires = await stack.enter_async_context(open_wires(ways))
    dsn = f"postgresql://{ROLE}@/{DATABASE}?host={hosts}&target_session_attrs=read-write"
    own = folder / f"node-{number}"
    own.mkdir()
    clock = None if LIBRARY is None else Clock(own / "clock")
    server = ServerProcess(
        own,
        *("--database-url", dsn, "--runners", "0"),
        data=folder / "data",
        environment={} if clock is None else clock.environment,
    )
    return NemesisNode(server, [*wires.values()], clock)


@asynccontextmanager
async def _running(node: NemesisNode) -> AsyncIterator[None]:
    await node.start()
    try:
        yield
    finally:
        if node.server.running:
            node.server.kill()


async def _start_runners(world: World, base_url: str) -> None:
    async with world.visit() as node:
        for number in range(MEMBERS[Group.RUNNER]):
            own = world.folder / f"runner-{number}"
            own.mkdir()
            runner = NemesisRunner(own, base_url, await node.enrol(f"runner-{number}", TAG))
            runner.start()
            world.runners.append(runner)
