"""Looks at the server on the mixed day: asks its health, and notes its memory and processor time."""

import socket
import threading
import time
from dataclasses import dataclass, field
from typing import Final

from bench import machine
from bench.day_clients import HUNG_UP, UNANSWERED
from bench.day_plan import Plan
from bench.product import Site
from bench.wire import parse, request

PROBE_EVERY_S: Final = 0.1
PROBE_PATIENCE_S: Final = 5.0
SAMPLE_EVERY_S: Final = 0.5


@dataclass(slots=True)
class Watched:
    """What was seen."""

    health: list[tuple[int, int, int]] = field(default_factory=list)
    """When each was due, its status and its latency, in ns."""
    sizes: list[tuple[int, float]] = field(default_factory=list)
    """When, and the server's memory in MiB."""
    processor_s: list[tuple[int, float]] = field(default_factory=list)
    """When, and the processor time so far."""


def watch(plan: Plan, pid: int) -> Watched:
    """Until the end of the day."""
    watched = Watched()
    sampling = threading.Thread(target=_sample, args=(plan, pid, watched))
    sampling.start()
    due_ns = plan.phases[0].begin_ns
    while due_ns < plan.end_ns:
        time.sleep(max(0.0, (due_ns - time.perf_counter_ns()) / 1e9))
        status = probe(plan.site)
        now = time.perf_counter_ns()
        watched.health.append((due_ns, status, now - due_ns))
        # One probe at a time: whoever looks after a server waits for its answer before he asks again.
        due_ns = max(due_ns + int(PROBE_EVERY_S * 1e9), now)
    sampling.join()
    return watched


def probe(site: Site) -> int:
    """Ask after health on a connection of its own, as a balancer or an operator does; the status."""
    asked = request("GET", "/healthz", host=site.host, connection="close")
    had = b""
    try:
        with socket.create_connection(site.address, timeout=PROBE_PATIENCE_S) as line:
            line.sendall(asked)
            while data := line.recv(65536):
                had += data
                if (whole := parse(had)) is not None:
                    return whole[0]
    except TimeoutError:
        return UNANSWERED
    except OSError:
        return HUNG_UP
    return HUNG_UP


def _sample(plan: Plan, pid: int, watched: Watched) -> None:
    while (now := time.perf_counter_ns()) < plan.end_ns:
        try:
            watched.sizes.append((now, machine.resident_bytes(pid) / 2**20))
            watched.processor_s.append((now, machine.processor_s(pid)))
        except (OSError, StopIteration):
            return  # The server has ended, which the senders notice as well.
        time.sleep(SAMPLE_EVERY_S)
