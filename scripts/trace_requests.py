"""Traces four requests through a live server: which files each enters, and its way from room to room.

``python scripts/trace_requests.py`` prints a table and a picture of each. ``--write`` puts them into the page
that shows them, and ``--check`` fails where that page shows what the code no longer does.
"""

import argparse
import hashlib
import hmac
import json
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple
from unittest.mock import patch

import httpx2
import trio

from sexton_actors.rounds import RoundsActor
from sexton_cli.composition import open_node
from sexton_cli.ground import Node
from sexton_cli.settings import NodeSettings

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/explanation/how-a-request-travels.md"
ARROW = re.compile(r"^ +(\w+)->>(\w+): (.+)$", re.MULTILINE)
WINGS = ("engine", "storage", "actors", "http")
KEY = b"it signs the webhooks"
ROUNDS = 5
"""Only what is entered each time belongs to a request. More crashes than these would be borne only slowly."""
QUIET_S = 0.2
"""Long enough for what a request leaves behind (frames, signals) to come to an end."""
SELDOM_S = 600.0
"""Between two looks at the database for what other nodes did."""

SKILL = "---\nname: tracer\ndescription: Is traced.\nversion: 1.0.0\n---\nLook at the failed run.\n"
TRIGGER = (
    "---\nname: tracer\ntriggers:\n  - type: webhook\n    source: github\n"
    "    signature:\n      secret_ref: github\n---\n"
)
USAGE = {"input_tokens": 10, "cached_input_tokens": 0, "output_tokens": 5}


# --- tracing ------------------------------------------------------------------------------------------------


class Call(NamedTuple):
    caller: str
    callee: str
    function: str


@dataclass
class Trace:
    """What was entered between the beginning and the end of a request, by the first time."""

    files: dict[str, None] = field(default_factory=dict)
    calls: dict[Call, None] = field(default_factory=dict)
    """From one room to another, in order."""

    def enter(self, frame: FrameType) -> None:
        file = file_of(frame)
        if file is None or frame.f_code.co_name == "<module>":
            return
        callers = callers_of(frame)
        self.files.setdefault(file)
        if callers and room(callers[0]) != room(file):
            self.calls.setdefault(Call(room(callers[0]), room(file), name_of(frame)))

    def both(self, other: "Trace") -> "Trace":
        """What both have entered, in this one's order."""
        return Trace(
            {file: None for file in self.files if file in other.files},
            {call: None for call in self.calls if call in other.calls},
        )

    def arrows(self) -> list[Call]:
        """The first call from each room to each other."""
        first: dict[tuple[str, str], Call] = {}
        for call in self.calls:
            first.setdefault((call.caller, call.callee), call)
        return list(first.values())


class Tracer:
    """Sees each call of each thread, for as long as a trace is open."""

    def __init__(self) -> None:
        self._open: Trace | None = None

    def install(self) -> None:
        """For this thread and all that start later."""
        threading.setprofile(self._call)
        sys.setprofile(self._call)

    @contextmanager
    def trace(self) -> Iterator[Trace]:
        self._open = trace = Trace()
        try:
            yield trace
        finally:
            self._open = None

    def _call(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and self._open is not None:
            self._open.enter(frame)


def file_of(frame: FrameType) -> str | None:
    """The file of the frame within the repository, where it is one of the wings'."""
    name = frame.f_code.co_filename
    if not name.startswith(f"{ROOT}/"):
        return None
    name = name[len(str(ROOT)) + 1 :]
    return name if name.partition("/")[0] in WINGS else None


def callers_of(frame: FrameType) -> list[str]:
    """The wings' files that led to this frame, the nearest first; trio, pykka or Quart may stand between."""
    found: list[str] = []
    above = frame.f_back
    while above is not None:
        file = file_of(above)
        if file is not None:
            found.append(file)
        above = above.f_back
    return found


def room(file: str) -> str:
    """The wing, and the folder in it.

    >>> room("http/sexton_http/gateway/limits.py"), room("actors/sexton_actors/tree.py")
    ('http/gateway', 'actors')
    """
    wing, _, *folders = Path(file).parts[:-1]
    return "/".join((wing, *folders[:1]))


def name_of(frame: FrameType) -> str:
    """The function as its module names it; of one within another, the outer one."""
    return plain_name(Path(frame.f_code.co_filename).stem, frame.f_code.co_qualname)


def plain_name(module: str, qualname: str) -> str:
    """Methods by their class, functions by their module, a class for its ``__init__``.

    >>> (
    ...     plain_name("cell", "Cell.post"),
    ...     plain_name("webhooks", "deliver"),
    ...     plain_name("reply", "AskPort.__init__"),
    ... )
    ('Cell.post', 'webhooks.deliver', 'AskPort')
    >>> plain_name("lane", "Lane.run.<locals>.kept"), plain_name("database", "Database.read.<lambda>")
    ('Lane.run', 'Database.read')
    """
    name = qualname.partition(".<")[0].removesuffix(".__init__")
    is_class = name.lstrip("_")[:1].isupper()
    return name if is_class else f"{module}.{name}"


# --- what is traced -----------------------------------------------------------------------------------------


class Site:
    """A server with one agent, and a runner that holds a lease on its first event."""

    def __init__(self, node: Node, http: httpx2.AsyncClient) -> None:
        self.node = node
        self._http = http
        self._deliveries = self._gates = 0

    async def prepare(self) -> None:
        workspace = f"/v1/workspaces/{self.node.workspace_id}"
        secret = {"name": "github", "data": {"webhook_secret": KEY.decode()}}
        await self.post(f"{workspace}/credentials", secret)
        files = {"source_markdown": SKILL, "trigger_markdown": TRIGGER}
        self._agent = await self.post(f"{workspace}/zombies", files)
        minted = await self.post("/v1/fleet/enrolment-tokens", {}, self.node.admin_token)
        runner = {"host_id": "tracer", "sandbox_tier": "bubblewrap", "labels": []}
        self._runner = (await self.post("/v1/runners", runner, minted["token"]))["runner_token"]
        await self.webhook()
        polled = await self.post("/v1/runners/me/leases", {"wait_ms": 5000}, self._runner)
        self._lease = f"/v1/runners/me/leases/{polled['lease']['lease_id']}"
        self._inbox = f"{workspace}/approvals"

    async def webhook(self) -> None:
        self._deliveries += 1
        body = json.dumps({"action": "completed"}).encode()
        headers = {
            "content-type": "application/json",
            "x-github-event": "workflow_run",
            "x-github-delivery": f"delivery-{self._deliveries}",
            "x-hub-signature-256": "sha256=" + hmac.new(KEY, body, hashlib.sha256).hexdigest(),
        }
        answer = await self._http.post(self._agent["webhook_urls"]["github"], content=body, headers=headers)
        answer.raise_for_status()

    async def renewal(self) -> None:
        await self.post(f"{self._lease}/renew", USAGE, self._runner)

    async def gate(self) -> None:
        self._gates += 1
        action = {
            "action_id": f"a{self._gates}",
            "tool_name": "http",
            "action_name": "POST",
            "proposed_action": "Deploy.",
        }
        gate = await self.post(f"{self._lease}/gates", action, self._runner)
        await self.post(f"{self._inbox}/{gate['gate_id']}:approve", {"reason": "fine"})

    async def crash(self) -> None:
        """The lease's actor fails in the midst of a renewal. It is started again and decides again."""
        journal: Any = self.node.storage.journal
        real = journal.submit

        def failing(*_: Any) -> None:
            journal.submit = real
            raise RuntimeError("a fault made for the trace")

        journal.submit = failing
        await self.renewal()

    async def post(self, path: str, body: dict[str, Any], token: str | None = None) -> Any:
        answer = await self._http.post(path, json=body, headers=bearer(token or self.node.api_key or ""))
        if answer.is_error:
            raise RuntimeError(f"{path}: {answer.status_code} {answer.text}")
        return answer.json()


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@asynccontextmanager
async def open_site() -> AsyncIterator[Site]:
    """Open a site on which nothing is done at intervals: that belongs to no request."""
    with (
        patch.object(RoundsActor, "_come"),
        tempfile.TemporaryDirectory(prefix="sexton-trace-") as folder,
    ):
        settings = NodeSettings(data=Path(folder), port=0, look_every_s=SELDOM_S, busy_at_ms=0)
        async with (
            open_node(settings, lambda _: None) as node,
            httpx2.AsyncClient(base_url=node.base_url, timeout=15.0) as http,
        ):
            site = Site(node, http)
            await site.prepare()
            yield site


async def trace_all(tracer: Tracer) -> dict[str, Trace]:
    async with open_site() as site:
        requests = {
            "webhook": site.webhook,
            "renewal": site.renewal,
            "gate": site.gate,
            "crash": site.crash,
        }
        return {name: await trace_one(tracer, request) for name, request in requests.items()}


async def trace_one(tracer: Tracer, request: Callable[[], Awaitable[None]]) -> Trace:
    """What each of some rounds enters; the one before them does what is done only once."""
    await request()
    common = Trace()
    for number in range(ROUNDS):
        await trio.sleep(QUIET_S)
        with tracer.trace() as trace:
            await request()
        common = common.both(trace) if number else trace
    return common


# --- showing ------------------------------------------------------------------------------------------------


def picture(trace: Trace) -> str:
    """A sequence diagram of mermaid: an arrow where one room calls another for the first time."""
    arrows = trace.arrows()
    rooms = dict.fromkeys(name for call in arrows for name in (call.caller, call.callee))
    lines = ["```mermaid", "sequenceDiagram"]
    lines += [f"    participant {identifier(name)} as {name}" for name in rooms]
    lines += [f"    {identifier(c.caller)}->>{identifier(c.callee)}: {c.function}" for c in arrows]
    return "\n".join([*lines, "```"])


def identifier(name: str) -> str:
    return name.replace("/", "_")


def table(traces: dict[str, Trace]) -> str:
    """How many files of each wing are entered."""
    rows = ["| request | files | " + " | ".join(WINGS) + " |", "|---|---|" + "---|" * len(WINGS)]
    for name, trace in traces.items():
        counts = [sum(file.startswith(f"{wing}/") for file in trace.files) for wing in WINGS]
        rows.append(f"| {name} | {len(trace.files)} | " + " | ".join(map(str, counts)) + " |")
    return "\n".join(rows)


def blocks(traces: dict[str, Trace]) -> dict[str, str]:
    return {"table": table(traces)} | {name: picture(trace) for name, trace in traces.items()}


def put(page: str, shown: dict[str, str]) -> str:
    """The page with each block between its markers.

    >>> print(put("<!-- a --> old <!-- end of a -->", {"a": "new"}))
    <!-- a -->
    <BLANKLINE>
    new
    <BLANKLINE>
    <!-- end of a -->
    """
    for name, text in shown.items():
        begin, end = markers(name)
        page = page.replace(f"{begin}{between(page, name)}{end}", f"{begin}\n\n{text}\n\n{end}")
    return page


def between(page: str, name: str) -> str:
    """What stands between the markers of this name. Raises ValueError where they are missing."""
    begin, end = markers(name)
    if begin not in page or end not in page:
        raise ValueError(f"the page has no place for '{name}': it needs {begin} and {end}")
    return page.split(begin, 1)[1].split(end, 1)[0]


def markers(name: str) -> tuple[str, str]:
    return f"<!-- {name} -->", f"<!-- end of {name} -->"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    todo = parser.add_mutually_exclusive_group()
    todo.add_argument("--write", action="store_true", help="put the pictures into the page")
    todo.add_argument("--check", action="store_true", help="fail where the page shows something else")
    parser.add_argument("--files", action="store_true", help="name each file that is entered")
    options = parser.parse_args()

    tracer = Tracer()
    tracer.install()
    traces = trio.run(trace_all, tracer)
    if options.files:
        print("\n".join(f"{name}: {file}" for name, trace in traces.items() for file in trace.files))
        return 0
    shown = blocks(traces)
    if not (options.write or options.check):
        print("\n\n".join(shown.values()))
        return 0
    page = PAGE.read_text(encoding="utf-8")
    if options.write:
        PAGE.write_text(put(page, shown), encoding="utf-8")
        # Where the tool is missing it says so; the page is written then, and `make diagrams` is left to do.
        return subprocess.run([sys.executable, "-m", "scripts.diagrams"], cwd=ROOT, check=False).returncode
    faults = [fault for name, trace in traces.items() for fault in compare(name, between(page, name), trace)]
    print("\n".join(faults))
    if faults:
        print("Run 'python scripts/trace_requests.py --write', and read again what the page says.")
    return 1 if faults else 0


def compare(name: str, shown: str, trace: Trace) -> list[str]:
    """What the page shows and the code does not do, and rooms that the page lacks.

    The order is not compared, nor which of two calls came first: several threads and tasks work at once.
    """
    arrows = ARROW.findall(shown)
    done = {(identifier(c.caller), identifier(c.callee), c.function) for c in trace.calls}
    gone = [
        f"{name}: no longer so: {a} calls {b} by {function}"
        for a, b, function in arrows
        if (a, b, function) not in done
    ]
    rooms = {room for a, b, _ in arrows for room in (a, b)}
    entered = {identifier(room) for c in trace.arrows() for room in (c.caller, c.callee)}
    return gone + [f"{name}: not shown: {room}" for room in sorted(entered - rooms)]


if __name__ == "__main__":
    sys.exit(main())
