"""How long the health route takes while strangers and one user attack, and whether others are still served.

Each attack runs in a process of its own for a few seconds, over loopback, with a bound on what it opens.
Copied into ``bench/`` of an older checkout this file measures that one's server.
"""

import multiprocessing
import resource
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import trio

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that the file also runs by itself

from bench import harness, machine, server
from bench.load import open_client, percentile
from bench.product import Site, create_agent
from bench.wire import request

ATTACK_S = float(harness.size("ATTACK_S", 8))
SETTLE_S = 1.5
"""An attack is under way for this long before the health route is asked."""
EVERY_S = 0.02
PATIENCE_S = 10.0
DESCRIPTORS = 8_192
SENDERS = 60
STREAMS = 2_100
ADDRESSES = 104
SESSIONS_EACH = 10
GUESSERS = 16
LARGE = 2 * 1024 * 1024
Target = tuple[str, int]


class Outcome(NamedTuple):
    """The latencies in ms, ascending, and what somebody else was answered meanwhile."""

    latencies: list[float]
    resident_mib: float
    beside: str


# An attack is a function at the top of the module, and runs until it is told to stop.


def _send_bodies(site: Site, stop: Any) -> None:
    """Strangers send nearly all of 2 MiB each, and hold."""
    head = _post("/v1/workspaces", LARGE)
    while not stop.is_set():
        lines = [line for _ in range(SENDERS) if (line := _open(site.address, head)) is not None]
        for line in lines:
            _push(line, b"x" * (LARGE - 1), stop)
        stop.wait(2.0)
        for line in lines:
            line.close()


def _send_numbers(site: Site, stop: Any) -> None:
    """A stranger sends 2 MiB of JSON with a number where text is due, one after the other."""
    body = b'{"token_name":1.5,"more":[' + b"1.5," * (LARGE // 4 - 16) + b"1]}"
    whole = _post("/v1/auth/sessions", len(body)) + body
    while not stop.is_set():
        line = _open(site.address, b"")
        if line is not None:
            _push(line, whole, stop)
            _status(line)
            line.close()


def _take_streams(site: Site, stop: Any, token: str, path: str) -> None:
    """One key with the role ``user`` opens more streams than the server has."""
    ask = request("GET", path, host=site.host, token=token)
    held = []
    for _ in range(STREAMS):
        if stop.is_set():
            break
        line = _open(site.address, ask)
        if line is not None:
            held.append(line)
    stop.wait()
    for line in held:
        line.close()


def _open_sessions(site: Site, stop: Any) -> None:
    """Device logins from many addresses, each as many as an address may begin at once."""
    ask = _post("/v1/auth/sessions", 2) + b"{}"
    for number in range(ADDRESSES * SESSIONS_EACH):
        if stop.is_set():
            return
        line = _open(
            site.address, ask, source=f"127.0.{1 + number % ADDRESSES // 200}.{1 + number % ADDRESSES % 200}"
        )
        if line is not None:
            _status(line)
            line.close()
    stop.wait()


def _guess_tokens(site: Site, stop: Any) -> None:
    """Strangers guess at runners' tokens over a few connections."""
    lines = [line for _ in range(GUESSERS) if (line := _open(site.address, b"")) is not None]
    number = 0
    while not stop.is_set():
        for line in lines:
            number += 1
            line.sendall(request("GET", "/v1/runners/me", host=site.host, token=f"zmb_r_{number:064x}"))
        for line in lines:
            _status(line)


def _idle(site: Site, stop: Any) -> None:
    """Nobody attacks."""
    del site
    stop.wait()


def _post(path: str, length: int) -> bytes:
    lines = (
        f"POST {path} HTTP/1.1",
        "Host: x",
        "Content-Type: application/json",
        f"Content-Length: {length}",
    )
    return "\r\n".join((*lines, "", "")).encode()


def _open(address: Target, data: bytes, source: str | None = None) -> socket.socket | None:
    try:
        bound = None if source is None else (source, 0)
        line = socket.create_connection(address, timeout=PATIENCE_S, source_address=bound)
        line.sendall(data)
    except OSError:
        return None
    return line


def _push(line: socket.socket, data: bytes, stop: Any) -> None:
    """As much as is taken within a second."""
    line.settimeout(1.0)
    try:
        for start in range(0, len(data), 65_536):
            if stop.is_set():
                return
            line.sendall(data[start : start + 65_536])
    except OSError:
        return


def _status(line: socket.socket) -> int:
    """0 when there is no answer."""
    line.settimeout(PATIENCE_S)
    try:
        first = line.recv(65_536)
    except OSError:
        return 0
    return int(first[9:12]) if first.startswith(b"HTTP/1.1 ") else 0


def _ask(address: Target, data: bytes, source: str | None = None) -> int:
    line = _open(address, data, source)
    if line is None:
        return 0
    status = _status(line)
    line.close()
    return status


@contextmanager
def _under(attack: Callable[..., None], *arguments: Any) -> Iterator[None]:
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    process = context.Process(target=attack, args=(arguments[0], stop, *arguments[1:]), daemon=True)
    process.start()
    try:
        time.sleep(SETTLE_S)
        yield
    finally:
        stop.set()
        process.join(PATIENCE_S)
        if process.is_alive():
            process.kill()
            process.join()


def _probe(site: Site) -> list[float]:
    """Open loop: a latency counts from when its request was due, so that no stall hides those behind it."""
    ask = request("GET", "/healthz", host=site.host)
    latencies, began = [], time.perf_counter()
    for turn in range(int(ATTACK_S / EVERY_S)):
        due = began + turn * EVERY_S
        if due - began > ATTACK_S + PATIENCE_S or time.perf_counter() - began > ATTACK_S + PATIENCE_S:
            latencies.append(1000 * (time.perf_counter() - due))
            continue
        time.sleep(max(0.0, due - time.perf_counter()))
        _ask(site.address, ask)
        latencies.append(1000 * (time.perf_counter() - due))
    return sorted(latencies)


def _resident_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def _outcome(
    site: Site, pid: int, beside: Callable[[], str], attack: Callable[..., None], *more: Any
) -> Outcome:
    with _under(attack, site, *more):
        latencies = _probe(site)
        return Outcome(latencies, _resident_mib(pid), beside())


async def measure() -> dict[str, Any]:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    with open_client() as client:
        async with server.open_folder() as process:
            site = await process.start()
            about = machine.describe_with(process.database_url())
            agent = await client.call(site.address, create_agent(site, "attacked"))
            new_key = {"key_name": "attacker", "role": "user"}
            key = (await client.call(site.address, site.post("/v1/api-keys", new_key, site.admin_token)))[
                "key"
            ]
            path = f"{site.workspace}/zombies/{agent['zombie_id']}/events/stream"

            def admin_streams() -> str:
                return f"the admin's stream: {_ask(site.address, site.get(path))}"

            def newcomer() -> str:
                status = _ask(site.address, _post("/v1/auth/sessions", 2) + b"{}", source="127.0.9.9")
                return f"a newcomer's device login: {status}"

            def admin_lists() -> str:
                return f"the admin's list: {_ask(site.address, site.get('/v1/api-keys'))}"

            def user_lists() -> str:
                told = request("GET", f"{site.workspace}/zombies", host=site.host, token=key)
                return f"a user's list: {_ask(site.address, told)}"

            attacks: list[tuple[str, Callable[[], str], Callable[..., None], tuple[Any, ...]]] = [
                ("alone", admin_lists, _idle, ()),
                ("bodies of strangers", user_lists, _send_bodies, ()),
                ("numbers for text", user_lists, _send_numbers, ()),
                ("streams of one user", admin_streams, _take_streams, (key, path)),
                ("guesses at runners' tokens", user_lists, _guess_tokens, ()),
                ("device logins", newcomer, _open_sessions, ()),
            ]
            outcomes: dict[str, Outcome] = {}
            for name, beside, attack, more in attacks:
                outcomes[name] = await trio.to_thread.run_sync(
                    _outcome, site, process.pid, beside, attack, *more
                )
    _show(outcomes)
    figures = [
        harness.Figure(f"health {word}, {name}", harness.once(percentile_ms(outcome, share)), "ms")
        for name, outcome in outcomes.items()
        for word, share in (("p50", 0.5), ("p99", 0.99))
    ]
    return harness.report("attacks", about, figures)


def percentile_ms(outcome: Outcome, share: float) -> float:
    return percentile([round(1e6 * latency) for latency in outcome.latencies], share) / 1e6


def _show(outcomes: dict[str, Outcome]) -> None:
    rows = [
        "| attack | health p50 ms | p99 ms | worst ms | server MiB | beside it |",
        "|---|---|---|---|---|---|",
    ]
    for name, outcome in outcomes.items():
        times = [f"{percentile_ms(outcome, share):.1f}" for share in (0.5, 0.99, 1.0)]
        rows.append(f"| {name} | {' | '.join(times)} | {outcome.resident_mib:.0f} | {outcome.beside} |")
    print("\n".join(rows), file=sys.stderr)


def run() -> dict[str, Any]:
    return trio.run(measure)


if __name__ == "__main__":
    print(orjson.dumps(run()).decode())
