"""Floods: runs that do too much of something, and how much time their neighbour's lease has left meanwhile.

``python -m tests.runner.floods FOLDER`` starts one runner as the user that it is started by, gives it a
victim that does nothing but wait, and one flood after another beside it. It prints one JSON object: by the
name of each flood how it ended and the least slack of the victim, and what became of the victim. Slack is
what is left of the lease's term when a renewal arrives.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import trio

from tests.fakes.control_plane import TOKEN, Plane, open_plane

TERM_S = 30.0
RENEW_S = 0.25  # Far more often than a runner does: each renewal is a look at how late it may come.
WALL_S = float(os.environ.get("SEXTON_FLOOD_WALL_S", "1.5"))
"""Longer on a slow machine, to see each flood reach its own bound."""
ALONE_S = 1.0
PATIENCE_S = 60.0
LONGER_WALLS_S = (4, 12, 36)
"""For a flood that had not flooded yet when its time was over: it is tried again."""
ROOT = Path(__file__).resolve().parents[2]
WAIT = "Wait.\n```sh\nsexton-step approve --action wait\n```\n"
CONNECTIONS, FILES = 10_000, 100_000
MANY_CONNECTIONS = f"{CONNECTIONS:,} connections"
HELD = 64
HEAD, FOOT = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"
KEY = "\n".join([HEAD, *(hashlib.sha256(bytes([n])).hexdigest() for n in range(26)), FOOT])
SECRETS = {"deploy": {"key": KEY}}
PACED = """
import sys
from sexton_runner.__main__ import read_arguments
from sexton_runner.main import main
from sexton_runner.timing import Timing
sys.exit(main(read_arguments(sys.argv[1:]), timing=Timing(renew_s={renew_s}, park_after_s=1e6)))
"""


def sh(source: str) -> str:
    return f"Flood.\n```sh\n{source}\n```\n"


def python(source: str) -> str:
    head = "import os, sys\nrequests = os.environ['SEXTON_RUN'] + '/requests'"
    return f"Flood.\n```python\n{head}\n{source}\n```\n"


NETWORK = "import socket\nproxy = ('127.0.0.1', 3128)\nport = int(os.environ['PORT'])"
STOPPED = frozenset({"resource_kill", "timeout_kill"})


@dataclass(frozen=True, slots=True)
class Flood:
    """A run that was stopped for too much says of what; on a slow machine its time may be over before.

    ``ends`` are its labels, None for one that did well; ``by_user`` those that bounds of a user may stop.
    """

    instructions: str
    says: str = ""
    ends: frozenset[str | None] = STOPPED
    by_user: bool = False


FLOODS: Mapping[str, Flood] = {
    "short lines": Flood(
        sh(
            "lines=$(for n in 1 2 3 4 5 6 7 8; do printf 'step QQ==\\n'; done)\n"
            'while :; do printf \'%s\\n\' "$lines"; done >"$SEXTON_RUN/requests"'
        ),
        says="4 MiB",
    ),
    "steps": Flood(
        python("with open(requests, 'wb', 0) as f:\n    while True: f.write(b'step QQ==\\n' * 400)"),
        says="4 MiB",
    ),
    "1,500 asks": Flood(
        python(
            "with open(requests, 'wb', 0) as f:\n"
            "    for n in range(1500): f.write(b'ask %d QQ== - - - -\\n' % n)\n"
            "import time; time.sleep(60)"
        ),
        says="32 approvals at a time",
    ),
    "empty lines": Flood(
        python("with open(requests, 'wb', 0) as f:\n    while True: f.write(b'\\n' * 4096)"), says="4 MiB"
    ),
    "binary": Flood(sh('head -c 20000000 /dev/urandom >"$SEXTON_RUN/requests"'), says="4 MiB"),
    "one endless line": Flood(
        python("with open(requests, 'wb', 0) as f:\n    while True: f.write(b'x' * 4096)"), says="4 MiB"
    ),
    "output to redact": Flood(
        python(f"while True: sys.stdout.write({KEY[:90]!r} * 50 + {KEY!r})"), says="8 MiB"
    ),
    "errors to redact": Flood(
        python(f"while True: sys.stderr.write({KEY[-90:]!r} * 50 + {KEY[:400]!r})"), says="8 MiB"
    ),
    "10,000 open files": Flood(
        python(
            "kept = []\n"
            "for _ in range(50):\n"
            "    try:\n"
            "        if os.fork() == 0: break\n"
            "    except OSError: break\n"
            "try:\n"
            "    while True: kept.append(os.open('/dev/null', os.O_RDONLY))\n"
            "except OSError: pass\n"
            "import time; time.sleep(60)"
        ),
        by_user=True,
    ),
    "processor hogs": Flood(
        python("for _ in range(40):\n    try: os.fork()\n    except OSError: break\nwhile True: pass"),
        by_user=True,
    ),
    "a full disk": Flood(
        sh("n=0; while :; do n=$((n + 1)); head -c 1000000 /dev/zero >more$n || exit 1; done"),
        says="hold",
        ends=frozenset({"disk_kill"}),
        by_user=True,
    ),
    MANY_CONNECTIONS: Flood(
        python(
            f"{NETWORK}\nimport json\n"
            "kept, held, came = [], [], dict.fromkeys(('tried', 'refused', 'taken', 'unanswered'), 0)\n"
            "def let_go(one):\n"
            "    one.settimeout(20)\n"
            "    try: what = 'refused' if one.recv(64) is not None else ''\n"
            "    except ConnectionError: what = 'refused'\n"
            "    except TimeoutError: what = 'taken'\n"
            "    came[what] += 1; one.close()\n"
            f"for n in range({CONNECTIONS}):\n"
            "    one = socket.socket(); one.settimeout(0.2)\n"
            "    came['tried'] += 1\n"
            "    try: one.connect(proxy)\n"
            "    except OSError: came['unanswered'] += 1; continue\n"
            # Those have all the places that a run may have, and keep them.
            f"    (kept if len(kept) < {HELD} else held).append(one)\n"
            "    if len(held) > 100: let_go(held.pop(0))\n"
            "    if n % 500 == 499: print(json.dumps(came), flush=True)\n"
        ),
        ends=frozenset({None, "timeout_kill"}),
        by_user=True,
    ),
    "a stream without end": Flood(
        python(
            f"{NETWORK}\nimport time\n"
            "while True:\n"
            "    with socket.socket() as one:\n"
            "        one.connect(proxy)\n"
            "        one.sendall(b'GET http://localhost:%d/ HTTP/1.1\\r\\nHost: localhost:%d\\r\\n\\r\\n'"
            " % (port, port))\n"
            "        while one.recv(1 << 16): pass\n"
            "    time.sleep(0.01)"
        ),
        ends=frozenset({"timeout_kill"}),
    ),
    f"{FILES:,} files": Flood(
        python(
            f"os.mkdir('out')\nfor n in range({FILES}):\n"
            "    if n % 2000: os.symlink('x', f'out/{n}')\n"
            "    else: open(f'out/{n}', 'w').write('x')"
        ),
        says="entries",
        ends=frozenset({"files_refused", "timeout_kill"}),
    ),
    "a proxy of its own": Flood(
        python(
            f"{NETWORK}\n"
            "server = socket.create_server(('0.0.0.0', 3129), backlog=512)\n"
            "for _ in range(8):\n"
            "    if os.fork() == 0:\n"
            "        while True:\n"
            "            near = server.accept()[0]; far = socket.create_connection(proxy)\n"
            "            far.sendall(near.recv(4096)); near.sendall(far.recv(4096))\n"
            "            near.close(); far.close()\n"
            "while True:\n"
            "    with socket.create_connection(('127.0.0.1', 3129)) as one:\n"
            "        one.sendall(b'CONNECT a.example:443 HTTP/1.1\\r\\nHost: a.example:443\\r\\n\\r\\n')\n"
            "        one.recv(4096)"
        ),
        ends=frozenset({"timeout_kill"}),
    ),
}


class Timed(list[tuple[str, Any]]):
    """Calls of a control plane; notes when a lease was renewed."""

    def __init__(self) -> None:
        super().__init__()
        self.renewed: dict[str, list[float]] = {}
        self._refused = 0

    def append(self, call: tuple[str, Any]) -> None:
        """Take a call."""
        name, body = call
        if name == "renew":
            self.renewed.setdefault(body[0], []).append(trio.current_time())
        elif name == "renew_many":
            for one in body.leases:
                self.renewed.setdefault(str(one.lease_id), []).append(trio.current_time())
        elif name == "activity":
            shown = (frame for frame in body[1].frames if frame.get("kind") == "connection")
            self._refused += sum(one.get("count", 1) for one in shown if one["verdict"] != "allowed")
        if name not in (
            "activity",
            "renew",
            "renew_many",
            "heartbeat",
        ):  # Of a flood there are too many to keep.
            super().append(call)

    def take_refused(self) -> int:
        """How many connections were told as refused or cut since the last time."""
        refused, self._refused = self._refused, 0
        return refused


@dataclass
class Lag:
    """How late this very process is woken: what the machine, and not the runner, is to blame for."""

    most: float = 0.0
    _tick_s: float = field(default=0.02)

    async def watch(self) -> None:
        """Look until cancelled."""
        while True:
            due = trio.current_time() + self._tick_s
            await trio.sleep_until(due)
            self.most = max(self.most, trio.current_time() - due)


def least_slack(times: list[float], since: float, until: float) -> float:
    """Give the least time that was left of the term within a span of time."""
    before = max((time for time in times if time <= since), default=since)
    inside = [before, *(time for time in times if since < time <= until), until]
    return TERM_S - max(later - earlier for earlier, later in itertools.pairwise(inside))


async def measured(
    plane: Plane, calls: Timed, victim: str, flood: Flood | None, policy: dict[str, Any]
) -> dict[str, Any]:
    """Let one flood run to its end beside the victim, or nothing for a while."""
    lag, since, reports = Lag(), trio.current_time(), len(plane.reports())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lag.watch)
        if flood is None:
            await trio.sleep(ALONE_S)
        else:
            plane.give(flood.instructions, policy=policy)
            with trio.move_on_after(PATIENCE_S):
                await plane.until(lambda: len(plane.reports()) > reports)
        nursery.cancel_scope.cancel()
    now = trio.current_time()
    row: dict[str, Any] = {
        "slack": least_slack(calls.renewed[victim], since, now),
        "lag": lag.most,
        "took": now - since,
    }
    if flood is not None and len(plane.reports()) > reports:
        report = plane.reports()[-1]
        row |= {"label": report.failure_reason, "text": report.response_text}
    row["refused"] = calls.take_refused()
    row["tried"] = tried(row.get("text", ""))
    return row


def came_too_short(name: str, row: Mapping[str, Any]) -> bool:
    """Whether a flood's time was over before it could flood, as on a busy machine."""
    if "(resources.wall)" not in row.get("text", ""):
        return False
    return row["label"] not in FLOODS[name].ends or (name == MANY_CONNECTIONS and not row["tried"])


def tried(text: str) -> Mapping[str, int]:
    """What the program itself counted last of its connections; nothing where it counted none."""
    lines = [line for line in text.splitlines() if line.startswith('{"tried"')]
    return orjson.loads(lines[-1]) if lines else {}


@asynccontextmanager
async def runner(folder: Path, plane: Plane) -> AsyncIterator[None]:
    """Start a runner process."""
    words = [f"--base-url={plane.base_url}", f"--state-dir={folder / 'state'}", "--slots=2"]
    words += ["--run-default=disk=16MiB", "--run-most=wall=1m"]
    argv = [sys.executable, "-c", PACED.format(renew_s=RENEW_S), *words, f"--run-wall-s={WALL_S}"]
    env = {
        **os.environ,
        "SEXTON_RUNNER_TOKEN": TOKEN,
        "SEXTON_EGRESS_PRIVATE_HOSTS": "localhost",
        "SEXTON_EGRESS_CONNECTIONS": str(HELD),
        "SEXTON_EGRESS_BYTES_IN": str(32 << 20),
    }
    with (folder / "runner.log").open("wb") as log:
        child = subprocess.Popen(argv, env=env, stderr=log, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        child.terminate()
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(child.wait)


@asynccontextmanager
async def endless_server() -> AsyncIterator[int]:
    """Serve answers that have no end, on a port of loopback."""

    async def answer(stream: trio.SocketStream) -> None:
        with suppress(trio.BrokenResourceError):
            await stream.receive_some(1 << 16)
            await stream.send_all(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                await stream.send_all(bytes(1 << 16))

    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, answer, [listener])
        yield listener.socket.getsockname()[1]
        nursery.cancel_scope.cancel()


async def flooded(folder: Path, names: list[str]) -> dict[str, Any]:
    """Carry out the floods and give what was found."""
    async with open_plane() as plane, endless_server() as port:
        rule = {"host": "localhost", "ports": [port], "methods": [], "paths": []}
        policy = {
            "secrets_map": SECRETS,
            "network_policy": {"allow": [], "rules": [rule]},
            "env": {"PORT": str(port)},
        }
        calls = plane.calls = Timed()
        async with runner(folder, plane):
            victim = plane.give(WAIT)["lease_id"]
            with trio.fail_after(PATIENCE_S):
                await plane.until(lambda: len(calls.renewed.get(victim, [])) > 1 and plane.gates)
            (gate,) = plane.gates
            found = {"alone": await measured(plane, calls, victim, None, policy)}
            for name in names:
                found[name] = await measured(plane, calls, victim, FLOODS[name], policy)
                for wall_s in LONGER_WALLS_S:
                    if not came_too_short(name, found[name]):
                        break
                    longer = {**policy, "resources": {"wall_s": wall_s}}
                    found[name] = await measured(plane, calls, victim, FLOODS[name], longer)
                if "label" not in found[name]:
                    break  # The runner hears nobody any more.
            asked = len(plane.gates)
            plane.resolve(gate, "approved")
            with trio.move_on_after(PATIENCE_S):
                await plane.until(lambda: victim in [str(one.lease_id) for one in plane.reports()])
            ends = [one.outcome for one in plane.reports() if str(one.lease_id) == victim]
        return {"floods": found, "victim": ends, "asked": asked, "lost": plane.of("release")}


def table(found: Mapping[str, Any]) -> str:
    """Spell the results for people."""
    alone = found["alone"]["slack"]
    columns = f"{'slack s':>8} {'change':>7} {'lag s':>6} {'took s':>7} {'refused':>8} {'tried':>7}"
    lines = [f"{'beside':<20} {columns}  ended"]
    lines += [
        f"{name:<20} {row['slack']:8.2f} {row['slack'] - alone:+7.2f} {row['lag']:6.2f} {row['took']:7.2f} "
        f"{row['refused']:8} {row['tried'].get('tried', ''):>7}  {row.get('label', '-') or 'well'}"
        for name, row in found.items()
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    wanted = sys.argv[2:] or list(FLOODS)
    result = trio.run(flooded, Path(sys.argv[1]), wanted)
    sys.stderr.write(table(result["floods"]) + "\n")
    sys.stdout.buffer.write(orjson.dumps(result, default=str))
    assert math.isfinite(result["floods"]["alone"]["slack"])
