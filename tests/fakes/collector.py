"""A collector of OpenTelemetry on loopback, which reads what it is sent with OpenTelemetry's own messages."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import h11
import trio
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from tests.patience import PATIENCE_S

COST = "sexton.cost.nanos"

Misbehave = Callable[[trio.SocketStream], Awaitable[None]]
"""Is given the connection once the request was read, and answers in a way of its own."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One span as it came, its attributes as plain values."""

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    kind: int
    began_ns: int
    ended_ns: int
    attributes: Mapping[str, Any]
    events: tuple[tuple[str, Mapping[str, Any]], ...]
    links: tuple[tuple[str, str], ...]
    fault: str


@dataclass
class Collector:
    """What it has got so far."""

    base_url: str = ""
    spans: list[Seen] = field(default_factory=list)
    resource: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    requests: int = 0
    rejects: int = 0
    """How many spans of each request it says that it has not taken."""
    status: int = 200
    misbehave: Misbehave | None = None

    def cost(self) -> int:
        return sum(span.attributes.get(COST, 0) for span in self.spans)

    def names(self) -> Counter[str]:
        return Counter(span.name for span in self.spans)

    def named(self, name: str) -> Seen:
        [span] = [span for span in self.spans if span.name == name]
        return span

    def path(self, span: Seen) -> list[str]:
        """The names of a span and those above it, from the top."""
        by_id = {one.span_id: one for one in self.spans}
        names = [span.name]
        while (above := by_id.get(span.parent_id)) is not None:
            span = above
            names.insert(0, span.name)
        return names

    async def until(self, is_there: Callable[["Collector"], bool]) -> None:
        with trio.fail_after(PATIENCE_S):
            while not is_there(self):
                await trio.sleep(0.02)

    def take(self, body: bytes) -> bytes:
        request = ExportTraceServiceRequest.FromString(body)
        for of_resource in request.resource_spans:
            self.resource = _plain(of_resource.resource.attributes)
            for scoped in of_resource.scope_spans:
                self.spans += [_seen(span) for span in scoped.spans]
        partly = ExportTracePartialSuccess(rejected_spans=self.rejects)
        answer: bytes = ExportTraceServiceResponse(partial_success=partly).SerializeToString()
        return answer


@asynccontextmanager
async def open_collector() -> AsyncIterator[Collector]:
    """Listen until the block ends."""
    collector = Collector()
    async with trio.open_nursery() as nursery:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        collector.base_url = f"http://127.0.0.1:{listener.socket.getsockname()[1]}"
        nursery.start_soon(partial(trio.serve_listeners, partial(_serve, collector), [listener]))
        yield collector
        nursery.cancel_scope.cancel()


async def _serve(collector: Collector, stream: trio.SocketStream) -> None:
    try:
        async with stream:
            while await _answer(collector, stream):
                pass
    except (trio.BrokenResourceError, trio.ClosedResourceError, h11.RemoteProtocolError):
        return


async def _answer(collector: Collector, stream: trio.SocketStream) -> bool:
    """Answer one request; whether another may follow."""
    connection = h11.Connection(h11.SERVER)
    body, head = bytearray(), None
    while True:
        event = connection.next_event()
        match event:
            case h11.NEED_DATA:
                connection.receive_data(await stream.receive_some(65536))
            case h11.Request():
                head = event
            case h11.Data():
                body += event.data
            case h11.EndOfMessage():
                break
            case _:
                return False
    assert head is not None
    assert head.target == b"/v1/traces", head.target
    collector.headers = {name.decode(): value.decode() for name, value in head.headers}
    collector.requests += 1
    if collector.misbehave is not None:
        await collector.misbehave(stream)
        return False
    answer = collector.take(bytes(body)) if collector.status == 200 else b""
    length = str(len(answer)).encode()
    reply = h11.Response(status_code=collector.status, headers=[(b"content-length", length)])
    for part in (reply, h11.Data(data=answer), h11.EndOfMessage()):
        await stream.send_all(connection.send(part) or b"")
    return True


def _seen(span: Any) -> Seen:
    return Seen(
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        name=span.name,
        kind=span.kind,
        began_ns=span.start_time_unix_nano,
        ended_ns=span.end_time_unix_nano,
        attributes=_plain(span.attributes),
        events=tuple((event.name, _plain(event.attributes)) for event in span.events),
        links=tuple((link.trace_id.hex(), link.span_id.hex()) for link in span.links),
        fault=span.status.message if span.status.code == 2 else "",
    )


def _plain(attributes: Any) -> dict[str, Any]:
    return {one.key: _value(one.value) for one in attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return tuple(_value(one) for one in value.array_value.values)
    return getattr(value, kind)
