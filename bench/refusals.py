"""What it costs the server to send somebody away, and how long its health takes meanwhile.

The server is told to call itself late at once (``--busy-at``), so that its doors let in the least that they
ever do. What is let in then costs as much as over that few connections alone; the rest of the processor time
was spent on those who were sent away. ``BENCH_SERVER_PYTHON`` names the interpreter of another checkout.
"""

import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import trio

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that the file also runs by itself

from bench import harness, machine, server
from bench.day_watch import probe
from bench.load import Begin, Client, Conversation, Job, Place, Send, open_client, percentile
from bench.product import Delivery, Site, payload

LATE: Final = ("--busy-at", "0.001")
AGENTS: Final = 64
CONNECTIONS: Final = 128
FEW: Final = {"webhook": 2, "person": 8}
"""As many as a door always lets in."""
REFUSED: Final = {"webhook": 503, "person": 429}
RUN_S: Final = 4.0
ROUNDS: Final = harness.size("ROUNDS", 3)
EVERY_S: Final = 0.02


class Cost(NamedTuple):
    """One round of one kind of request."""

    refused_us: float
    """The server's processor time for each that was sent away."""
    refused: float
    """How many a second."""
    taken: float
    health_ms: float
    """p99."""


def send_webhooks(place: Place, deliveries: Sequence[Delivery], per_second: float = 0) -> Conversation:
    """In a closed loop or at a rate, whatever the answer."""
    mine = deliveries[place.number % len(deliveries) :: place.connections] or deliveries
    turn = 0
    while True:
        for signed in mine:
            yield Send(
                signed.with_id(f"{place.began_ns}-{place.number}-{turn}"), place.due_ns(turn, per_second)
            )
            turn += 1


def ask(place: Place, data: bytes) -> Conversation:
    """The same for one request."""
    del place
    while True:
        yield Send(data)


Crowd = tuple[Begin, tuple[Any, ...]]


class Health:
    """Asks after the server's health on new connections, from a thread, for as long as the block lasts."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._ask)
        self.latencies_ns: list[int] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self.latencies_ns.sort()

    def _ask(self) -> None:
        while not self._over.wait(EVERY_S):
            began = time.perf_counter_ns()
            probe(self._site)
            self.latencies_ns.append(time.perf_counter_ns() - began)


async def measure_kind(client: Client, site: Site, pid: int, kind: str, crowd_of: Crowd) -> Cost:
    begin, arguments = crowd_of
    alone = await client.run(Job(site.address, begin, arguments, FEW[kind], RUN_S / 2), pid)
    assert alone.statuses[REFUSED[kind]] == 0, f"{kind}s were refused that have their places"
    with Health(site) as health:
        crowd = await client.run(Job(site.address, begin, arguments, CONNECTIONS, RUN_S), pid)
    refused = crowd.statuses[REFUSED[kind]]
    taken = crowd.answers - refused
    assert refused, f"no {kind} was refused"
    spent_s = crowd.server_cpu_s - taken * alone.server_us / 1e6
    wall_s = RUN_S + 0.5
    return Cost(
        1e6 * spent_s / refused, refused / wall_s, taken / wall_s, percentile(health.latencies_ns, 0.99) / 1e6
    )


async def measure() -> dict[str, Any]:
    costs: dict[str, list[Cost]] = {"webhook": [], "person": []}
    with open_client() as client:
        async with server.open_folder() as process:
            site = await process.start(*LATE)
            about = machine.describe_with(process.database_url())
            agents = await server.make_agents(client, site, AGENTS)
            await trio.sleep(1)
            kinds: dict[str, Crowd] = {
                "webhook": (send_webhooks, (server.deliveries_of(site, agents, payload()),)),
                "person": (ask, (site.get("/v1/whoami"),)),
            }
            for _ in range(ROUNDS):
                for kind, crowd in kinds.items():
                    costs[kind].append(await measure_kind(client, site, process.pid, kind, crowd))
    return harness.report("refusals", about, [row for kind in costs for row in _figures(kind, costs[kind])])


def _figures(kind: str, costs: list[Cost]) -> list[harness.Figure]:
    def spread(values: list[float]) -> harness.Spread:
        return harness.Spread.of(values)

    return [
        harness.Figure(
            f"{kind} refused, server's processor time", spread([c.refused_us for c in costs]), "µs"
        ),
        harness.Figure(f"{kind}s refused", spread([c.refused for c in costs]), "a second"),
        harness.Figure(f"{kind}s taken beside them", spread([c.taken for c in costs]), "a second"),
        harness.Figure(f"health meanwhile p99, {kind}s", spread([c.health_ms for c in costs]), "ms"),
    ]


def run() -> dict[str, Any]:
    return trio.run(measure)


if __name__ == "__main__":
    print(harness.line(run()))
