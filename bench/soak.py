"""Renewals over HTTP for a quarter of an hour at 70 % of what the server can do: memory, lateness, latency.

``python bench/soak.py [MINUTES] [WORKERS]``. The capacity is measured first, in a closed loop. Then batches
are due at fixed times, whatever became of those before; a latency counts from when its batch was due, so that
a stall counts for all that waited behind it. A renewal is late when it is answered after the end that the
lease was last given, or is refused: its runner would have lost its work.
"""

import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import orjson
import trio

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that the file also runs by itself

from bench import harness, machine, server
from bench.agents_by_hand import Agents
from bench.leases_by_hand import tidy
from bench.load import Client, Conversation, Job, Place, Send, open_client, percentile
from bench.product import Held, Site, enrol, mint_enrolment, renew_many, send_renewals

MINUTES = 15.0
LEASES = harness.size("LEASES", 25_600)
BATCH = 64
CONNECTIONS = 8
CAPACITY_S = 10.0
SHARE = 0.7
WARM_S = 2.0
FIRST_TERM_MS = 90_000
"""Until the load begins; after that a renewal gives each its term."""
TERM_MS = 30_000
SAMPLES = 100
"""Looks at the memory, over the whole run."""
NS_A_MINUTE = 60 * 10**9
FAMILY = "d"


def renew_on_time(place: Place, batches: Sequence[bytes], per_second: float) -> Conversation:
    """Batches at their times; notes ``(minute, latency in ns, least slack in ms, late renewals)`` of each.

    The ends are told by the database's clock, which on one machine is the wall clock.
    """
    mine = batches[place.number :: place.connections]
    ends: list[list[int]] = [[] for _ in mine]
    turn = 0
    while True:
        at = turn % len(mine)
        answer = yield Send(mine[at], place.due_ns(turn, per_second))
        now_ms = time.time() * 1000
        assert answer.status == 200, (answer.status, answer.body)
        results = answer.json()["results"]
        late, slack = lateness(results, ends[at], now_ms)
        ends[at] = [result.get("lease_expires_at") or 0 for result in results]
        minute = (answer.due_ns - place.count_from_ns) // NS_A_MINUTE
        place.notes.append((minute, answer.received_ns - answer.due_ns, slack, late))
        turn += 1


def lateness(results: Sequence[dict[str, Any]], ends: Sequence[int], now_ms: float) -> tuple[int, float]:
    """How many of a batch's renewals were late, and the least time that a lease had left.

    ``ends`` are those that the leases were given before; none at the first renewal.

    >>> lateness([{"ok": True}, {"ok": True}, {"ok": False}], [100, 80, 100], 90.0)
    (2, -10.0)
    """
    refused = [not result["ok"] for result in results]
    left = [end - now_ms for end in ends] or [float(TERM_MS)] * len(results)
    late = sum(was or time_left < 0 for was, time_left in zip(refused, left, strict=True))
    return late, min(left)


async def measure(minutes: float, workers: int) -> dict[str, Any]:
    with open_client() as client:
        async with server.open_folder() as process:
            site = await process.start(*server.UNHURRIED, "--workers", str(workers))
            ready = orjson.loads((process.folder / "ready.json").read_bytes())
            pids = [ready["pids"]["server"], *ready["pids"].get("workers", ())]
            about = machine.describe_with(process.database_url())
            agents, leases = await _lease(client, site, process)
            before = await server.fill_purse(client, site)
            batches = [renew_many(site, leases[at : at + BATCH]) for at in range(0, len(leases), BATCH)]
            capacity, granted = await _capacity(client, site, batches)
            harness.tell(f"{SHARE * capacity * BATCH:,.0f} renewals a second for {minutes:g} minutes")
            notes, sizes = await _soak(client, pids, _job(site, batches, SHARE * capacity, minutes))
            # Every renewal that was answered, those of the capacity included, is in the ledger.
            refused = sum(late for *_, late in notes)
            rows, charged = await trio.to_thread.run_sync(agents.metered)
            assert refused or rows == granted + len(notes) * BATCH, f"{rows} metering rows"
            gone = before - await server.balance(client, site)
            assert charged == gone > 0, f"the rows say {charged}, {gone} nanos are gone"
    return harness.report("soak", about, figures(notes, sizes, SHARE * capacity * BATCH))


async def _lease(client: Client, site: Site, process: server.Server) -> tuple[Agents, list[Held]]:
    [first] = await server.make_agents(client, site, 1)
    # One for each connection, as it is with runners: then workers have theirs to themselves.
    minted = await client.call_all(site.address, [mint_enrolment(site)] * CONNECTIONS)
    requests = [enrol(site, one["token"], f"bench-{number}", 256) for number, one in enumerate(minted)]
    runners = await client.call_all(site.address, requests)
    ids, tokens = zip(*((runner["runner_id"], runner["runner_token"]) for runner in runners), strict=True)
    agents = Agents(process.database_url(), FAMILY, first=first)
    harness.tell(f"{LEASES:,} agents, each under a lease")
    await trio.to_thread.run_sync(agents.enrich)
    await trio.to_thread.run_sync(agents.install, LEASES)
    await trio.to_thread.run_sync(lambda: agents.lease(LEASES, *ids, term_ms=FIRST_TERM_MS, together=BATCH))
    await trio.to_thread.run_sync(tidy, process.database_url())
    return agents, agents.held(LEASES, *tokens, together=BATCH)


async def _capacity(client: Client, site: Site, batches: list[bytes]) -> tuple[float, int]:
    """Batches a second in a closed loop, and how many renewals that were."""
    job = Job(site.address, send_renewals, (batches,), CONNECTIONS, CAPACITY_S, WARM_S)
    loaded = await client.run(job)
    return loaded.per_second, sum(granted[0] for granted in loaded.notes)


def _job(site: Site, batches: list[bytes], per_second: float, minutes: float) -> Job:
    return Job(site.address, renew_on_time, (batches, per_second), CONNECTIONS, 60 * minutes, WARM_S)


async def _soak(
    client: Client, pids: Sequence[int], job: Job
) -> tuple[list[tuple[int, int, float, int]], list[float]]:
    """What each batch noted, and the server's memory meanwhile, in MiB."""
    sizes: list[float] = []

    async def watch() -> None:
        while True:
            sizes.append(sum(map(machine.resident_bytes, pids)) / 2**20)
            await trio.sleep(job.run_s / SAMPLES)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        loaded = await client.run(job)
        nursery.cancel_scope.cancel()
    return loaded.notes, sizes


def figures(
    notes: Iterable[tuple[int, int, float, int]], sizes: Sequence[float], rate: float
) -> list[harness.Figure]:
    """The memory of the first fifth beside that of the last, the late, and the latency minute by minute."""
    by_minute: dict[int, list[int]] = {}
    slacks, late = [], 0
    for minute, latency_ns, slack, were_late in notes:
        late += were_late
        slacks.append(slack)
        if minute >= 0:
            by_minute.setdefault(minute, []).append(latency_ns)
    fifth = max(1, len(sizes) // 5)
    first, last = sizes[:fifth], sizes[-fifth:]
    growth = harness.once(median(last) / median(first))
    every = sorted(latency for minute in by_minute.values() for latency in minute)
    p99s = {minute: percentile(sorted(these), 0.99) / 1e6 for minute, these in sorted(by_minute.items())}
    return [
        harness.Figure("renewals asked for", harness.once(rate), "renewals/s"),
        harness.Figure("memory, first fifth", harness.Spread.of(first), "MiB"),
        harness.Figure(
            "memory, last fifth",
            harness.Spread.of(last),
            "MiB",
            "the first",
            growth,
            (harness.at_most_times(1.1),),
        ),
        harness.Figure("late renewals", harness.once(late), "renewals", budgets=(_NONE_LATE,)),
        harness.Figure("least time that a lease had left", harness.once(min(slacks) / 1000), "s"),
        harness.Figure("batch latency p50", harness.once(percentile(every, 0.5) / 1e6), "ms"),
        harness.Figure("batch latency p99", harness.once(percentile(every, 0.99) / 1e6), "ms"),
        harness.Figure("batch latency p99, of the minutes", harness.Spread.of(list(p99s.values())), "ms"),
        *(
            harness.Figure(f"p99, minute {minute + 1}", harness.once(p99), "ms")
            for minute, p99 in p99s.items()
        ),
    ]


_NONE_LATE = harness.at_most(0, "late")


def run(minutes: float = MINUTES, workers: float = 1) -> dict[str, Any]:
    return trio.run(measure, minutes, int(workers))


if __name__ == "__main__":
    print(harness.line(run(*map(float, sys.argv[1:3]))))
