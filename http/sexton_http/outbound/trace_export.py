"""Sends the spans of what has ended to a collector, and never holds anything else up."""

import importlib
import importlib.util
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final, NamedTuple, Protocol
from uuid import UUID

import httpx2
import structlog
import trio

from sexton_actors.meters import Meters
from sexton_actors.traces.context import context_of
from sexton_actors.traces.event_spans import Traced
from sexton_actors.traces.span_reader import SpanReader
from sexton_actors.traces.spans import Span
from sexton_http.outbound.trace_address import TraceAddress
from sexton_storage.background import in_background
from sexton_storage.errors import StorageUnavailable
from sexton_storage.stores import Storage

MOST_WAITING: Final = 2_048
"""Ends that may wait to be read; what comes then is left out of the traces."""
MOST_AT_ONCE: Final = 512
"""Spans of one request."""
SEND_S: Final = 10.0
"""For one request with its answer."""
READ_S: Final = 10.0
"""For reading what one end needs of the database."""
WAITS_S: Final = (0.5, 2.0)
"""Before a request is tried again, and once more; while a collector is away there is one try."""
ANSWER_BYTES: Final = 64 * 1024
AGAIN: Final = frozenset({429, 502, 503, 504})
LEAVE_S: Final = 2.0
"""How long a server that stops still sends."""
_MESSAGES: Final = "sexton_http.outbound.otlp_messages"

log = structlog.get_logger()


class MessagesMissing(Exception):
    """The package of OTLP's messages is not installed."""


class Messages(Protocol):
    """Spells and reads the messages of OTLP."""

    def request(self, spans: Sequence[Span]) -> bytes: ...
    def rejected(self, answer: bytes) -> int: ...


def require_messages() -> None:
    """Say at the start whether traces can be sent. Raises MessagesMissing."""
    try:
        found = importlib.util.find_spec("opentelemetry.proto") and importlib.util.find_spec(
            "google.protobuf"
        )
    except ModuleNotFoundError:
        found = None
    if found is None:
        raise MessagesMissing(
            "the package 'opentelemetry-proto' is not installed: install sexton with the extra otel"
        )


async def load_messages(resource: Mapping[str, str], version: str) -> Messages:
    """Give what spells OTLP."""
    # It takes a while to import, on a thread, and only where traces are sent.
    module = await trio.to_thread.run_sync(importlib.import_module, _MESSAGES)
    messages: Messages = module.Messages(resource, version)
    return messages


@asynccontextmanager
async def open_traces(
    storage: Storage, meters: Meters, address: TraceAddress, resource: Mapping[str, str], version: str
) -> AsyncIterator["TraceExporter"]:
    """Send traces for as long as the block lasts."""
    messages = await load_messages(resource, version)
    async with httpx2.AsyncClient(timeout=SEND_S) as http:
        exporter = TraceExporter(storage, meters, http, address, messages)
        async with in_background(exporter.run):
            yield exporter
            await exporter.leave()


class _End(NamedTuple):
    event_id: UUID
    attempt: int | None
    over: bool


class TraceExporter:
    """A bounded line of ends, one task that reads and sends, and counters of what became of them."""

    def __init__(
        self,
        storage: Storage,
        meters: Meters,
        http: httpx2.AsyncClient,
        address: TraceAddress,
        messages: Messages,
    ) -> None:
        self._storage, self._meters, self._http = storage, meters, http
        self._address, self._messages = address, messages
        self._ends: deque[_End] = deque()
        self._news = trio.Event()
        self._idle = trio.Event()
        self._idle.set()
        self._away = False

    def ended(self, event_id: UUID, attempt: int | None, *, over: bool) -> None:
        """See ``TraceSink``."""
        if len(self._ends) >= MOST_WAITING:
            self._meters.trace_ends["full"] += 1
            return
        self._ends.append(_End(event_id, attempt, over))
        self._idle = trio.Event()
        self._news.set()

    async def run(self) -> None:
        """Send for ever; whatever fails is counted."""
        while True:
            if not self._ends:
                self._idle.set()
                self._news = trio.Event()
                await self._news.wait()
            spans: list[Span] = []
            while self._ends and len(spans) < MOST_AT_ONCE:
                spans += await self._read(self._ends.popleft())
            for first in range(0, len(spans), MOST_AT_ONCE):
                await self._deliver(spans[first : first + MOST_AT_ONCE])

    async def leave(self) -> None:
        """Wait a moment for what has ended to be sent."""
        with trio.move_on_after(LEAVE_S):
            await self._idle.wait()

    async def _read(self, end: _End) -> list[Span]:
        counts = self._meters.trace_ends
        spans: list[Span] | None = []
        try:
            with trio.move_on_after(READ_S) as deadline:
                spans = await self._spans(end)
        except StorageUnavailable:
            counts["unread"] += 1
            return []
        except Exception:  # what is wrong with one event must not end the traces of all others
            log.exception("trace_not_made", event_id=str(end.event_id))
            counts["unread"] += 1
            return []
        if deadline.cancelled_caught or spans is None:
            counts["unread" if deadline.cancelled_caught else "unsampled"] += 1
            return []
        counts["made"] += 1
        return spans

    async def _spans(self, end: _End) -> list[Span] | None:
        """None: its sender records no trace."""
        storage = self._storage
        event = await storage.events.load(end.event_id)
        if event is None:
            return []
        context = context_of(event)
        if not context.sampled:
            return None
        names = await storage.zombies.names([event.zombie_id])
        traced = Traced(event, names.get(event.zombie_id, ""), context, self._address.content)
        reader = SpanReader(storage, traced, await storage.insights.history(event.id))
        spans = await reader.attempt(end.attempt)
        return [*spans, *await reader.rest()] if end.over else spans

    async def _deliver(self, spans: Sequence[Span]) -> None:
        counts = self._meters.spans
        body = self._messages.request(spans)
        await trio.lowlevel.checkpoint()
        status: int | None = None
        for wait_s in (0.0, *(() if self._away else WAITS_S)):
            await trio.sleep(wait_s)
            status, answer = await self._send(body)
            if status == HTTPStatus.OK:
                rejected = min(self._messages.rejected(answer), len(spans))
                counts["rejected"] += rejected
                counts["sent"] += len(spans) - rejected
                self._came_back()
                return
            if status is not None and status not in AGAIN:
                break
        counts["lost"] += len(spans)
        if not self._away:
            self._away = True
            log.warning("traces_not_sent", why="no answer" if status is None else f"status {status}")

    def _came_back(self) -> None:
        if self._away:
            self._away = False
            log.warning("traces_sent_again")

    async def _send(self, body: bytes) -> tuple[int | None, bytes]:
        """The status of the answer, and its beginning; None: there was none in time."""
        headers = {
            **self._address.headers,
            "content-type": "application/x-protobuf",
            "accept-encoding": "identity",
        }
        status: int | None = None
        answer = bytearray()
        with trio.move_on_after(SEND_S) as deadline:
            try:
                async with self._http.stream(
                    "POST", self._address.url, content=body, headers=headers, follow_redirects=False
                ) as got:
                    status = got.status_code
                    # Raw, so that nothing that is packed can unfold.
                    async for piece in got.aiter_raw():
                        answer += piece[:ANSWER_BYTES]
                        if len(answer) >= ANSWER_BYTES:
                            # Leaving the loop here would leave the client's generators to the collector.
                            deadline.cancel()
            except (httpx2.HTTPError, httpx2.InvalidURL, OSError):
                status = None
        if deadline.cancelled_caught and len(answer) < ANSWER_BYTES:
            return None, b""
        return status, bytes(answer[:ANSWER_BYTES])
