"""A scripted control plane on loopback that holds every request body to the wire contract."""

from __future__ import annotations

import itertools
import re
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import h11
import msgspec
import orjson
import trio

from tests.fakes.token_counts import Count, FallbackCounts, Renew
from tests.patience import PATIENCE_S

TOKEN = "zrn_" + "1" * 64
ENROLMENT = "zre_" + "2" * 64


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    """A body with no other fields than these."""


class Enrol(Strict):
    host_id: Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
    sandbox_tier: Literal["bubblewrap", "landlock", "none"]
    labels: Annotated[list[str], msgspec.Meta(max_length=64)]
    slots: Annotated[int, msgspec.Meta(ge=1, le=256)] = 1


class Heartbeat(Strict):
    active_lease_ids: list[uuid.UUID] = []
    wait_ms: Annotated[int, msgspec.Meta(ge=0, le=30000)] = 0
    offers: Annotated[list[str], msgspec.Meta(max_length=256)] | None = None


class Poll(Strict):
    max: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    wait_ms: Annotated[int, msgspec.Meta(ge=0, le=30000)] = 0


class RenewOne(Renew, kw_only=True):
    lease_id: uuid.UUID
    fencing_token: int


class RenewMany(Strict):
    leases: Annotated[list[RenewOne], msgspec.Meta(max_length=1024)]


class Activity(Strict):
    frames: Annotated[list[dict[str, Any]], msgspec.Meta(min_length=1, max_length=256)]


class Entry(Strict):
    number: Annotated[int, msgspec.Meta(ge=1)]
    kind: str
    at_ms: Count
    data: dict[str, Any]


class Transcript(Strict):
    entries: Annotated[list[Entry], msgspec.Meta(min_length=1, max_length=256)]
    fencing_token: int


class OpenGate(Strict):
    action_id: Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
    tool_name: str
    action_name: str
    gate_kind: str
    proposed_action: str
    evidence: dict[str, Any]
    blast_radius: str


class Release(Strict):
    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=512)]
    retry_after_ms: Annotated[int, msgspec.Meta(ge=1000, le=43_200_000)] | None = None
    checkpoint: dict[str, Any] | None = None
    usage: Renew | None = None


class Park(Strict):
    gate_id: uuid.UUID
    checkpoint: dict[str, Any]


class AskIntegration(Strict):
    service: Annotated[str, msgspec.Meta(pattern="^[a-z0-9_-]{1,64}$")]
    reason: Annotated[str, msgspec.Meta(max_length=512)]


class Remember(Strict):
    lease_id: uuid.UUID
    fencing_token: int
    key: Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
    content: Annotated[str, msgspec.Meta(max_length=16384)]
    category: Annotated[str, msgspec.Meta(min_length=1, max_length=64)] = "conversation"


class Telemetry(Strict):
    time_to_first_token_ms: Count
    wall_ms: Count


class Report(Strict):
    lease_id: uuid.UUID
    event_id: uuid.UUID
    fencing_token: int
    outcome: Literal["processed", "agent_error", "cancelled"]
    response_text: str
    input_tokens: Count
    cached_input_tokens: Count
    output_tokens: Count
    telemetry: Telemetry
    failure_reason: str | None = None
    evidence: dict[str, Any] | None = None
    checkpoint: dict[str, Any] | None = None
    memory: list[Any] = []
    proposals: list[Any] = []
    cache_write_tokens: Count = 0
    fallbacks: list[FallbackCounts] = []


class ReportMany(Strict):
    reports: Annotated[list[Report], msgspec.Meta(max_length=64)]


FRAME_FIELDS: Mapping[str, set[str]] = {
    "chunk": {"text"},
    "tool_call_started": {"name", "args_redacted"},
    "tool_call_progress": {"name", "elapsed_ms"},
    "tool_call_completed": {"name", "ms", "ok"},
    "connection": {
        *("host", "port", "method", "path", "address", "verdict", "reason", "why"),
        *("bytes_in", "bytes_out", "ms", "count"),
    },
}


class Fault(Exception):
    """An answer with a problem document."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(f"{status} {code}")
        self.status, self.code = status, code


Answer = tuple[int, object]


@dataclass
class Plane:
    """The state, the script and the record of one control plane; ``until`` waits for the record."""

    base_url: str = ""
    heartbeat: dict[str, Any] = field(default_factory=lambda: {"status": "ok", "cancelled_lease_ids": []})
    token: str = TOKEN
    token_code: str = ""  # With a code here every runner call is 401.
    queue: list[dict[str, Any]] = field(default_factory=list)
    leases: dict[str, str] = field(
        default_factory=dict
    )  # lease id → live, cancelling, lost, reported, released, parked
    gates: dict[str, dict[str, Any]] = field(default_factory=dict)
    grants: dict[str, dict[str, Any] | str] = field(default_factory=dict)  # service → its data, or a code
    memory: dict[str, dict[str, Any]] = field(default_factory=dict)
    faults: dict[str, list[Fault]] = field(default_factory=dict)  # by operation, used up one by one
    calls: list[tuple[str, Any]] = field(default_factory=list)
    turned_away: int = 0
    polls: int = 0  # That are open; one whose client hung up is not.
    deaf: bool = False  # Connections are closed as soon as a request has come.
    _changed: trio.Event = field(default_factory=trio.Event)

    def changed(self) -> None:
        """Wake whoever waits in ``until``."""
        self._changed.set()
        self._changed = trio.Event()

    async def until(self, ready: Callable[[], object]) -> None:
        """Wait for ``ready``; a test that waits for ever is broken, so this gives up loudly."""
        with trio.fail_after(PATIENCE_S):
            while not ready():
                await self._changed.wait()

    async def until_refused(self, count: int) -> None:
        """Wait until a deaf plane has turned away this many requests."""
        before = self.turned_away
        await self.until(lambda: self.turned_away >= before + count)

    def of(self, operation: str) -> list[Any]:
        """Give the recorded bodies of one operation."""
        return [body for name, body in self.calls if name == operation]

    def frames(self, kind: str | None = None) -> list[dict[str, Any]]:
        """Give all frames, of one kind or of all, in order."""
        frames = [frame for _, activity in self.of("activity") for frame in activity.frames]
        return [frame for frame in frames if kind in (None, frame["kind"])]

    def transcript(self, kind: str | None = None) -> list[dict[str, Any]]:
        """Give what was recorded, of one kind or all: the data of each entry, by number, with its kind."""
        told = {entry.number: entry for _, body in self.of("transcript") for entry in body.entries}
        entries = [told[number] for number in sorted(told)]
        return [{"kind": one.kind, **one.data} for one in entries if kind in (None, one.kind)]

    def reports(self) -> list[Report]:
        """Give the accepted reports."""
        return self.of("report")

    def give(self, instructions: str, **changes: Any) -> dict[str, Any]:
        """Queue a lease."""
        lease = make_lease(instructions, **changes)
        self.queue.append(lease)
        self.changed()
        return lease

    def resolve(self, gate_id: str, status: str, detail: str = "", by: str | None = None) -> None:
        """Resolve a gate."""
        self.gates[gate_id] |= {"status": status, "detail": detail, "resolved_by": by}
        self.changed()


TOKENS = itertools.count(1)


def make_lease(instructions: str, **changes: Any) -> dict[str, Any]:
    """Make a lease as the wire shows it."""
    event = {
        "event_id": str(uuid.uuid4()),
        "zombie_id": str(uuid.uuid4()),
        "workspace_id": str(uuid.uuid4()),
        "actor": "webhook:github",
        "event_type": "workflow_run.completed",
        "request_json": {"source": "github", "raw": {"n": 7}},
        "created_at": 1_760_000_000_000,
        "traceparent": None,
    }
    lease = {
        "lease_id": str(uuid.uuid4()),
        "fencing_token": next(TOKENS),
        "lease_expires_at": 1_760_000_030_000,
        "ceiling_at": 1_760_043_200_000,
        "attempt": 1,
        "event": event,
        "policy": {
            "tools": [],
            "network_policy": {"allow": []},
            "secrets_map": {},
            "provider": None,
            "model": None,
            "api_key": None,
            "budget_left_nanos": 5_000_000_000,
            "gates": {},
            "context": {},
        },
        "instructions": instructions,
        "runtime": "command",
        "memory": [],
        "feedback": [],
        "checkpoint": None,
    }
    event |= changes.pop("event", {})
    lease["policy"] |= changes.pop("policy", {})
    return lease | changes


class Routes:
    """The runner plane's operations over one ``Plane``."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        one = r"/v1/runners/me/leases/(?P<lease>[0-9a-f-]{36})"
        memory = re.compile(r"/v1/runners/me/memory/(?P<zombie>[0-9a-f-]{36})")
        self._table: list[
            tuple[str, re.Pattern[str], str, type[msgspec.Struct] | None, Callable[..., Awaitable[Answer]]]
        ] = [
            ("POST", re.compile(r"/v1/runners"), "enrol", Enrol, self._enrol),
            ("GET", re.compile(r"/v1/runners/me"), "me", None, self._me),
            ("POST", re.compile(r"/v1/runners/me/heartbeats"), "heartbeat", Heartbeat, self._heartbeat),
            ("POST", re.compile(r"/v1/runners/me/leases"), "poll", Poll, self._poll),
            ("POST", re.compile(r"/v1/runners/me/leases:renew"), "renew_many", RenewMany, self._renew_many),
            ("POST", re.compile(f"{one}/renew"), "renew", Renew, self._renew),
            ("POST", re.compile(f"{one}/activity"), "activity", Activity, self._activity),
            ("POST", re.compile(f"{one}/transcript"), "transcript", Transcript, self._transcribe),
            ("POST", re.compile(f"{one}/gates"), "open_gate", OpenGate, self._open_gate),
            (
                "GET",
                re.compile(f"{one}/gates/(?P<gate>[0-9a-f-]{{36}})"),
                "watch_gate",
                None,
                self._watch_gate,
            ),
            ("POST", re.compile(f"{one}/integrations/(?P<service>[a-z0-9_-]+)"), "lend", None, self._lend),
            (
                "POST",
                re.compile(f"{one}/integration-requests"),
                "ask_integration",
                AskIntegration,
                self._ask_integration,
            ),
            ("GET", memory, "recall", None, self._recall),
            ("POST", memory, "remember", Remember, self._remember),
            ("POST", re.compile(f"{one}/release"), "release", Release, self._release),
            ("POST", re.compile(f"{one}/park"), "park", Park, self._park),
            ("POST", re.compile(r"/v1/runners/me/reports"), "report", Report, self._report),
            (
                "POST",
                re.compile(r"/v1/runners/me/reports:batch"),
                "report_many",
                ReportMany,
                self._report_many,
            ),
        ]

    async def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Answer one request as the contract says, or as the script says."""
        path, _, query = target.partition("?")
        for wanted, pattern, name, shape, operation in self._table:
            found = pattern.fullmatch(path)
            if wanted == method and found:
                self._authenticate(name, headers)
                if faults := self._plane.faults.get(name):
                    raise faults.pop(0)
                given = None if shape is None else self._read(shape, headers, body)
                return await operation(
                    given, found.groupdict(), dict(p.split("=") for p in query.split("&") if p)
                )
        raise Fault(404, "UZ-REQ-003")

    def _authenticate(self, name: str, headers: Mapping[str, str]) -> None:
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        if name == "enrol":
            if bearer != ENROLMENT or self._plane.of("enrol"):
                raise Fault(401, "UZ-RUN-015")
        elif self._plane.token_code or bearer != self._plane.token:
            raise Fault(401, self._plane.token_code or "UZ-RUN-001")

    def _read(self, shape: type[msgspec.Struct], headers: Mapping[str, str], body: bytes) -> msgspec.Struct:
        if headers.get("content-type") != "application/json":
            raise Fault(415, "UZ-REQ-005")
        try:
            return msgspec.json.decode(body, type=shape)
        except msgspec.MsgspecError as fault:
            self._plane.calls.append(("malformed", f"{shape.__name__}: {fault}"))
            raise Fault(400, "UZ-REQ-001") from fault

    def _note(self, name: str, body: object) -> None:
        self._plane.calls.append((name, body))
        self._plane.changed()

    def _alive(self, lease_id: str, code: str) -> None:
        state = self._plane.leases.get(lease_id)
        if state is None:
            raise Fault(404, "UZ-RUN-006")
        if state not in ("live", "cancelling"):
            raise Fault(409, code)

    async def _enrol(self, body: Enrol, *_: object) -> Answer:
        if any(label.startswith("reserved:") for label in body.labels):
            raise Fault(403, "UZ-RUN-017")
        self._note("enrol", body)
        return 201, {"runner_id": str(uuid.uuid4()), "runner_token": self._plane.token}

    async def _me(self, *_: object) -> Answer:
        return 200, {"id": str(uuid.uuid4()), "admin_state": "active"}

    async def _heartbeat(self, body: Heartbeat, *_: object) -> Answer:
        self._note("heartbeat", body)
        return 200, self._plane.heartbeat

    async def _poll(self, body: Poll, *_: object) -> Answer:
        self._note("poll", body)
        self._plane.polls += 1
        try:
            with trio.move_on_after(body.wait_ms / 1000):
                while not self._plane.queue or self._plane.heartbeat["status"] != "ok":
                    await self._plane._changed.wait()
        finally:
            self._plane.polls -= 1
            self._plane.changed()
        if self._plane.heartbeat["status"] != "ok":
            return 200, {"lease": None, "leases": [], "retry_after_ms": 0}
        granted, self._plane.queue = self._plane.queue[: body.max], self._plane.queue[body.max :]
        for lease in granted:
            if isinstance(lease.get("lease_id"), str):
                self._plane.leases[lease["lease_id"]] = "live"
        return 200, {"lease": granted[0] if granted else None, "leases": granted, "retry_after_ms": 0}

    def _renewed(self, lease_id: str) -> dict[str, Any]:
        self._alive(lease_id, "UZ-RUN-011")
        state = "cancelling" if self._plane.leases[lease_id] == "cancelling" else "active"
        facts = {"slice_seq": 1, "charged_nanos": 1, "balance_nanos": 9, "ceiling_at": 1_760_043_200_000}
        return {"lease_expires_at": 1_760_000_060_000, "state": state, **facts}

    async def _renew(self, body: Renew, names: dict[str, str], _: object) -> Answer:
        self._note("renew", (names["lease"], body))
        return 200, self._renewed(names["lease"])

    async def _renew_many(self, body: RenewMany, *_: object) -> Answer:
        self._note("renew_many", body)
        rows: list[dict[str, Any]] = []
        for one in body.leases:
            lease_id = str(one.lease_id)
            try:
                rows.append({"lease_id": lease_id, "ok": True, **self._renewed(lease_id)})
            except Fault as fault:
                rows.append(
                    {"lease_id": lease_id, "ok": False, "error_code": fault.code, "status": fault.status}
                )
        return 200, {"results": rows}

    async def _activity(self, body: Activity, names: dict[str, str], _: object) -> Answer:
        self._alive(names["lease"], "UZ-RUN-005")
        for frame in body.frames:
            if set(frame) != FRAME_FIELDS.get(frame.get("kind", ""), set()) | {"kind"}:
                self._plane.calls.append(("malformed", frame))
                raise Fault(400, "UZ-REQ-001")
        self._note("activity", (names["lease"], body))
        return 202, {"accepted": len(body.frames)}

    async def _transcribe(self, body: Transcript, names: dict[str, str], _: object) -> Answer:
        self._alive(names["lease"], "UZ-RUN-005")
        self._note("transcript", (names["lease"], body))
        return 202, {"accepted": len(body.entries), "more": True}

    async def _open_gate(self, body: OpenGate, names: dict[str, str], _: object) -> Answer:
        self._alive(names["lease"], "UZ-RUN-005")
        gate = {"gate_id": str(uuid.uuid4()), "action_id": body.action_id, "status": "pending", "detail": ""}
        self._plane.gates[gate["gate_id"]] = gate
        self._note("open_gate", body)
        return 201, gate

    async def _watch_gate(self, _: object, names: dict[str, str], query: dict[str, str]) -> Answer:
        self._alive(names["lease"], "UZ-RUN-005")
        self._note("watch_gate", (names["gate"], int(query["wait_ms"])))
        gate = self._plane.gates.get(names["gate"])
        if gate is None:
            raise Fault(404, "UZ-APPROVAL-002")
        with trio.move_on_after(int(query["wait_ms"]) / 1000):
            while gate["status"] == "pending":
                await self._plane._changed.wait()
        return 200, gate

    async def _lend(self, _: object, names: dict[str, str], __: object) -> Answer:
        self._alive(names["lease"], "UZ-RUN-005")
        self._note("lend", names["service"])
        found = self._plane.grants.get(names["service"], "UZ-GRANT-001")
        if isinstance(found, str):
            raise Fault(403, found)
        return 200, {"service": names["service"], "data": found}

    async def _ask_integration(self, body: AskIntegration, names: dict[str, str], _: object) -> Answer:
        self._alive(names["lease"], "UZ-RUN-005")
        self._note("ask_integration", body)
        self._plane.grants[body.service] = "UZ-GRANT-002"
        return 201, {"grant_id": str(uuid.uuid4()), "service": body.service, "status": "pending"}

    async def _recall(self, _: object, names: dict[str, str], query: dict[str, str]) -> Answer:
        self._alive(query["lease_id"], "UZ-RUN-005")
        self._note("recall", query)
        words = query.get("query", "").split("+")
        found = [one for one in self._plane.memory.values() if any(word in one["content"] for word in words)]
        return 200, {"items": found[: int(query["limit"])], "total": len(found)}

    async def _remember(self, body: Remember, names: dict[str, str], _: object) -> Answer:
        self._alive(str(body.lease_id), "UZ-RUN-005")
        self._note("remember", body)
        entry = {"key": body.key, "content": body.content, "category": body.category}
        self._plane.memory[body.key] = entry | {"updated_at": 1}
        return 200, {"key": body.key, "updated_at": 1}

    async def _release(self, body: Release, names: dict[str, str], _: object) -> Answer:
        self._alive(names["lease"], "UZ-RUN-005")
        self._plane.leases[names["lease"]] = "released"
        self._note("release", (names["lease"], body))
        return 204, None

    async def _park(self, body: Park, names: dict[str, str], _: object) -> Answer:
        self._alive(names["lease"], "UZ-RUN-005")
        self._plane.leases[names["lease"]] = "parked"
        self._note("park", (names["lease"], body))
        return 204, None

    async def _report(self, body: Report, *_: object) -> Answer:
        lease_id = str(body.lease_id)
        if self._plane.leases.get(lease_id) == "reported":
            self._note("duplicate", body)
            return 200, {"duplicate": True}
        self._alive(lease_id, "UZ-RUN-005")
        self._plane.leases[lease_id] = "reported"
        self._note("report", body)
        if lost := self._plane.faults.get("answer_of_report"):
            raise lost.pop(0)  # It was taken, and the answer goes astray.
        return 200, {"event_status": body.outcome}

    async def _report_many(self, body: ReportMany, *__: object) -> Answer:
        self._note("report_many", body)
        results: list[dict[str, Any]] = []
        for one in body.reports:
            try:
                if faults := self._plane.faults.get("report_of_many"):
                    raise faults.pop(0)
                _, answer = await self._report(one)
                result = {"ok": True, "status": 200, "report": answer}
            except Fault as fault:
                problem = {"error_code": fault.code, "detail": str(fault)}
                result = {"ok": False, "status": fault.status, "error_code": fault.code, "problem": problem}
            results.append({"lease_id": str(one.lease_id), **result})
        if lost := self._plane.faults.get("answer_of_report_many"):
            raise lost.pop(0)  # All of them were taken, and the answer goes astray.
        return 200, {"results": results}


async def _serve_connection(plane: Plane, routes: Routes, stream: trio.SocketStream) -> None:
    connection = h11.Connection(h11.SERVER)
    try:
        while True:
            head, body = None, b""
            while not isinstance(event := connection.next_event(), h11.EndOfMessage):
                if event is h11.NEED_DATA:
                    connection.receive_data(await stream.receive_some(65536))
                elif isinstance(event, h11.Request):
                    head = event
                elif isinstance(event, h11.Data):
                    body += event.data
                else:
                    return
            if plane.deaf or head is None:
                plane.turned_away += 1
                plane.changed()
                return
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_cancel_when_closed, stream, connection, nursery.cancel_scope)
                await _answer(routes, connection, stream, head, body)
                nursery.cancel_scope.cancel()
            connection.start_next_cycle()
    except* (trio.BrokenResourceError, trio.ClosedResourceError, h11.ProtocolError):
        pass  # The client has gone, or spoke nonsense; a test sees what it did not get.
    finally:
        await trio.aclose_forcefully(stream)


async def _cancel_when_closed(
    stream: trio.SocketStream, connection: h11.Connection, handler: trio.CancelScope
) -> None:
    # As the real one does: whoever hangs up during a long poll must not be given a lease.
    while data := await stream.receive_some(65536):
        connection.receive_data(data)
    handler.cancel()


async def _answer(
    routes: Routes, connection: h11.Connection, stream: trio.SocketStream, head: h11.Request, body: bytes
) -> None:
    headers = {name.decode(): value.decode() for name, value in head.headers}
    kind = "application/json"
    try:
        status, value = await routes.answer(head.method.decode(), head.target.decode(), headers, body)
    except Fault as fault:
        status, kind = fault.status, "application/problem+json"
        value = {
            "error_code": fault.code,
            "title": "scripted",
            "detail": str(fault),
            "request_id": str(uuid.uuid4()),
        }
    content = b"" if value is None else orjson.dumps(value)
    lines = [("content-type", kind), ("content-length", str(len(content)))]
    sent = connection.send(h11.Response(status_code=status, headers=lines))
    sent += connection.send(h11.Data(data=content)) + connection.send(h11.EndOfMessage())
    await stream.send_all(sent)


@asynccontextmanager
async def open_plane() -> AsyncIterator[Plane]:
    """Serve a control plane on a free port of loopback."""
    plane = Plane()
    routes = Routes(plane)
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    plane.base_url = f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}"

    async def serve(stream: trio.SocketStream) -> None:
        await _serve_connection(plane, routes, stream)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, serve, listeners)
        yield plane
        nursery.cancel_scope.cancel()
    assert plane.of("malformed") == [], "the runner broke the wire contract"
