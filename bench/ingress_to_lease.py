"""How long an event takes from its signed webhook to a waiting runner, and from a lost lease to the next.

An open loop: webhooks are due at a fixed rate, whatever became of those before, and a latency counts from
when its webhook was due. Both ends are seen by one process, so one monotonic clock tells both times. The
reclaim is told by the wall clock of this machine, which is also the database's.
"""

import sys
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import trio

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that the file also runs by itself

from bench import harness, machine, server
from bench.load import Client, Conversation, Job, Loaded, Place, Send, open_client, percentile
from bench.product import Delivery, Held, Site, held, payload, poll, report

AGENTS = 50
SENDERS = 16
SLOTS = 16
"""Long polls that are kept open, two for each of eight runners."""
RUNNERS = 8
WEBHOOKS_A_SECOND = 50
RUN_S = 15.0
WARM_S = 1.0
WAIT_MS = 2000
EXPIRING = 20
"""Leases that end together, their runner silent."""
TERM_S = 30.0
LEASES_A_POLL = 64


def meet(place: Place, site: Site, deliveries: Sequence[Delivery], tokens: Sequence[str]) -> Conversation:
    """Some connections send, the others are runners' slots."""
    if place.number < SENDERS:
        return _send(place, deliveries)
    return _take(place, site, tokens[place.number % len(tokens)])


def _send(place: Place, deliveries: Sequence[Delivery]) -> Conversation:
    every_ns = int(1e9 / WEBHOOKS_A_SECOND)
    turn = place.number
    while True:
        due_ns = place.began_ns + turn * every_ns
        signed = deliveries[turn % len(deliveries)].with_id(str(uuid.uuid4()))
        answer = yield Send(signed, due_ns)
        assert answer.status == 202, (answer.status, answer.body)
        place.notes.append(("sent", answer.json()["event_id"], answer.due_ns, place.counts(answer.due_ns)))
        turn += SENDERS


def _take(place: Place, site: Site, token: str) -> Conversation:
    asked = poll(site, token, wait_ms=WAIT_MS)
    while True:
        answer = yield Send(asked, timed=False)
        assert answer.status == 200, (answer.status, answer.body)
        for lease in held(token, answer.json()):
            place.notes.append(("leased", lease.event_id, answer.received_ns, True))
            done = yield Send(report(site, lease), timed=False, must=True)
            assert done.status == 200, (done.status, done.body)


def take_again(place: Place, site: Site, token: str, awaited: frozenset[str]) -> Conversation:
    """Wait for leases on these events; notes each with the wall clock's time, in ms.

    Events that came in the last moment of the open loop may be waiting too, and are passed over.
    """
    asked = poll(site, token, most=LEASES_A_POLL, wait_ms=WAIT_MS)
    while len(place.notes) < len(awaited):
        answer = yield Send(asked, timed=False)
        assert answer.status == 200, (answer.status, answer.body)
        now_ms = time.time() * 1000
        leases = held(token, answer.json())
        place.notes.extend((lease, now_ms) for lease in leases if lease.event_id in awaited)


async def measure() -> dict[str, Any]:
    with open_client() as client:
        async with server.open_folder() as process:
            site = await process.start(*server.UNHURRIED)
            about = machine.describe_with(process.database_url())
            agents = await server.make_agents(client, site, AGENTS + EXPIRING)
            silent, heir, *tokens = await server.make_runners(client, site, 2 + RUNNERS, slots=64)
            deliveries = server.deliveries_of(site, agents, payload())
            await server.wake(client, site, deliveries[AGENTS:], 1)
            doomed = await server.lease_all(client, site, silent, EXPIRING)
            harness.tell(f"{WEBHOOKS_A_SECOND} webhooks a second for {RUN_S:g} s")
            loaded = await _meet(client, site, deliveries[:AGENTS], tokens)
            harness.tell(f"waiting for {EXPIRING} leases to run out")
            reclaims = await _reclaims(client, site, heir, doomed)
    return harness.report("ingress_to_lease", about, [*_latencies(loaded), *_figures_of(reclaims)])


async def _meet(client: Client, site: Site, deliveries: list[Delivery], tokens: list[str]) -> Loaded:
    job = Job(site.address, meet, (site, deliveries, tokens), SENDERS + SLOTS, RUN_S, WARM_S)
    return await client.run(job)


def _latencies(loaded: Loaded) -> list[harness.Figure]:
    sent = {event_id: (at, counts) for kind, event_id, at, counts in loaded.notes if kind == "sent"}
    leased = [(event_id, at) for kind, event_id, at, _ in loaded.notes if kind == "leased"]
    assert len({event_id for event_id, _ in leased}) == len(leased), "one event was leased twice"
    missing = sent.keys() - {event_id for event_id, _ in leased}
    # Those that came in the very last moment may meet polls that are over.
    assert len(missing) <= SLOTS, f"{len(missing)} of {len(sent)} events were never leased"
    took = sorted(at - sent[event_id][0] for event_id, at in leased if sent[event_id][1])
    assert len(took) >= 0.98 * RUN_S * WEBHOOKS_A_SECOND, f"only {len(took)} could be counted"

    def figure(share: float, label: str, *budgets: harness.Budget) -> harness.Figure:
        return harness.Figure(label, harness.once(percentile(took, share) / 1e6), "ms", budgets=budgets)

    return [
        figure(0.5, "webhook to lease p50", harness.at_most(10, "ms")),
        figure(0.99, "webhook to lease p99", harness.at_most(50, "ms")),
        figure(1.0, "webhook to lease, slowest"),
        harness.Figure("webhook to 202 p50", harness.once(loaded.latency_ms(0.5)), "ms"),
    ]


async def _reclaims(client: Client, site: Site, token: str, doomed: list[Held]) -> list[float]:
    """From each lease's end to its event's next lease, in ms."""
    awaited = frozenset(lease.event_id for lease in doomed)
    job = Job(site.address, take_again, (site, token, awaited), 2, run_s=TERM_S + 10, warm_s=0)
    again = {lease.event_id: (lease, at_ms) for lease, at_ms in (await client.run(job)).notes}
    assert again.keys() == awaited, f"{len(awaited) - len(again)} expired leases were not given again"
    for lease in doomed:
        assert again[lease.event_id][0].fencing_token > lease.fencing_token
    return [again[lease.event_id][1] - lease.expires_at for lease in doomed]


def _figures_of(reclaims: list[float]) -> list[harness.Figure]:
    assert min(reclaims) >= 0, "a lease was taken back before its end"
    spread = harness.Spread.of(reclaims)
    worst = harness.Spread(spread.high, spread.low, spread.high)
    return [harness.Figure("reclaim after expiry, slowest of 20", worst, "ms", budgets=(_RECLAIM,))]


_RECLAIM = harness.at_most(1000, "ms")


def run() -> dict[str, Any]:
    return trio.run(measure)


if __name__ == "__main__":
    print(harness.line(run()))
