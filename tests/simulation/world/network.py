"""Connections between machines: slow, cut, reset, left half open, and never in each other's order."""

from __future__ import annotations

import errno
import os
import zlib
from collections import deque
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Final

from tests.simulation.world.descriptors import Descriptor, Kernel
from tests.simulation.world.ground import Ground
from tests.simulation.world.processes import PROCESS, Machine, Process

Address = tuple[str, int]

WINDOW_BYTES: Final = 64 * 1024
"""How much one end sends that the other has not read."""
LOOPBACK_S: Final = (0.000_02, 0.000_1)
RETRIES_S: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""After which times a connection is asked for again that nobody answers."""
AGAIN_S: Final = (0.2, 3.0)
"""After a cut has healed it takes a while until what was lost is sent again."""


class Weather:
    """How the network is, for all that is sent from now on."""

    def __init__(self) -> None:
        self.latency_s = (0.000_2, 0.002)
        self.slow_share = 0.0
        """The share of packets that are lost once and sent again."""
        self.bytes_per_s = 50e6


class Blank(Descriptor):
    """A socket that is neither connected nor listens."""

    def __init__(self, kernel: Kernel, machine: Machine) -> None:
        super().__init__(kernel)
        self.machine = machine
        self.bound: Address | None = None


class Listener(Descriptor):
    """Takes connections at an address."""

    def __init__(self, network: Network, machine: Machine, port: int) -> None:
        super().__init__(network.kernel)
        self.machine = machine
        self.address = (machine.address, port)
        self._network = network
        self.waiting: deque[End] = deque()

    def can_read(self) -> bool:
        return bool(self.waiting)

    def accept(self) -> End:
        """Raises BlockingIOError when nobody has come."""
        if not self.waiting:
            raise BlockingIOError
        return self.waiting.popleft()

    def release(self, *, silent: bool = False) -> None:
        self._network.listeners.pop(self.address, None)
        for end in self.waiting:
            end.release(silent=silent)


class End(Descriptor):
    """One end of a connection."""

    def __init__(self, network: Network, machine: Machine, local: Address, remote: Address) -> None:
        super().__init__(network.kernel)
        self.network = network
        self.machine = machine
        self.local, self.remote = local, remote
        self.peer: End | None = None
        self.name = network.next_name()
        self.incoming = bytearray()
        self.connected = False
        self.ended = False
        """The other end sends no more."""
        self.has_finished = False
        """This one sends no more."""
        self.broken = 0
        """The error with which it broke."""
        self.is_released = False
        self.outstanding = 0
        self.last_due = 0.0
        self.held: list[Callable[[], None]] = []
        """What was sent into a cut, in order."""
        self.is_inside = False
        """Between two programs of one machine. What they say may differ between Pythons, as a pickle does, so
        neither its size nor its bytes decide or tell anything."""
        self.watchers: list[Callable[[], None]] = []
        """Called when the other end has gone."""

    def can_read(self) -> bool:
        return bool(self.incoming or self.ended or self.broken)

    def can_write(self) -> bool:
        return bool(self.broken or (self.connected and self.outstanding < WINDOW_BYTES))

    @property
    def is_hung_up(self) -> bool:
        return bool(self.ended or self.broken)

    def receive(self, most: int) -> bytes:
        """Raises BlockingIOError, or the error with which it broke."""
        if self.incoming:
            data = bytes(self.incoming[:most])
            del self.incoming[:most]
            peer = self.peer
            if peer is not None:
                peer.outstanding -= len(data)
                peer.wake()
            return data
        if self.broken:
            raise OSError(self.broken, os.strerror(self.broken))
        if self.ended:
            return b""
        raise BlockingIOError

    def send(self, data: bytes) -> int:
        """Give how much was taken. Raises BlockingIOError, or the error with which it broke."""
        if self.broken or self.has_finished:
            number = self.broken or errno.EPIPE
            raise OSError(number, os.strerror(number))
        room = WINDOW_BYTES - self.outstanding
        if room <= 0 or not self.connected:
            raise BlockingIOError
        part = bytes(data[:room])
        self.outstanding += len(part)
        self.network.carry(self, partial(self._arrive, part), 0 if self.is_inside else len(part))
        return len(part)

    def _arrive(self, part: bytes) -> None:
        peer = self._peer()
        if peer is None:
            return
        if self.is_inside:
            self.network.world.note("bytes", self.name)
        else:
            self.network.world.note("bytes", self.name, len(part), zlib.crc32(part))
        peer.incoming += part
        peer.wake()

    def finish(self) -> None:
        """Send nothing more. Raises OSError when it is broken."""
        if self.broken or not self.connected:
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
        if not self.has_finished:
            self.has_finished = True
            self.network.carry(self, self._arrive_end)

    def _arrive_end(self) -> None:
        peer = self._peer()
        if peer is not None:
            self.network.world.note("end", self.name)
            peer.ended = True
            peer.tell()

    def _peer(self) -> End | None:
        """The other end, if it is there; if it is closed, this one learns that."""
        peer = self.peer
        if peer is None or not peer.machine.is_on:
            return None  # Sent into the void.
        if peer.is_released:
            self.network.carry(peer, partial(self.break_off, errno.ECONNRESET))
            return None
        return peer

    def break_off(self, number: int) -> None:
        """Have this end broken, whatever the other one thinks."""
        if not (self.broken or self.is_released):
            self.network.world.note("broken", self.name, number)
            self.broken = number
            self.incoming.clear()
            self.tell()

    def tell(self) -> None:
        """Wake whoever waits, and tell those that watch for the other end's going."""
        self.wake()
        for watcher in self.watchers:
            watcher()

    def release(self, *, silent: bool = False) -> None:
        if self.is_released:
            return
        self.is_released = True
        if silent or not self.connected or self.broken:
            return
        if self.incoming:
            self.network.carry(self, self._arrive_reset)
        elif not self.has_finished:
            self.has_finished = True
            self.network.carry(self, self._arrive_end)

    def _arrive_reset(self) -> None:
        peer = self.peer
        if peer is not None and peer.machine.is_on:
            peer.break_off(errno.ECONNRESET)


class Network:
    """All machines and what is on its way between them."""

    def __init__(self, world: Ground, kernel: Kernel, rng: Random) -> None:
        self.world = world
        self.kernel = kernel
        self.weather = Weather()
        self.machines: dict[str, Machine] = {}
        """By address."""
        self.names: dict[str, list[Machine]] = {}
        """Further names, each of several machines; who asks is given them in any order."""
        self.listeners: dict[Address, Listener] = {}
        self._rng = rng
        self._cuts: set[tuple[str, str]] = set()
        """From one address to another; nothing gets through."""
        self._ends: list[End] = []
        self._names = 0
        self._port = 40_000

    def next_name(self) -> str:
        self._names += 1
        return f"c{self._names}"

    def find(self, name: str) -> list[Machine]:
        """All machines of that name."""
        found = [machine for machine in self.machines.values() if machine.name == name]
        found += self.names.get(name, [])
        self._rng.shuffle(found)
        return found

    # --- faults ---------------------------------------------------------------------------------------------

    def cut(self, one: Machine, other: Machine, *, both_ways: bool = True) -> None:
        """Let nothing through from one machine to the other; what is sent waits until that is healed."""
        self.world.note("cut", one, other, both_ways)
        self._cuts.add((one.address, other.address))
        if both_ways:
            self._cuts.add((other.address, one.address))

    def heal(self) -> None:
        """Let everything through again."""
        self.world.note("heal")
        self._cuts.clear()
        for end in self._ends:
            if end.held:
                self.world.timeline.after(self.world.delays.uniform(*AGAIN_S), partial(self._send_again, end))

    def reset(self, rng: Random, *, share: float, one_sided: bool = False) -> None:
        """Break that share of all connections; ``one_sided``: one of the ends does not learn of it."""
        for end in [end for end in self._ends if end.connected and not end.is_released]:
            if rng.random() < share:
                end.break_off(errno.ECONNRESET)
                if end.peer is not None and not one_sided:
                    end.peer.break_off(errno.ECONNRESET)

    def hang_up(self, machine: Machine) -> None:
        """Break all connections of a machine with others; both ends learn of it."""
        for end in [end for end in self._ends if end.machine is machine and end.connected]:
            peer = end.peer
            if end.is_released or end.is_inside or peer is None or peer.machine is machine:
                continue
            end.break_off(errno.ECONNRESET)
            peer.break_off(errno.ECONNRESET)

    # --- connections ----------------------------------------------------------------------------------------

    def listen(self, number: int, port: int) -> Listener:
        """Raises OSError when the port is taken."""
        blank = self.kernel.get(number)
        assert isinstance(blank, Blank)
        port = port or self._next_port()
        if (blank.machine.address, port) in self.listeners:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        listener = self.listeners[blank.machine.address, port] = Listener(self, blank.machine, port)
        self.kernel.replace(number, listener)
        return listener

    def connect(self, number: int, remote: Address) -> End:
        """Begin to connect; whoever waits for the end to be written to learns how that went."""
        blank = self.kernel.get(number)
        assert isinstance(blank, Blank)
        host = blank.machine.address if remote[0] == "127.0.0.1" else remote[0]
        end = End(self, blank.machine, (blank.machine.address, self._next_port()), (host, remote[1]))
        self.kernel.replace(number, end)
        self._ends.append(end)
        self._knock(end, 0)
        return end

    def _knock(self, end: End, attempt: int) -> None:
        machine = self.machines.get(end.remote[0])
        reached = machine is not None and machine.is_on and not self.is_cut(end.machine, machine)
        if machine is not None and reached:
            self.world.timeline.after(self._latency_s(end.machine, machine), partial(self._ask, end))
        elif attempt == len(RETRIES_S):
            end.break_off(errno.ETIMEDOUT)
        else:
            again = partial(self._knock, end, attempt + 1)
            self.world.timeline.after(RETRIES_S[attempt], again)

    def _ask(self, end: End) -> None:
        listener = self.listeners.get(end.remote)
        machine = self.machines[end.remote[0]]
        if not machine.is_on or end.is_released:
            return
        if listener is None:
            refuse = partial(end.break_off, errno.ECONNREFUSED)
            self.world.timeline.after(self._latency_s(machine, end.machine), refuse)
            return
        other = End(self, machine, end.remote, end.local)
        other.peer, end.peer, other.connected = end, other, True
        self._ends.append(other)
        listener.waiting.append(other)
        listener.wake()
        self.world.note("connected", end.name, other.name)
        self.carry(other, partial(_answered, end))

    def pair(self, machine: Machine, process: Process | None = None) -> tuple[int, int]:
        """Give the numbers of both ends of a connection inside a machine."""
        local = (machine.address, 0)
        one, other = End(self, machine, local, local), End(self, machine, local, local)
        one.peer, other.peer = other, one
        one.connected = other.connected = True
        one.is_inside = other.is_inside = True
        return self.kernel.open(one, process), self.kernel.open(other, process)

    def open_socket(self) -> int:
        """Give the number of a new socket of the machine that asks."""
        process = PROCESS.get()
        if process is None:
            raise OSError(errno.ENETDOWN, "only programs on a machine have a network")
        return self.kernel.open(Blank(self.kernel, process.machine))

    # --- on the way -----------------------------------------------------------------------------------------

    def carry(self, end: End, arrive: Callable[[], None], size: int = 0) -> None:
        """Have something arrive at the other end, after all that was sent before."""
        machine = end.machine if end.peer is None else end.peer.machine
        due = self.world.timeline.now + self._latency_s(end.machine, machine)
        end.last_due = max(end.last_due, due) + size / self.weather.bytes_per_s
        self.world.timeline.at(end.last_due, partial(self._deliver, end, machine, arrive))

    def _deliver(self, end: End, machine: Machine, arrive: Callable[[], None]) -> None:
        if end.held or self.is_cut(end.machine, machine):
            end.held.append(arrive)
        elif end.machine.is_on:
            arrive()

    def _send_again(self, end: End) -> None:
        machine = end.machine if end.peer is None else end.peer.machine
        if self.is_cut(end.machine, machine):
            return
        held, end.held = end.held, []
        for arrive in held if end.machine.is_on else ():
            arrive()

    def is_cut(self, one: Machine, other: Machine | None) -> bool:
        """Whether nothing gets through from one to the other."""
        return other is not None and (one.address, other.address) in self._cuts

    def _latency_s(self, one: Machine, other: Machine) -> float:
        if one is other:
            return self.world.delays.uniform(*LOOPBACK_S)
        latency_s = self.world.delays.uniform(*self.weather.latency_s)
        if self.weather.slow_share and self._rng.random() < self.weather.slow_share:
            latency_s += self._rng.uniform(*AGAIN_S)
        return latency_s

    def _next_port(self) -> int:
        self._port += 1
        return self._port

    def forget_closed(self) -> None:
        """Let go of connections that are closed on both sides."""
        self._ends = [end for end in self._ends if not _is_forgotten(end)]


def _is_forgotten(end: End) -> bool:
    return end.is_released and not end.held


def _answered(end: End) -> None:
    if not end.is_released:
        end.connected = True
        end.wake()
    elif end.peer is not None:
        end.peer.break_off(errno.ECONNRESET)
