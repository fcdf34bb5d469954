"""One database for all nodes: the in-memory store behind a network, with outages and unknown outcomes."""

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any, Final

import trio

from sexton_engine import ActorSystem
from sexton_http.wire.stop_signal import Stop
from sexton_storage.clock import NodeClock
from sexton_storage.errors import StorageUnavailable
from sexton_storage.memory import Faults, MemoryStorage
from sexton_storage.memory.base import MemoryStore
from sexton_storage.memory.journal import MemoryJournal
from sexton_storage.memory.signals import MemorySignals
from sexton_storage.memory.tables import Tables
from sexton_storage.signals import Signal
from tests.simulation.product.strikes import CALLS, Strikes, name_of
from tests.simulation.world.processes import PROCESS, Machine, Process, State
from tests.simulation.world.run import World

TRIP_S: Final = (0.000_2, 0.001_5)
"""One way to the database, or back."""
SLOW_S: Final = 0.2
HANG_S: Final = (0.1, 2.0)
"""After which time a call notices that nobody answers."""


class Database:
    """The rows, and how the machine that keeps them is doing."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.machine = world.machine("database")
        self.tables = Tables(now=self.now_ms)
        self.rng = Random(world.rng.getrandbits(64))
        self.is_down = False
        self.lost_share = 0.0
        """The share of notifications that nobody hears."""
        self.late_s = 0.0
        """By how much the others may be late."""
        self.trip_s = TRIP_S
        self.ears: dict[Process, Inbox] = {}
        self.written = 0
        """Writes of all journals so far; while it stays, few rows can have changed."""
        self.strikes = Strikes()
        self.stops: dict[Process, Stop] = {}
        """How each server is told to end in good order."""
        self.systems: dict[Process, ActorSystem] = {}
        """The actors of each server that was started, for the judges."""

    def now_ms(self) -> int:
        """The clock of the database."""
        return round((self.world.timeline.start_s + self.world.now) * 1000)

    def is_slow(self) -> bool:
        """Whether a way takes much longer than it should."""
        return self.trip_s[1] > SLOW_S

    def is_reached_from(self, machine: Machine) -> bool:
        return not self.is_down and not self.world.network.is_cut(machine, self.machine)

    def open(self, machine: Machine) -> "NodeStorage":
        """Open a session of the program that asks."""
        return NodeStorage(self, machine)


class Link(Faults):
    """The way of one node to the database and back."""

    def __init__(self, database: Database, machine: Machine) -> None:
        super().__init__()
        self._database = database
        self._machine = machine
        self.clock = NodeClock(lambda: machine.monotonic_s() * 1000)

    async def pass_time(self) -> None:
        """The way there."""
        database = self._database
        sent = self._machine.monotonic_s() * 1000
        delays, timeline = database.world.delays, database.world.timeline
        await timeline.rest(delays.uniform(*database.trip_s))
        self.away = not database.is_reached_from(self._machine)
        if self.away:
            await timeline.rest(delays.uniform(*HANG_S))
        else:
            self.clock.observe(database.now_ms(), sent, self._machine.monotonic_s() * 1000)

    async def come_back(self) -> bool:
        """The way back; whether the answer has come."""
        world = self._database.world
        await world.timeline.rest(world.delays.uniform(*self._database.trip_s))
        return self._database.is_reached_from(self._machine)


class Delayed:
    """A store whose answers take their time, so that they are old when they come."""

    def __init__(self, store: object, link: Link, strikes: Strikes) -> None:
        self._store = store
        self._link = link
        self._strikes = strikes

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not inspect.iscoroutinefunction(found):
            return found

        call = f"{type(self._store).__name__}.{name}"
        writes = call in CALLS

        async def ask(*args: Any, **kwargs: Any) -> Any:
            answer = await found(*args, **kwargs)
            if writes:
                self._strikes.written(call)
            if not await self._link.come_back():
                raise StorageUnavailable("the session was lost before its answer came")
            return answer

        setattr(self, name, ask)
        return ask


class DelayedJournal(MemoryJournal):
    """Commits a batch, and hears of it later, or never."""

    def __init__(self, database: Database, link: Link, tell: Callable[[Any, Any], None] | None) -> None:
        super().__init__(database.tables, link)
        self._link = link
        self._database = database
        self._tell = tell

    async def run(self) -> None:
        while True:
            await self._awake.wait()
            self._awake = trio.Event()
            while self._queue:
                await self._link.pass_time()
                batch = list(self._queue)
                self._queue.clear()
                self._database.written += len(batch)
                answers = [self._answer(place, write) for place, (write, _) in enumerate(batch)]
                for (write, _), answer in zip(batch, answers, strict=True):
                    self._database.strikes.written(name_of(write), answer)
                if self._tell is not None:
                    for (write, _), answer in zip(batch, answers, strict=True):
                        self._tell(write, answer)
                news = list(self._tables.new_heads.items())
                self._tables.new_heads.clear()
                if not await self._link.come_back():
                    answers = [StorageUnavailable("the outcome is unknown")] * len(batch)
                    if self._tell is not None:
                        self._tell(None, f"{len(batch)} writes: the session was lost before the answer came")
                for (_, done), answer in zip(batch, answers, strict=True):
                    done(answer)
                for listener in self._listeners if news else ():
                    listener(news)


class Inbox(MemorySignals):
    """What the other nodes tell, and the way to tell them."""

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database
        self._heard: list[Sequence[Signal]] = []
        self._awake = trio.Event()

    def send(self, *signals: Signal) -> None:
        database, own = self._database, PROCESS.get()
        for process, ear in list(database.ears.items()):
            if process is own or not database.is_reached_from(process.machine):
                continue
            if database.lost_share and database.rng.random() < database.lost_share:
                continue
            late_s = database.world.delays.uniform(0.000_5, 0.003 + database.late_s)
            database.world.timeline.after(late_s, _put(ear, signals))

    def put(self, signals: Sequence[Signal]) -> None:
        self._heard.append(signals)
        self._awake.set()

    async def run(self) -> None:
        """Pass on what comes, until cancelled."""
        while True:
            await self._awake.wait()
            self._awake = trio.Event()
            heard, self._heard = self._heard, []
            for signals in heard:
                self.hear(signals)


def _put(ear: Inbox, signals: Sequence[Signal]) -> Callable[[], None]:
    return lambda: ear.put(signals)


class NodeStorage(MemoryStorage):
    """The storage of one node: rows that it shares with the others, and a link of its own."""

    def __init__(self, database: Database, machine: Machine) -> None:
        link = Link(database, machine)
        super().__init__(database.tables, link)
        self.link = link
        for name, store in list(vars(self).items()):
            if isinstance(store, MemoryStore):
                setattr(self, name, Delayed(store, link, database.strikes))
        tale = database.world.tale
        tell = None if tale is None else partial(tale.written, machine.name)
        self.journal = DelayedJournal(database, link, tell)
        self.clock = link.clock  # type: ignore[assignment]
        self.signals = self.inbox = Inbox(database)
        process = PROCESS.get()
        if process is not None:
            database.ears = {one: ear for one, ear in database.ears.items() if one.state is not State.DEAD}
            database.ears[process] = self.inbox
