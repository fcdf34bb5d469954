"""The spans of one attempt's run, made from its transcript as it is read."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from sexton_actors.traces import content
from sexton_actors.traces.content import ContentMode, Part
from sexton_actors.traces.context import AGENT, LEASE, TraceContext, span_id
from sexton_actors.traces.costs import Purse, price_of
from sexton_actors.traces.spans import COST, Attributes, Span, SpanKind, Value, count, word
from sexton_storage.records.events import Event
from sexton_storage.records.leases import Lease
from sexton_storage.records.transcripts import TranscriptEntry

MOST_SPANS: Final = 2_000
"""Spans of one attempt at most; later calls are only counted, and their costs stay with the lease."""
MAX_TEXT: Final = 12_000
"""Characters that are kept of what a model reads and says between two answers."""


class _Open(msgspec.Struct):
    """A call of a tool that has not ended."""

    name: str
    began_ms: int
    number: int
    arguments: object


class _Said(msgspec.Struct):
    """An answer of a model, to which further pieces of its text may come."""

    number: int
    began_ms: int
    ended_ms: int
    data: Mapping[str, Any]
    read: Sequence[Part]
    text: str


class RunSpans:
    """Entries go in, in their order; spans come out. What an entry says is believed as little as it must be.

    Nothing that a run tells reaches another event: ids come from the event's own, and costs from its bill.
    """

    def __init__(
        self,
        event: Event,
        lease: Lease,
        context: TraceContext,
        purse: Purse,
        mode: ContentMode,
        *,
        most: int = MOST_SPANS,
    ) -> None:
        self._event, self._lease, self._context, self._purse, self._mode = event, lease, context, purse, mode
        self._most = most
        self._parent = span_id(event.id, AGENT, lease.attempt)
        self._before = lease.granted_at
        """When the entry before was written."""
        self._read: list[Part] = []
        self._room = MAX_TEXT
        self._said: _Said | None = None
        self._open: dict[str, _Open] = {}
        self._made: list[Span] = []
        self._count = 0
        self.left_out = 0
        """Spans that were one too many."""
        self.began_ms: int | None = None
        """When the first entry was written."""
        self.ended_ms: int | None = None
        """When the run said that it is over."""

    def add(self, entry: TranscriptEntry) -> None:
        at = max(entry.at_ms, self._lease.granted_at)
        self.began_ms = at if self.began_ms is None else self.began_ms
        data = entry.data
        if self._said is not None and entry.kind == "model" and "model" not in data:
            self._said.text = self._kept(self._said.text + _text(data, "text"))
            return
        self._flush()
        match entry.kind:
            case "prompt":
                self._hear(Part(word(data, "role") or "user", _text(data, "text")))
            case "model":
                self._answered(entry.number, at, data)
            case "tool_call":
                name, given = word(data, "name"), data.get("arguments")
                self._open[word(data, "id")] = _Open(name, at, entry.number, given)
            case "tool_result":
                self._called(entry.number, at, data)
            case "step":
                if data.get("what") == "end":
                    self._stepped(entry.number, at, data)
            case "end":
                self.ended_ms = at
            case _:
                pass
        self._before = at

    def take(self) -> list[Span]:
        """What is finished by now."""
        made, self._made = self._made, []
        return made

    def finish(self, ended_ms: int) -> list[Span]:
        """The rest, once there is no further entry: calls that never ended do so with the lease."""
        self._flush()
        for call_id, call in self._open.items():
            self._tool(call, call_id, ended_ms, {}, "abandoned")
        self._open.clear()
        return self.take()

    def _flush(self) -> None:
        said, self._said = self._said, None
        if said is None:
            return
        data, mode = said.data, self._mode
        model, stop = word(data, "model"), word(data, "stop")
        calls = [
            {"id": word(call, "id"), "name": word(call, "name")}
            for call in _items(data.get("tool_calls"))
            if isinstance(call, Mapping)
        ]
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": word(data, "provider") or "unknown",
            "gen_ai.request.model": model,
            "gen_ai.response.model": model,
            "gen_ai.response.finish_reasons": (stop,),
            **usage(data),
            COST: self._purse.take(price_of(self._lease, data)) if self._has_room() else 0,
            **content.question(mode, said.read),
            **content.answer(mode, said.text, calls, stop),
        }
        times = (said.began_ms, said.ended_ms)
        self._make(("chat", said.number), f"chat {model}", times, attributes, client=True)

    def _answered(self, number: int, at: int, data: Mapping[str, Any]) -> None:
        # Where a runner of an older release does not say how long it took, it began after what came before.
        began = at - count(data, "ms") if "ms" in data else self._before
        read, self._read, self._room = self._read, [], MAX_TEXT
        text = self._kept(_text(data, "text"))
        self._said = _Said(number, self._since(began, at), at, data, read, text)

    def _called(self, number: int, at: int, data: Mapping[str, Any]) -> None:
        call_id, text = word(data, "id"), _text(data, "content")
        if "name" in data or call_id in self._open:
            missed = _Open(word(data, "name"), at - count(data, "ms"), number, None)
            call = self._open.pop(call_id, missed)
            failed = None if data.get("ok") is not False else "tool_failed"
            self._tool(call, call_id, at, content.result(self._mode, self._kept(text)), failed)
        self._hear(Part("tool", text, call_id))

    def _tool(self, call: _Open, call_id: str, at: int, result: Attributes, fault: str | None) -> None:
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.name,
            "gen_ai.tool.call.id": call_id,
            "gen_ai.tool.type": "function",
            COST: 0,
            **(content.arguments(self._mode, call.arguments) if call.arguments is not None else {}),
            **result,
        }
        began = self._since(call.began_ms, at)
        self._make(("tool", call.number), f"execute_tool {call.name}", (began, at), attributes, fault=fault)

    def _stepped(self, number: int, at: int, data: Mapping[str, Any]) -> None:
        name = content.only_known(self._mode, {"sexton.step.name": word(data, "name")})
        fault = None if data.get("ok") is not False else "step_failed"
        began = self._since(at - count(data, "ms"), at)
        self._make(("step", number), "step", (began, at), {COST: 0, **name}, fault=fault)

    def _make(
        self,
        place: tuple[str, int],
        name: str,
        times: tuple[int, int],
        attributes: Attributes,
        *,
        client: bool = False,
        fault: str | None = None,
    ) -> None:
        if not self._has_room():
            self.left_out += 1
            return
        self._count += 1
        self._made.append(
            Span(
                trace_id=self._context.trace_id,
                span_id=span_id(self._event.id, LEASE, self._lease.attempt, *place),
                parent_id=self._parent,
                name=name,
                kind=SpanKind.CLIENT if client else SpanKind.INTERNAL,
                began_ms=times[0],
                ended_ms=times[1],
                attributes=attributes,
                fault=fault,
            )
        )

    def _has_room(self) -> bool:
        return self._count < self._most

    def _since(self, began: int, ended: int) -> int:
        return min(max(began, self._lease.granted_at), ended)

    def _hear(self, part: Part) -> None:
        if self._mode is ContentMode.NONE or self._room <= 0:
            return
        text = part.text[: self._room]
        self._room -= len(text)
        self._read.append(Part(part.role, text, part.call_id))

    def _kept(self, text: str) -> str:
        return "" if self._mode is ContentMode.NONE else text[:MAX_TEXT]


def usage(data: Mapping[str, Any]) -> dict[str, Value]:
    """Counts of tokens by the conventions: those of the cache are part of the input.

    >>> usage({"input_tokens": 80, "cached_input_tokens": 900, "output_tokens": 50})
    ... # doctest: +NORMALIZE_WHITESPACE
    {'gen_ai.usage.input_tokens': 980, 'gen_ai.usage.cache_read.input_tokens': 900,
     'gen_ai.usage.cache_creation.input_tokens': 0, 'gen_ai.usage.output_tokens': 50}
    """
    cached, written = count(data, "cached_input_tokens"), count(data, "cache_write_tokens")
    return {
        "gen_ai.usage.input_tokens": count(data, "input_tokens") + cached + written,
        "gen_ai.usage.cache_read.input_tokens": cached,
        "gen_ai.usage.cache_creation.input_tokens": written,
        "gen_ai.usage.output_tokens": count(data, "output_tokens"),
    }


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name)
    return value if isinstance(value, str) else ""


def _items(value: object) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()
