"""Spells spans as OTLP has them, with OpenTelemetry's own messages; needs the extra ``otel``."""

from collections.abc import Mapping, Sequence

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1 import trace_pb2 as otlp

from sexton_actors.traces.spans import Attributes, Span, Value

_NS_OF_MS = 1_000_000
_SAMPLED = 1


class Messages:
    """Requests from one server."""

    def __init__(self, resource: Mapping[str, str], version: str) -> None:
        self._resource = Resource(attributes=_attributes(resource))
        self._scope = InstrumentationScope(name="sexton", version=version)

    def request(self, spans: Sequence[Span]) -> bytes:
        """The body of a request that delivers spans."""
        scoped = otlp.ScopeSpans(scope=self._scope, spans=[_span(span) for span in spans])
        wrapped = otlp.ResourceSpans(resource=self._resource, scope_spans=[scoped])
        body: bytes = ExportTraceServiceRequest(resource_spans=[wrapped]).SerializeToString()
        return body

    def rejected(self, answer: bytes) -> int:
        """How many spans the collector says that it has not taken; 0 when it says something unreadable."""
        try:
            told = ExportTraceServiceResponse.FromString(answer)
        except DecodeError:
            return 0
        count: int = told.partial_success.rejected_spans
        return max(0, count)


def _span(span: Span) -> otlp.Span:
    status = otlp.Status()
    if span.fault is not None:
        status = otlp.Status(code=otlp.Status.STATUS_CODE_ERROR, message=_safe(span.fault))
    return otlp.Span(
        trace_id=bytes.fromhex(span.trace_id),
        span_id=bytes.fromhex(span.span_id),
        parent_span_id=b"" if span.parent_id is None else bytes.fromhex(span.parent_id),
        flags=_SAMPLED,
        name=_safe(span.name),
        kind=otlp.Span.SpanKind.ValueType(span.kind.value),
        start_time_unix_nano=span.began_ms * _NS_OF_MS,
        end_time_unix_nano=span.ended_ms * _NS_OF_MS,
        attributes=_attributes(span.attributes),
        events=[
            otlp.Span.Event(
                name=event.name,
                time_unix_nano=event.at_ms * _NS_OF_MS,
                attributes=_attributes(event.attributes),
            )
            for event in span.events
        ],
        links=[
            otlp.Span.Link(
                trace_id=bytes.fromhex(link.trace_id), span_id=bytes.fromhex(link.span_id), flags=_SAMPLED
            )
            for link in span.links
        ],
        status=status,
    )


def _attributes(given: Attributes) -> list[KeyValue]:
    return [KeyValue(key=name, value=_value(value)) for name, value in given.items()]


def _value(value: Value) -> AnyValue:
    match value:
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value)
        case str():
            return AnyValue(string_value=_safe(value))
        case _:
            return AnyValue(array_value=ArrayValue(values=[_value(one) for one in value]))


def _safe(text: str) -> str:
    """Half of a character has no place in UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
