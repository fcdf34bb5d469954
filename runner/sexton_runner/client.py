"""The calls that a runner makes to the control plane."""

import ipaddress
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlencode, urlsplit

import httpx2
import msgspec
import orjson
import structlog

from sexton_runner.errors import BadSettings, Refused, TokenRejected, Unavailable, Untrusted
from sexton_runner.timing import Clock
from sexton_runner.trust import WAY_OUT, said_of_trust, trust_for, untrusted
from sexton_runner.wire import (
    Artefact,
    Enrolled,
    FollowUp,
    Gate,
    Lease,
    LentService,
    Memories,
    Polled,
    Problem,
    Pulse,
    Renewal,
    Renewals,
    ReportResult,
    ReportResults,
    Snapshot,
    TranscriptTaken,
    Upload,
    WorkspaceStart,
)

RETRIED_STATUSES = frozenset({408, 425, 429})
SERVER_FAULT = 500
UNAUTHORISED = 401
CONNECT_S = 5.0
FAILURES_OF_AN_OUTAGE = 2
# Shorter than servers keep idle connections: a call that meets a connection being closed is a call lost.
KEEPALIVE_S = 4.0
MAX_RETRY_AFTER_S = 30.0  # A runner that is told to wait until midnight looks in now and then all the same.
RELEASE: Final = version("sexton")
ME = "/v1/runners/me"

T = TypeVar("T")
Body = Mapping[str, Any]
log = structlog.get_logger()


class Outage:
    """Logs the beginning and the end of an outage, once each. One call that fails alone is none.

    Where another process of the same runner meets the outage too, it is not ``told`` twice.
    """

    def __init__(self, clock: Clock, *, told: bool = True) -> None:
        self._clock = clock
        self._told = told
        self._since = 0.0
        self._failures = 0

    def failed(self, why: str) -> None:
        """Note a failed call."""
        self._failures += 1
        if self._failures == 1:
            self._since = self._clock()
        if self._failures == FAILURES_OF_AN_OUTAGE and self._told:
            log.warning("control_plane_away", why=why)

    def worked(self) -> None:
        """Note an answered call."""
        if self._failures >= FAILURES_OF_AN_OUTAGE and self._told:
            log.info("control_plane_back", after_s=round(self._clock() - self._since, 1))
        self._failures = 0


class ControlPlane:
    """Typed calls.

    Every fault is one of ``Unavailable``, ``Refused`` and ``TokenRejected``; no call retries by itself.
    """

    def __init__(self, http: httpx2.AsyncClient, outage: Outage) -> None:
        self._http = http
        self._outage = outage

    async def enrol(self, body: Body) -> Enrolled:
        """Spend the enrolment token that the client bears."""
        return await self._ask("POST", "/v1/runners", Enrolled, body)

    async def whoami(self) -> dict[str, Any]:
        """Give this runner's own record."""
        return await self._ask("GET", ME, dict[str, Any])

    async def heartbeat(
        self,
        active_lease_ids: Sequence[str],
        wait_s: float = 0.0,
        slack_s: float = 0.0,
        offers: Sequence[str] | None = None,
    ) -> Pulse:
        """Say that this runner lives, and what it works on.

        With ``wait_s`` the answer comes when there is something to stop, or after that time; ``slack_s`` more
        until the connection counts as dead. ``offers`` are what this runner has from now on.
        """
        body: dict[str, Any] = {"active_lease_ids": list(active_lease_ids)}
        if offers is not None:
            body["offers"] = list(offers)
        path = f"{ME}/heartbeats"
        if not wait_s:
            return await self._ask("POST", path, Pulse, body)
        body["wait_ms"] = int(wait_s * 1000)
        return await self._ask("POST", path, Pulse, body, patience_s=wait_s + slack_s)

    async def poll(self, max_leases: int, wait_s: float, slack_s: float) -> Polled:
        """Wait up to ``wait_s`` for work; ``slack_s`` more until the connection counts as dead."""
        body = {"max": max_leases, "wait_ms": int(wait_s * 1000)}
        return await self._ask("POST", f"{ME}/leases", Polled, body, patience_s=wait_s + slack_s)

    async def renew(self, lease_id: str, usage: Body) -> Renewal:
        """Extend one lease by a term."""
        return await self._ask("POST", f"{ME}/leases/{lease_id}/renew", Renewal, usage)

    async def renew_many(self, renewals: Sequence[Body]) -> list[Renewal]:
        """Extend at most 1,024 leases in one call; each has its own answer."""
        answer = await self._ask("POST", f"{ME}/leases:renew", Renewals, {"leases": list(renewals)})
        return answer.results

    async def activity(self, lease_id: str, frames: Sequence[Body]) -> None:
        """Show at most 256 frames."""
        await self._send("POST", f"{ME}/leases/{lease_id}/activity", {"frames": list(frames)})

    async def transcribe(self, lease: Lease, entries: Sequence[Body]) -> bool:
        """Keep at most 256 entries of a transcript; False when nothing further will be kept."""
        body = {"fencing_token": lease.fencing_token, "entries": list(entries)}
        path = f"{ME}/leases/{lease.lease_id}/transcript"
        return (await self._ask("POST", path, TranscriptTaken, body)).more

    async def open_gate(self, lease_id: str, ask: Body) -> Gate:
        """Ask for approval; the same ``action_id`` of an event is the same gate."""
        return await self._ask("POST", f"{ME}/leases/{lease_id}/gates", Gate, ask)

    async def watch_gate(self, lease_id: str, gate_id: str, wait_s: float, slack_s: float) -> Gate:
        """Wait up to ``wait_s`` for a gate to be resolved."""
        path = f"{ME}/leases/{lease_id}/gates/{gate_id}?wait_ms={int(wait_s * 1000)}"
        return await self._ask("GET", path, Gate, patience_s=wait_s + slack_s)

    async def lend(self, lease_id: str, service: str) -> LentService:
        """Give the credential of a granted service; refused with ``UZ-GRANT-…`` when it is not granted."""
        path = f"{ME}/leases/{lease_id}/integrations/{service}"
        return await self._ask("POST", path, LentService)

    async def request_integration(self, lease_id: str, service: str, reason: str) -> None:
        """Ask for a grant on behalf of the agent; an open request is found again."""
        body = {"service": service, "reason": reason}
        await self._send("POST", f"{ME}/leases/{lease_id}/integration-requests", body)

    async def schedule_follow_up(self, lease_id: str, ask: Body) -> FollowUp:
        """Have the agent woken later; the same ``call_id`` of an event is the same follow-up."""
        return await self._ask("POST", f"{ME}/leases/{lease_id}/follow-ups", FollowUp, ask)

    async def recall(self, lease: Lease, wanted: Body) -> Memories:
        """Look up what the agent of a live lease remembers."""
        fence = {"lease_id": lease.lease_id, "fencing_token": lease.fencing_token}
        query = urlencode({**fence, **wanted})
        return await self._ask("GET", f"{ME}/memory/{lease.event.zombie_id}?{query}", Memories)

    async def remember(self, lease: Lease, entry: Body) -> None:
        """Keep something for the agent of a live lease."""
        body = {"lease_id": lease.lease_id, "fencing_token": lease.fencing_token, **entry}
        await self._send("POST", f"{ME}/memory/{lease.event.zombie_id}", body)

    async def begin_upload(self, lease: Lease, *, sha256: str, size: int) -> Upload:
        """Declare a content; the same again says how much of it has come."""
        body = {"sha256": sha256, "size": size, "fencing_token": lease.fencing_token}
        return await self._ask("POST", f"{ME}/leases/{lease.lease_id}/uploads", Upload, body)

    async def send_part(self, lease: Lease, upload_id: str, offset: int, part: bytes) -> Upload:
        """Send the next bytes of a content."""
        query = urlencode({"offset": offset, "fencing_token": lease.fencing_token})
        path = f"{ME}/leases/{lease.lease_id}/uploads/{upload_id}?{query}"
        return await self._ask("PUT", path, Upload, part)

    async def keep_artefact(self, lease: Lease, upload_id: str, name: str, media_type: str) -> Artefact:
        """Have a content kept as a file of the run."""
        body = {
            "upload_id": upload_id,
            "name": name,
            "media_type": media_type,
            "fencing_token": lease.fencing_token,
        }
        return await self._ask("POST", f"{ME}/leases/{lease.lease_id}/artefacts", Artefact, body)

    async def read_event_file(self, lease: Lease, number: int, offset: int) -> bytes:
        """Give the next bytes of a file that the event brings."""
        query = urlencode({"number": number, "offset": offset, "fencing_token": lease.fencing_token})
        answer = await self._send("GET", f"{ME}/leases/{lease.lease_id}/files/content?{query}")
        return answer.content

    async def start_workspace(self, lease: Lease) -> Snapshot | None:
        """Ask what a run starts from; the answer stays the same."""
        body = {"fencing_token": lease.fencing_token}
        path = f"{ME}/leases/{lease.lease_id}/workspace"
        return (await self._ask("POST", path, WorkspaceStart, body)).snapshot

    async def read_workspace(self, lease: Lease, offset: int) -> bytes:
        """Give the next bytes of what a run starts from."""
        query = urlencode({"offset": offset, "fencing_token": lease.fencing_token})
        answer = await self._send("GET", f"{ME}/leases/{lease.lease_id}/workspace/content?{query}")
        return answer.content

    async def keep_workspace(self, lease: Lease, upload_id: str) -> None:
        """Have a content kept as what the run leaves."""
        body = {"upload_id": upload_id, "fencing_token": lease.fencing_token}
        await self._send("PUT", f"{ME}/leases/{lease.lease_id}/workspace", body)

    async def release(self, lease_id: str, reason: str) -> None:
        """Give a lease back; its event returns to the queue at once."""
        await self._send("POST", f"{ME}/leases/{lease_id}/release", {"reason": reason})

    async def give_back(self, lease_id: str, body: Body) -> None:
        """Give a lease back; its event waits for the time in ``body``, and goes on from what it holds."""
        await self._send("POST", f"{ME}/leases/{lease_id}/release", body)

    async def park(self, lease_id: str, gate_id: str, checkpoint: object) -> None:
        """Give a lease back until its gate is resolved."""
        await self._send(
            "POST", f"{ME}/leases/{lease_id}/park", {"gate_id": gate_id, "checkpoint": checkpoint}
        )

    async def report(self, report: Body) -> dict[str, Any]:
        """Say how a run ended; the same report again is answered as the first was."""
        return await self._ask("POST", f"{ME}/reports", dict[str, Any], report)

    async def report_many(self, reports: Sequence[Body]) -> list[ReportResult]:
        """Say how at most 64 runs ended, in one call; each has its own answer."""
        answer = await self._ask("POST", f"{ME}/reports:batch", ReportResults, {"reports": list(reports)})
        if len(answer.results) != len(reports):
            raise Unavailable(f"{len(reports)} reports were sent, {len(answer.results)} results came")
        return answer.results

    async def _ask(
        self,
        method: str,
        path: str,
        shape: type[T],
        body: Body | bytes | None = None,
        *,
        patience_s: float | None = None,
    ) -> T:
        answer = await self._send(method, path, body, patience_s=patience_s)
        try:
            return msgspec.json.decode(answer.content, type=shape)
        except (msgspec.DecodeError, msgspec.ValidationError) as fault:
            raise Unavailable(f"unreadable answer to {path}: {fault}") from fault

    async def _send(
        self, method: str, path: str, body: Body | bytes | None = None, *, patience_s: float | None = None
    ) -> httpx2.Response:
        raw = isinstance(body, bytes)
        content = body if body is None or isinstance(body, bytes) else orjson.dumps(body)
        media = "application/octet-stream" if raw else "application/json"
        headers = {} if content is None else {"content-type": media}
        limit = (
            self._http.timeout
            if patience_s is None
            else httpx2.Timeout(patience_s, connect=min(patience_s, CONNECT_S))
        )
        try:
            answer = await self._http.request(method, path, content=content, headers=headers, timeout=limit)
            _check(answer)
        except httpx2.TransportError as fault:
            why = f"{type(fault).__name__}: {fault}".rstrip(": ")
            mistrust = untrusted(fault)
            if mistrust is not None:
                shown = f"the certificate of {self._http.base_url}"
                why = f"{shown} is not trusted{said_of_trust()}: {mistrust}; {WAY_OUT}"
            self._outage.failed(why)
            raise (Unavailable if mistrust is None else Untrusted)(why) from fault
        except Unavailable as fault:
            self._outage.failed(str(fault))
            raise
        self._outage.worked()
        return answer


def _check(answer: httpx2.Response) -> None:
    if answer.is_success:
        return
    problem = _problem(answer)
    if (
        answer.status_code >= SERVER_FAULT
        or answer.status_code in RETRIED_STATUSES
        or not answer.is_client_error
    ):
        raise Unavailable(f"{answer.status_code} {problem.error_code}".strip(), _retry_after(answer))
    kind = TokenRejected if answer.status_code == UNAUTHORISED else Refused
    raise kind(answer.status_code, problem.error_code, problem.detail or problem.title or "")


def _problem(answer: httpx2.Response) -> Problem:
    try:
        return msgspec.json.decode(answer.content, type=Problem)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return Problem()


def _retry_after(answer: httpx2.Response) -> float | None:
    text = answer.headers.get("retry-after", "")
    return min(float(text), MAX_RETRY_AFTER_S) if text.isdigit() else None


def open_http(
    base_url: str, token: str, timeout_s: float, server_cert: Path | None = None
) -> AbstractAsyncContextManager[httpx2.AsyncClient]:
    """Open a connection pool that bears ``token``.

    Proxies of the environment are obeyed, except on the way to loopback; its certificates are trusted on any
    way. ``server_cert`` is the server's own, where no authority vouches for it. Raises BadSettings.
    """
    try:
        trusted = trust_for(base_url, server_cert)
    except (OSError, ValueError) as fault:
        raise BadSettings(f"the certificates to trust cannot be read: {fault}; {WAY_OUT}") from fault
    return httpx2.AsyncClient(
        base_url=base_url,
        headers={
            "authorization": f"Bearer {token}",
            "user-agent": f"sexton-runner/{RELEASE}",
            "accept": "application/json",
        },
        timeout=httpx2.Timeout(timeout_s, connect=min(timeout_s, CONNECT_S)),
        limits=httpx2.Limits(
            max_connections=None, max_keepalive_connections=64, keepalive_expiry=KEEPALIVE_S
        ),
        verify=trusted,
        trust_env=not is_loopback(base_url),
    )


def is_loopback(base_url: str) -> bool:
    """Tell whether an address is this very machine."""
    host = urlsplit(base_url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
