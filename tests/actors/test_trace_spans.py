"""Spans of a run: bounded, and with costs that add up to the bill whatever the run says."""

from random import Random
from typing import Any
from uuid import UUID

from sexton_actors.traces.content import ContentMode
from sexton_actors.traces.context import context_of
from sexton_actors.traces.costs import Purse
from sexton_actors.traces.event_spans import Traced, attempt_spans
from sexton_actors.traces.run_spans import MOST_SPANS, RunSpans
from sexton_actors.traces.spans import COST, Span
from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.leases import Lease, LeaseStatus, Rates
from sexton_storage.records.transcripts import TranscriptEntry

ID = UUID(int=7)
EVENT = Event(ID, ID, ID, ID, "webhook:github", "push", EventStatus.PROCESSED, "{}", 1_000, 9_000)
RATES = Rates(100_000, 3_000_000_000, 300_000_000, 15_000_000_000, 3_750_000_000)
LEASE = Lease(ID, ID, ID, ID, ID, ID, 1, 1, LeaseStatus.REPORTED, 2, 2_000, 9_000, 9_000, 8_000, RATES)


def spans_of(told: list[tuple[str, Any]], nanos: int, mode: ContentMode = ContentMode.FULL) -> list[Span]:
    purse, context = Purse(nanos), context_of(EVENT)
    run = RunSpans(EVENT, LEASE, context, purse, mode)
    for number, (kind, data) in enumerate(told, 1):
        run.add(TranscriptEntry(ID, ID, 1, number, kind, 1_990 + number, data, 1))
    return attempt_spans(Traced(EVENT, "doctor", context, mode), LEASE, [], run, purse)


def cost(spans: list[Span]) -> int:
    found = [span.attributes[COST] for span in spans]

    assert all(isinstance(one, int) and one >= 0 for one in found)
    return sum(one for one in found if isinstance(one, int))


def test_costs_add_up_to_the_bill_whatever_a_run_says_of_its_tokens() -> None:
    rng = Random(11)
    numbers = [0, 1, 3, 999_999, 2**53, -5, True, "7", None, 2**70, 1.5]
    kinds = ["prompt", "model", "tool_call", "tool_result", "gate", "step", "output", "note", "end", "?"]
    for _ in range(60):
        told: list[tuple[str, Any]] = []
        for _ in range(rng.randrange(30)):
            names = ["input_tokens", "output_tokens", "cached_input_tokens", "ms", "id", "tool_calls", "text"]
            data = {name: rng.choice(numbers) for name in rng.sample(names, 4)}
            told.append((rng.choice(kinds), {**data, **rng.choice([{"model": "large"}, {"name": "x"}, {}])}))
        nanos = rng.choice([0, 1, 777, 10**12])
        spans = spans_of(told, nanos, rng.choice(list(ContentMode)))

        assert cost(spans) == nanos
        assert all(LEASE.granted_at <= span.began_ms <= span.ended_ms for span in spans)
        assert len({span.span_id for span in spans}) == len(spans)


def test_an_answer_costs_its_tokens_and_the_lease_has_the_rest() -> None:
    spans = spans_of([("model", {"model": "large", "input_tokens": 2, "output_tokens": 3})], 60_000)
    by_name = {span.name: span.attributes[COST] for span in spans}

    assert by_name == {"chat large": 51_000, "invoke_agent doctor": 0, "report": 0, "lease": 9_000}


def test_the_spans_of_an_attempt_are_bounded_and_the_bill_is_whole_all_the_same() -> None:
    answer = ("model", {"model": "large", "input_tokens": 1, "output_tokens": 1})
    spans = spans_of([answer] * (MOST_SPANS + 5), 10**9)
    run = next(span for span in spans if span.name.startswith("invoke_agent"))

    assert len(spans) == MOST_SPANS + 3
    assert run.attributes["sexton.spans.left_out"] == 5
    assert cost(spans) == 10**9


def test_a_long_answer_is_one_span_and_its_text_is_bounded() -> None:
    told = [("model", {"model": "large", "text": "a" * 3_400}), *[("model", {"text": "b" * 3_400})] * 9]
    chat = spans_of(told, 0)[0]
    said = chat.attributes["gen_ai.output.messages"]

    assert chat.attributes["sexton.content.output_chars"] == 12_000
    assert isinstance(said, str)
    assert said.count("b") + said.count("a") >= 12_000
    assert len(said) <= 16_384
