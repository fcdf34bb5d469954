"""A mixed day in open loop, at 1 x to 16 x an ordinary load: what is finished while ever more comes.

Signed webhooks, people's messages, a console's pages, streams, runners that poll, work and renew, and agents
on a schedule, all at once. Senders send at their times whatever became of what they sent before, so that a
slow server is not spared. After the last level the load falls back to 1 x: how long until all is well again?

``BENCH_RATE`` sets webhooks a second at 1 x, ``BENCH_STREAMS``, ``BENCH_RUNNERS`` and ``BENCH_SLOTS`` (of
each) who is there all day, ``BENCH_SECONDS`` how long a level takes, and ``BENCH_FACTORS`` (words) which
levels there are. ``BENCH_SERVER_OPTIONS`` is what the server is started with. ``BENCH_SERVER_PYTHON`` names
the interpreter of another checkout to run the server, so that two releases meet the same clients. Senders
and readers stand behind the server at the processor, and the table says how much of it all clients had.
"""

import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import trio

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that the file also runs by itself

from bench import harness, machine, server
from bench.day_clients import Phase
from bench.day_figures import Day, figures, levels, recovery
from bench.day_loads import follow, work
from bench.day_plan import PAGE, STEER, WEBHOOK, Plan
from bench.day_senders import send
from bench.day_watch import watch
from bench.load import Client, open_client
from bench.product import SKILL, Site, payload

FACTORS: Final = tuple(int(word) for word in os.environ.get("BENCH_FACTORS", "1 2 4 8 16").split())
OPTIONS: Final = os.environ.get("BENCH_SERVER_OPTIONS", "").split()
SECONDS = harness.size("SECONDS", 20)
RECOVERY_S = 20
WARM_S = 6
"""At 1 x, before anything counts."""
OPENING_S = 6
"""Until then all streams are open."""
AGENTS = harness.size("AGENTS", 200)
CRON_AGENTS = 20
RATE = harness.size("RATE", 50)
STREAMS = harness.size("STREAMS", 500)
RUNNERS = harness.size("RUNNERS", 25)
SLOTS = harness.size("SLOTS", 8)
TRIGGER_CRON = """---
name: {name}
runtime: command
triggers:
  - type: cron
    schedule: "* * * * *"
---
"""


def phases_from(begin_ns: int) -> tuple[Phase, ...]:
    """The warm-up, the levels, and the recovery."""
    lengths = [("warm-up", 1, WARM_S), *((f"{f} x", f, SECONDS) for f in FACTORS), ("after", 1, RECOVERY_S)]
    phases: list[Phase] = []
    for name, factor, seconds in lengths:
        phases.append(Phase(name, factor, begin_ns, begin_ns + seconds * 10**9))
        begin_ns = phases[-1].end_ns
    return tuple(phases)


async def _plan(client: Client, site: Site) -> Plan:
    agents = await server.make_agents(client, site, AGENTS)
    await client.call_all(site.address, [_create_cron(site, f"cron-{n}") for n in range(CRON_AGENTS)])
    await server.fill_purse(client, site)
    runners = await server.make_runners(client, site, RUNNERS, SLOTS)
    deliveries = [one for n in range(5) for one in server.deliveries_of(site, agents, payload(n))]
    return Plan(
        site=site,
        phases=phases_from(time.perf_counter_ns() + OPENING_S * 10**9),
        rates={WEBHOOK: RATE, STEER: RATE / 5, PAGE: RATE / 25},
        deliveries=tuple(deliveries),
        agents=tuple(agents),
        runners=tuple(runners),
        slots=SLOTS,
        streams=STREAMS,
    )


def _create_cron(site: Site, name: str) -> bytes:
    files = {
        "source_markdown": SKILL.format(name=name),
        "trigger_markdown": TRIGGER_CRON.format(name=name),
    }
    return site.post(f"{site.workspace}/zombies", files)


async def _live(plan: Plan, pid: int) -> Day:
    """Everybody in a process of his own, until the end of the day."""
    with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as pool:
        sending, working = pool.submit(send, plan), pool.submit(work, plan)
        following = pool.submit(follow, plan)
        for phase in plan.phases:
            harness.tell(f"{phase.name}: {phase.seconds:g} s")
        watched = await trio.to_thread.run_sync(watch, plan, pid)
        done = trio.to_thread.run_sync
        sent, sender = await done(sending.result)
        worked, worker = await done(working.result)
        followed, follower = await done(following.result)
    return Day(plan.phases, sent, worked, followed, watched, (sender, worker, follower))


def check(day: Day) -> None:
    """Raises AssertionError: no event is finished twice, whatever the load."""
    twice = [
        event for event, times in Counter(event for _, event in day.worked.finished).items() if times > 1
    ]
    assert not twice, f"{len(twice)} events were finished twice, the first is {twice[0]}"


async def measure() -> dict[str, Any]:
    with open_client() as client:
        async with server.open_folder() as process:
            site = await process.start(*OPTIONS)
            about = machine.describe_with(process.database_url())
            harness.tell(f"{AGENTS} agents, {RUNNERS} runners with {SLOTS} slots, {STREAMS} streams")
            day = await _live(await _plan(client, site), process.pid)
    check(day)
    return harness.report("day", about, figures(day)) | {"text": f"{levels(day)}\n{recovery(day)}"}


def run() -> dict[str, Any]:
    return trio.run(measure)


if __name__ == "__main__":
    result = run()
    print(result["text"])
    print(harness.line(result))
