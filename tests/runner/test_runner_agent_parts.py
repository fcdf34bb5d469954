"""The pure parts of a model's run: streams taken apart, windows, checkpoints and evidence within bounds."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import orjson
import pytest
from hypothesis import given, settings, strategies as st

from sexton_runner.output import MAX_EVIDENCE_BYTES
from sexton_runner.providers.base import Message, Opaque, Part, Text, ToolAnswer, ToolUse
from sexton_runner.providers.sse import EventData
from sexton_runner.runtimes.agent.evidence import Evidence
from sexton_runner.runtimes.agent.prompt import first_message
from sexton_runner.runtimes.agent.run_limits import RunLimits
from sexton_runner.runtimes.agent.saved_conversation import (
    MAX_KEPT_BYTES,
    SavedConversation,
    TooLarge,
    decode,
    encode,
)
from sexton_runner.runtimes.agent.window import answers_in, fitted, windowed
from sexton_runner.tools.base import ToolResult
from sexton_runner.wire import Event, Lease
from tests.fakes.model_servers import Call, Say, anthropic_events, chat_chunks

words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=40)
ids = st.text("abcdef0123456789_", min_size=1, max_size=8)
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | words, lambda inner: st.lists(inner, max_size=2)
)
assistants = st.lists(
    st.builds(Text, words)
    | st.builds(ToolUse, ids, ids, st.dictionaries(ids, plain, max_size=2))
    | st.builds(Opaque, ids, st.dictionaries(ids, words, max_size=2)),
    max_size=3,
)
users = st.lists(st.builds(Text, words) | st.builds(ToolAnswer, ids, words, st.booleans()), max_size=3)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[Message, ...]:
    found = []
    for turn in range(draw(st.integers(1, 6))):
        parts: tuple[Part, ...] = tuple(draw(assistants if turn % 2 else users))
        found.append(Message("assistant" if turn % 2 else "user", parts))
    return tuple(found)


@given(
    cuts=st.lists(st.integers(0, 6000), max_size=12),
    spell=st.sampled_from([anthropic_events, chat_chunks]),
    end=st.sampled_from([b"\n", b"\r\n", b"\r"]),
)
@settings(deadline=None)
def test_a_stream_means_the_same_however_it_is_cut(cuts: list[int], spell: Any, end: bytes) -> None:
    say = Say("Ein Käfig voller Reiher.", (Call("look", {"at": "\u2028", "n": 1}),))
    whole = b"".join(spell(say, "m-1")).replace(b"\n", end)
    wanted = EventData().feed(whole + end)
    events = EventData()
    places = sorted({min(cut, len(whole)) for cut in (0, *cuts, len(whole))})
    got = [data for a, b in itertools.pairwise(places) for data in events.feed(whole[a:b])]

    assert got + events.feed(end) == wanted
    assert len(wanted) > 5


@given(messages=conversations(), note=words, stage=st.integers(1, 9))
def test_a_checkpoint_gives_back_what_was_kept_also_as_text(
    messages: tuple[Message, ...], note: str, stage: int
) -> None:
    kept = SavedConversation(stage=stage, note=note, messages=messages, answered=(ToolAnswer("x", "y"),))
    spelt = {"version": 1, "gates": {}, **encode(kept)}

    assert decode(orjson.loads(orjson.dumps(spelt))) == kept
    assert decode(orjson.dumps(spelt)) == kept


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        7,
        [],
        "{",
        {"agent": 7},
        {"agent": {"version": 2}},
        {"agent": {"messages": [{"role": "robot", "parts": []}]}},
        {"agent": {"messages": [{"role": "assistant", "parts": []}]}},
        {"agent": {"messages": [{"role": "user", "parts": [{"type": "song"}]}]}},
    ],
)
def test_a_checkpoint_that_cannot_be_read_begins_the_run_anew(wrong: object) -> None:
    assert decode(wrong) == SavedConversation()


def test_a_large_conversation_loses_old_results_and_not_its_words() -> None:
    results = [
        Message("assistant" if n % 2 == 0 else "user", (ToolAnswer(str(n), "x" * 40_000),))
        for n in range(1, 80)
    ]
    kept = SavedConversation(messages=(Message("user", (Text("Do it."),)), *results))
    plain_ = encode(kept)
    assert len(orjson.dumps(plain_)) <= MAX_KEPT_BYTES

    found = msgspec.convert(plain_["agent"], SavedConversation)
    assert found.messages[0].text == "Do it."
    assert found.messages[-1] == kept.messages[-1]

    with pytest.raises(TooLarge):
        encode(SavedConversation(messages=(Message("user", (Text("x" * 2_000_000),)),)))


@given(messages=conversations(), keep=st.integers(0, 9))
def test_a_window_shortens_old_results_and_touches_nothing_else(
    messages: tuple[Message, ...], keep: int
) -> None:
    long = tuple(
        Message(
            m.role,
            tuple(
                ToolAnswer(p.id, p.content + "x" * 500, p.ok) if isinstance(p, ToolAnswer) else p
                for p in m.parts
            ),
        )
        for m in messages
    )
    found = windowed(long, keep)
    whole = 0
    for before, after in zip(long, found, strict=True):
        assert before.role == after.role
        for old, new in zip(before.parts, after.parts, strict=True):
            if isinstance(old, ToolAnswer) and isinstance(new, ToolAnswer):
                assert (old.id, old.ok) == (new.id, new.ok)
                whole += old == new
            else:
                assert old == new

    assert whole == min(keep, answers_in(long))


def test_nothing_is_shortened_before_it_has_to_be_and_the_newest_never() -> None:
    messages = [Message("user", (ToolAnswer(str(n), "x" * 4_000),)) for n in range(8)]

    def tokens(found: Any) -> int:
        return sum(len(part.content) for message in found for part in message.parts) // 4

    assert fitted(messages, RunLimits(context_cap_tokens=100_000), tokens) == messages

    tight = fitted(messages, RunLimits(context_cap_tokens=4_000), tokens)
    assert tokens(tight) <= 3_000
    assert tight[-1] == messages[-1]


def test_evidence_stays_within_its_bound_and_says_what_it_left_out() -> None:
    evidence = Evidence()
    for n in range(400):
        evidence.add(f"tool{n}", {"n": n}, ToolResult("x", facts={"big": "y" * 1_000, "n": n}), n)
    evidence.add("huge", {}, ToolResult("x", facts={"big": "y" * 100_000}), 1)
    told = evidence.told({"model": "m"})

    assert len(orjson.dumps(told)) <= MAX_EVIDENCE_BYTES
    assert told["tools"][-1]["facts"] == {"left_out": True}
    assert told["tools_left_out"] + len(told["tools"]) == 401 == evidence.count


def test_a_huge_event_and_a_long_memory_leave_room_in_the_window() -> None:
    event = Event("e", "z", "w", "webhook:any", "big", {"raw": "x" * 900_000})
    memory = [{"key": f"k{n}", "content": "y" * 1_000, "category": "core"} for n in range(100)]
    lease = Lease("l", 1, 1, event, "Do it.", "agent", memory=memory, feedback=[{"odd": 1}, "odd"])
    text = first_message(lease, 10_000, "On.").text

    assert len(text) < 10_000 * 4 * 3 // 4
    assert "characters left out" in text
    assert "there is more" in text
    assert text.endswith("On.")
