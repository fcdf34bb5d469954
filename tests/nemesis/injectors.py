"""Does to the processes of a world what a schedule says, and heals it again."""

from __future__ import annotations

import signal
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final

import trio

from tests.nemesis.crew import Client
from tests.nemesis.schedule import TOGETHER, Fault, Group, Kind
from tests.nemesis.world import World

SKEWS: Final = ("+300s", "-300s", "+3600s", "-2s", "+10d")
Tell = Callable[[str], None]


class Injectors:
    """One for each kind of fault. A fault is over when all is as it was before."""

    def __init__(self, world: World, holders: Sequence[Client], tell: Tell) -> None:
        self._world = world
        self._holders = holders
        self._tell = tell
        self.done: Counter[str] = Counter()
        """Faults that have healed, by kind."""
        # The schedule keeps faults apart. A busy machine heals later than it thinks: then these do.
        self._crowds = {group: trio.CapacityLimiter(most) for group, most in TOGETHER.items()}
        self._victims: defaultdict[tuple[Group, int], trio.Lock] = defaultdict(trio.Lock)
        self._acts: Mapping[Kind, Callable[[int, float], Awaitable[None]]] = {
            Kind.KILL_NODE: self._kill_node,
            Kind.FREEZE_NODE: self._freeze_node,
            Kind.CUT_DATABASE: self._cut_database,
            Kind.CUT_CLIENTS: self._cut_clients,
            Kind.SKEW_CLOCK: self._skew_clock,
            Kind.KILL_RUNNER: self._kill_runner,
            Kind.FREEZE_RUNNER: self._freeze_runner,
            Kind.LOSE_CLIENT: self._lose_client,
            Kind.FREEZE_CLIENT: self._freeze_client,
            Kind.FREEZE_STANDBY: self._freeze_standby,
            Kind.FILL_DISK: self._fill_disk,
            Kind.FAIL_OVER: self._fail_over,
        }

    async def suffer_all(self, faults: Iterable[Fault]) -> None:
        """Each at its time; returns when all have healed."""
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            for fault in faults:
                await trio.sleep_until(began + fault.at_s)
                nursery.start_soon(self.suffer, fault)

    async def suffer(self, fault: Fault) -> None:
        """One fault, from its beginning until it has healed."""
        who: Any = (fault.group, fault.whom)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._crowds[fault.group])
            await stack.enter_async_context(self._victims[who])
            self._tell(f"{fault.kind} {fault.whom}, {fault.lasts_s:.0f} s")
            await self._acts[fault.kind](fault.whom, fault.lasts_s)
        self.done[fault.kind] += 1
        self._tell(f"{fault.kind} {fault.whom} has healed")

    # --- nodes ----------------------------------------------------------------------------------------------

    async def _kill_node(self, whom: int, lasts_s: float) -> None:
        node = self._world.nodes[whom]
        node.server.kill()
        await trio.sleep(lasts_s)
        await node.start()

    async def _freeze_node(self, whom: int, lasts_s: float) -> None:
        server = self._world.nodes[whom].server
        server.send(signal.SIGSTOP)
        try:
            await trio.sleep(lasts_s)
        finally:
            server.send(signal.SIGCONT)

    async def _cut_database(self, whom: int, lasts_s: float) -> None:
        node = self._world.nodes[whom]
        node.cut_database()
        try:
            await trio.sleep(lasts_s)
        finally:
            node.join_database()

    async def _cut_clients(self, whom: int, lasts_s: float) -> None:
        link = self._world.nodes[whom].link
        assert link is not None
        link.hold()
        link.hang_up()
        try:
            await trio.sleep(lasts_s)
        finally:
            link.let_go()

    async def _skew_clock(self, whom: int, lasts_s: float) -> None:
        clock = self._world.nodes[whom].clock
        assert clock is not None
        clock.set(SKEWS[int(lasts_s * 1000) % len(SKEWS)])
        try:
            await trio.sleep(lasts_s)
        finally:
            clock.set_right()

    # --- runners and clients --------------------------------------------------------------------------------

    async def _kill_runner(self, whom: int, lasts_s: float) -> None:
        runner = self._world.runners[whom]
        runner.kill()
        await trio.sleep(lasts_s)
        runner.start()

    async def _freeze_runner(self, whom: int, lasts_s: float) -> None:
        process = self._world.runners[whom].process
        assert process is not None
        process.send_signal(signal.SIGSTOP)
        try:
            await trio.sleep(lasts_s)
        finally:
            process.send_signal(signal.SIGCONT)

    async def _lose_client(self, whom: int, lasts_s: float) -> None:
        holder = self._holders[whom]
        await holder.kill()
        await trio.sleep(lasts_s)
        await holder.start()

    async def _freeze_client(self, whom: int, lasts_s: float) -> None:
        holder = self._holders[whom]
        holder.send(signal.SIGSTOP)
        try:
            await trio.sleep(lasts_s)
        finally:
            holder.send(signal.SIGCONT)

    # --- the database ---------------------------------------------------------------------------------------

    async def _freeze_standby(self, _: int, lasts_s: float) -> None:
        standby = self._world.database.standby
        standby.freeze()
        try:
            await trio.sleep(lasts_s)
        finally:
            standby.thaw()

    async def _fill_disk(self, _: int, lasts_s: float) -> None:
        database = self._world.database
        disk = database.disk_of(database.primary)
        assert disk is not None
        await disk.fill()
        try:
            await trio.sleep(lasts_s)
        finally:
            await disk.empty()
        if not await database.primary.answers():
            self._tell("the primary ended on its full disk, and is started again")
            database.primary.kill()
            await database.primary.start({})
        await database.wait_for_standby()

    async def _fail_over(self, _: int, lasts_s: float) -> None:
        began = trio.current_time()
        database = self._world.database
        database.primary.kill()
        await database.take_over()
        self._tell("the standby has taken over")
        await database.make_standby()
        await trio.sleep_until(began + lasts_s)
