"""What three attacks add to a server's memory, and how much of it comes back in a while of quiet.

Many readers come back at once to 4 MiB of frames that they missed; readers ask for them and do not
read; people list webhooks of 1 MiB. The memory is that of the server's process, as the kernel counts it: the
greatest since the attack began, then each second. Each attack meets a server of its own.
"""

import contextlib
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import trio

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that the file also runs by itself

from bench import harness, machine, server
from bench.load import Client, open_client
from bench.product import Site, delivery

RECONNECTS = harness.size("RECONNECTS", 500)
IDLERS = harness.size("IDLERS", 100)
PEOPLE = harness.size("PEOPLE", 8)
WEBHOOKS = harness.size("WEBHOOKS", 100)
QUIET_S = harness.size("QUIET_S", 30)
FRAMES = harness.size("FRAMES", 64)
TEXT = "x" * 64 * 1024
"""The text of one frame."""
MISSED = FRAMES * len(TEXT)
IDLE_S = 15.0
"""How long those who do not read stay; a server cuts them after 20 s."""
DIALLERS = 200
AGAIN_S = 1.0
BACK = 1.5
"""The memory has come back when it is at most this many times what it was before."""
MIB = 2**20
CLEAR_PEAK = "5"


class Process:
    """The memory of a server's process, and the greatest since it was asked to forget."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.before = self.now()

    def now(self) -> float:
        """MiB."""
        return machine.resident_bytes(self.pid) / MIB

    def forget(self) -> None:
        self.before = self.now()
        Path(f"/proc/{self.pid}/clear_refs").write_text(CLEAR_PEAK, encoding="ascii")

    def peak(self) -> float:
        """MiB."""
        return machine.resident_bytes(self.pid, "VmHWM") / MIB

    async def quiet(self) -> tuple[float, float]:
        """Seconds until the memory has come back (the whole time where it has not), and the last ratio."""
        began, back = perf_counter(), float(QUIET_S)
        while perf_counter() - began < QUIET_S:
            if self.now() <= BACK * self.before:
                back = perf_counter() - began
                break
            await trio.sleep(1)
        return back, self.now() / self.before


Attack = Callable[[Client, Site, str], Awaitable[None]]


async def measure() -> dict[str, Any]:
    figures: list[harness.Figure] = []
    about: dict[str, Any] = {}
    attacks: list[tuple[int, str, Attack, Attack]] = [
        (
            RECONNECTS,
            f"{RECONNECTS:,} reconnects to {MISSED / MIB:g} MiB",
            fill_stream,
            reconnect,
        ),
        (IDLERS, f"{IDLERS} readers that do not read", fill_stream, idle),
        (PEOPLE, f"{PEOPLE} people listing {WEBHOOKS} webhooks of 1 MiB", fill_history, read_lists),
    ]
    with open_client() as client:
        for count, name, fill, attack in attacks:
            if count == 0:
                continue
            harness.tell(name)
            async with server.open_folder() as process:
                site = await process.start()
                about = about or machine.describe_with(process.database_url())
                [agent] = await server.make_agents(client, site, 1)
                await fill(client, site, agent)
                await warm(site, agent)
                memory = Process(process.pid)
                memory.forget()
                began = perf_counter()
                await attack(client, site, agent)
                took = perf_counter() - began
                figures += await figures_of(name, memory, took)
    return harness.report("peaks", about, figures)


async def figures_of(name: str, memory: Process, took: float) -> list[harness.Figure]:
    added = memory.peak() - memory.before
    harness.tell(f"{memory.before:.0f} MiB before, {added:.0f} MiB more at the peak, {took:.1f} s")
    back, ratio = await memory.quiet()
    harness.tell(f"{memory.now():.0f} MiB after {back:.0f} s of quiet")
    return [
        harness.Figure(f"{name}: before", harness.once(memory.before), "MiB"),
        harness.Figure(f"{name}: added", harness.once(added), "MiB", budgets=(harness.at_most(256, "MiB"),)),
        harness.Figure(f"{name}: took", harness.once(took), "s"),
        harness.Figure(f"{name}: back within", harness.once(back), "s"),
        harness.Figure(
            f"{name}: of before, then", harness.once(ratio), "x", budgets=(harness.at_most(BACK, "x"),)
        ),
    ]


# --- what is there ------------------------------------------------------------------------------------------


async def fill_stream(client: Client, site: Site, agent: str) -> None:
    """Frames of a runner on the agent's stream."""
    [token] = await server.make_runners(client, site, 1, 1)
    await server.wake(client, site, server.deliveries_of(site, [agent], {"action": "completed"}), 1)
    [lease] = await server.lease_all(client, site, token, 1)
    frames = [{"kind": "chunk", "text": TEXT}] * 8
    for _ in range(FRAMES // len(frames)):
        body = {"frames": frames, "fencing_token": lease.fencing_token}
        path = f"/v1/runners/me/leases/{lease.lease_id}/activity"
        await client.call(site.address, site.post(path, body, token=token))


async def fill_history(client: Client, site: Site, agent: str) -> None:
    """Webhooks as large as they may be."""
    one = delivery(site, agent, {"action": "completed", "pad": "x" * (MIB - 1024)})
    for number in range(WEBHOOKS):
        await client.call(site.address, one.with_id(f"large-{number}"))


async def warm(site: Site, agent: str) -> None:
    """One of each, small: what is loaded at first use is no part of an attack."""
    await listen(site, f"{stream_of(site, agent)}?last_event_id=999999999", 1)
    await listen(site, f"{site.workspace}/events?limit=1", 1)
    await trio.sleep(2)


# --- attacks ------------------------------------------------------------------------------------------------


async def reconnect(_client: Client, site: Site, agent: str) -> None:
    """All come back at once, and each reads all that it missed."""
    places = trio.CapacityLimiter(DIALLERS)
    path = f"{stream_of(site, agent)}?last_event_id=0"

    async def come() -> None:
        await until_answered(partial(listen, site, path, MISSED, places=places))

    async with trio.open_nursery() as nursery:
        for _ in range(RECONNECTS):
            nursery.start_soon(come)


async def idle(_client: Client, site: Site, agent: str) -> None:
    """Each asks for all and reads none of it."""
    async with trio.open_nursery() as nursery:
        for _ in range(IDLERS):
            nursery.start_soon(stay, site, f"{stream_of(site, agent)}?last_event_id=0")


async def read_lists(_client: Client, site: Site, _agent: str) -> None:
    """Each reads a list of all webhooks, three times."""
    async with trio.open_nursery() as nursery:
        for _ in range(PEOPLE):
            nursery.start_soon(read_thrice, site)


async def read_thrice(site: Site) -> None:
    for _ in range(3):
        await until_answered(partial(listen, site, f"{site.workspace}/events?limit=200", 1, whole=True))


async def until_answered(ask: Callable[[], Awaitable[bool]]) -> None:
    """Whoever is refused or cut comes again."""
    if not await ask():
        await trio.sleep(AGAIN_S)
        await until_answered(ask)


def stream_of(site: Site, agent: str) -> str:
    return f"{site.workspace}/zombies/{agent}/events/stream"


async def stay(site: Site, path: str) -> None:
    stream = await trio.open_tcp_stream(*site.address)
    async with stream:
        await stream.send_all(site.get(path))
        await trio.sleep(IDLE_S)


async def listen(
    site: Site, path: str, enough: int, *, whole: bool = False, places: trio.CapacityLimiter | None = None
) -> bool:
    """Read ``enough`` bytes of an answer, or with ``whole`` all of it; False when it was refused or cut."""
    async with contextlib.AsyncExitStack() as stack:
        if places is not None:
            await places.acquire()
        try:
            stream = await stack.enter_async_context(await trio.open_tcp_stream(*site.address))
            await stream.send_all(site.get(path))
            head = await stream.receive_some(65536)
        except (OSError, trio.BrokenResourceError):
            return False
        finally:
            if places is not None:
                places.release()
        if b" 200 " not in head.partition(b"\r\n")[0]:
            return False
        fields = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        had, wanted = len(head), int(fields) if whole and fields.isdigit() else enough
        while had < wanted:
            try:
                part = await stream.receive_some(262_144)
            except trio.BrokenResourceError:
                return False
            if not part:
                return False
            had += len(part)
    return True


def run() -> dict[str, Any]:
    return trio.run(measure)


if __name__ == "__main__":
    print(harness.line(run()))
