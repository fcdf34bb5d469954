"""Both providers against servers that speak their protocols on loopback, in good order and in bad."""

from __future__ import annotations

import email.utils
import itertools
import random
import sys
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any, Literal

import orjson
import pytest
import trio
import trio.testing

from sexton_runner.providers import transport
from sexton_runner.providers.addresses import read_addresses
from sexton_runner.providers.base import (
    Again,
    Delta,
    Message,
    Opaque,
    Prompt,
    Provider,
    Reply,
    Stop,
    Text,
    TextDelta,
    ToolAnswer,
    ToolCalled,
    ToolSpec,
    ToolUse,
    Usage,
    Used,
)
from sexton_runner.providers.chain import Link, ModelChain
from sexton_runner.providers.faults import (
    KeyRefused,
    ModelAway,
    ModelFault,
    ModelRefused,
    ProviderMissing,
    QuotaUsed,
    WindowFull,
)
from sexton_runner.providers.registry import open_provider, service_of
from sexton_runner.providers.retries import Patience
from sexton_runner.providers.statuses import retry_after
from tests.fakes.model_servers import KEY, Call, Fail, ModelServer, Say, open_model

Protocol = Literal["anthropic", "openai"]
PROTOCOLS: tuple[Protocol, ...] = ("anthropic", "openai")
HASTE = Patience(tries=4, wait_first_s=0.001, wait_max_s=0.01)
ONCE = Patience(tries=1)
LOOK = ToolSpec(
    "look", "Looks.", {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}
)
both = pytest.mark.parametrize("protocol", PROTOCOLS)


def ask(*messages: Message, **changes: Any) -> Prompt:
    given = messages or (Message("user", (Text("What is it?"),)),)
    return Prompt(**{"model": "m-1", "messages": given, "system": "Be brief.", "tools": (LOOK,)} | changes)


@asynccontextmanager
async def provider_at(
    server: ModelServer, *, patience: Patience = ONCE, key: str = KEY
) -> AsyncIterator[Provider]:
    addresses: dict[str, str] = {server.protocol: server.base_url}
    async with open_provider(
        server.protocol, key, addresses=addresses, patience=patience, rng=random.Random(1)
    ) as provider:
        yield provider


async def hear(server: ModelServer, prompt: Prompt | None = None, **how: Any) -> list[Delta]:
    async with (
        provider_at(server, **how) as provider,
        aclosing(provider.stream(prompt or ask())) as deltas,
    ):
        return [delta async for delta in deltas]


def reply_of(deltas: list[Delta]) -> Reply:
    last = deltas[-1]
    assert isinstance(last, Reply)
    return last


# --- answers ------------------------------------------------------------------------------------------


@both
async def test_words_come_as_they_are_said_and_add_up_to_the_reply(protocol: Protocol) -> None:
    async with open_model(
        protocol, Say("It is a heron.", input_tokens=70, cached=30, output_tokens=9)
    ) as server:
        deltas = await hear(server)
    words = [delta.text for delta in deltas if isinstance(delta, TextDelta)]
    assert len(words) == 3
    assert "".join(words) == "It is a heron."

    reply = reply_of(deltas)
    assert reply.message == Message("assistant", (Text("It is a heron."),))
    assert reply.stop is Stop.END
    assert reply.usage == Usage(70, 30, 9)
    assert [delta for delta in deltas if isinstance(delta, Used)][-1].usage == reply.usage


@both
async def test_tool_uses_are_put_together_from_their_pieces_in_order(protocol: Protocol) -> None:
    calls = (
        Call("look", {"at": "the käfig"}, id="a1", pieces=7),
        Call("look", {"at": "the door", "deep": {"er": [1, 2]}}, id="a2", pieces=1),
    )
    async with open_model(protocol, Say("Let me see.", calls)) as server:
        deltas = await hear(server)
    wanted = (
        ToolUse("a1", "look", {"at": "the käfig"}),
        ToolUse("a2", "look", {"at": "the door", "deep": {"er": [1, 2]}}),
    )
    assert tuple(delta.use for delta in deltas if isinstance(delta, ToolCalled)) == wanted

    reply = reply_of(deltas)
    assert reply.message.tool_uses == wanted
    assert reply.message.text == "Let me see."
    assert reply.stop is Stop.TOOLS


@both
@pytest.mark.parametrize(
    "spelt", ['{"at": "the d', "[1]", '"at"', '{"at": ' + "[" * 40 + "]" * 40 + "}", "nul"]
)
async def test_arguments_that_cannot_be_read_are_a_fault_of_that_call_alone(
    protocol: Protocol, spelt: str
) -> None:
    calls = (Call("look", spelt, id="a1"), Call("look", {"at": "x"}, id="a2"))
    async with open_model(protocol, Say("", calls)) as server:
        broken, whole = reply_of(await hear(server)).message.tool_uses

    assert broken.fault
    assert broken.arguments == {}
    assert (whole.fault, whole.arguments) == ("", {"at": "x"})


@both
async def test_a_tool_without_parameters_may_be_called_with_nothing_said(protocol: Protocol) -> None:
    async with open_model(protocol, Say("", (Call("look", ""),))) as server:
        (use,) = reply_of(await hear(server)).message.tool_uses
    assert (use.arguments, use.fault) == ({}, "")


@both
async def test_the_bound_on_output_and_a_refusal_are_told_apart(protocol: Protocol) -> None:
    length = "max_tokens" if protocol == "anthropic" else "length"
    async with open_model(protocol, Say("It is", stop=length), Say("", refusal="I will not.")) as server:
        cut = reply_of(await hear(server, ask(max_output_tokens=2)))
        refused = reply_of(await hear(server))

    assert cut.stop is Stop.LENGTH
    assert refused.stop is Stop.REFUSED
    assert server.asked[0]["max_tokens"] == 2


@both
async def test_a_conversation_with_tool_answers_goes_back_in_the_spelling_of_the_protocol(
    protocol: Protocol,
) -> None:
    uses = (ToolUse("a1", "look", {"at": "x"}), ToolUse("a2", "look", {}, "broken"))
    prompt = ask(
        Message("user", (Text("Look."),)),
        Message("assistant", (Opaque("elsewhere", {"secret": 1}), Text("I look."), *uses)),
        Message("user", (ToolAnswer("a1", "a heron"), ToolAnswer("a2", "no", ok=False), Text("Go on."))),
    )
    async with open_model(protocol, Say("Good.")) as server:
        assert reply_of(await hear(server, prompt)).message.text == "Good."
    (asked,) = server.asked
    assert "secret" not in str(asked)

    if protocol == "anthropic":
        answers = asked["messages"][2]["content"]
        assert [block["type"] for block in answers] == ["tool_result", "tool_result", "text"]
        assert [block.get("is_error") for block in answers] == [False, True, None]
        # What every question begins with is cached: the tools and instructions, and the conversation so far.
        assert asked["system"][0]["cache_control"] == {"type": "ephemeral"}
        assert answers[-1]["cache_control"] == {"type": "ephemeral"}
    else:
        roles = [turn["role"] for turn in asked["messages"]]
        assert roles == ["system", "user", "assistant", "tool", "tool", "user"]
        assert asked["stream_options"] == {"include_usage": True}


async def test_thinking_goes_back_to_the_provider_whose_it_is() -> None:
    say = Say("I think it is.", (Call("look", {"at": "x"}, id="t1"),), thinking="Herons are grey.")
    async with open_model("anthropic", say, Say("Yes.")) as server:
        first = reply_of(await hear(server)).message
        answered = Message("user", (ToolAnswer("t1", "grey"),))
        await hear(server, ask(Message("user", (Text("What?"),)), first, answered))
    block = server.asked[1]["messages"][1]["content"][0]

    assert block == {"type": "thinking", "thinking": "Herons are grey.", "signature": "c2lnbmVk"}


async def test_what_anthropic_writes_to_its_cache_counts_as_input() -> None:
    async with open_model("anthropic", Say("x", input_tokens=5, written=40, cached=100)) as server:
        assert reply_of(await hear(server)).usage == Usage(5, 100, 20, 40)


async def test_empty_words_are_not_sent_to_a_protocol_that_refuses_them() -> None:
    prompt = ask(
        Message("user", (Text("Hello"),)),
        Message("assistant", (Text(" \n"),)),
        Message("user", (Text("On"),)),
    )
    async with open_model("anthropic", Say("Good.")) as server:
        await hear(server, prompt)

    assert len(server.asked[0]["messages"]) == 2


async def test_calls_that_a_local_server_sends_whole_and_all_with_number_0_are_kept_apart() -> None:
    pieces = [
        {"index": 0, "id": "c1", "function": {"name": "look", "arguments": '{"at": "a"}'}},
        {"index": 0, "id": "c2", "function": {"name": "look", "arguments": {"at": "b"}}},
    ]
    chunk = {"choices": [{"index": 0, "delta": {"tool_calls": pieces}, "finish_reason": None}]}
    async with open_model(
        "openai", Say("", garbage_after=1, garbage=b"data: %b\n\n" % orjson.dumps(chunk))
    ) as server:
        reply = reply_of(await hear(server))

    assert reply.message.tool_uses == (ToolUse("c1", "look", {"at": "a"}), ToolUse("c2", "look", {"at": "b"}))
    assert reply.stop is Stop.TOOLS


async def test_events_of_a_kind_that_was_added_later_are_passed_over() -> None:
    later = b'event: message_mood\ndata: {"type": "message_mood", "mood": "good"}\n\n'
    async with open_model("anthropic", Say("Fine.", garbage_after=1, garbage=later)) as server:
        assert reply_of(await hear(server)).message.text == "Fine."


# --- faults -------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize(
    ("fail", "kind"),
    [
        (Fail(429, "rate_limit_error"), ModelAway),
        (Fail(529, "overloaded_error"), ModelAway),
        (Fail(500), ModelAway),
        (Fail(503), ModelAway),
        (Fail(408), ModelAway),
        (Fail(400, "invalid_request_error", "bad field"), ModelRefused),
        (Fail(400, "context_length_exceeded", "too long"), WindowFull),
        (Fail(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000"), WindowFull),
        (Fail(401, "authentication_error"), KeyRefused),
        (Fail(403, "permission_error"), KeyRefused),
        (Fail(404, "not_found_error", "model: m-1"), ModelRefused),
        (Fail(413, "request_too_large"), ModelRefused),
        (Fail(429, "insufficient_quota", "You exceeded your current quota"), QuotaUsed),
        (Fail(302, headers={"location": "http://127.0.0.1:1/steal"}), ModelRefused),
    ],
)
async def test_each_error_answer_is_told_by_its_kind(
    protocol: Protocol, fail: Fail, kind: type[ModelFault]
) -> None:
    async with open_model(protocol, fail) as server:
        with pytest.raises(ModelFault) as caught:
            await hear(server)

    assert type(caught.value) is kind
    assert KEY not in str(caught.value)


@both
async def test_a_model_that_was_away_is_asked_again_and_what_was_shown_is_void(protocol: Protocol) -> None:
    script = (Fail(529, "overloaded_error"), Say("It is a", cut_after=4), Say("It is a heron."))
    async with open_model(protocol, *script) as server:
        deltas = await hear(server, patience=HASTE)

    assert [delta.void for delta in deltas if isinstance(delta, Again)] == [False, True]
    assert reply_of(deltas).message.text == "It is a heron."
    assert len(server.asked) == 3
    assert server.asked[0] == server.asked[2]


@both
async def test_patience_has_an_end(protocol: Protocol) -> None:
    async with open_model(protocol, otherwise=Fail(503)) as server:
        with pytest.raises(ModelAway):
            await hear(server, patience=HASTE)
    assert len(server.asked) == HASTE.tries


@both
async def test_what_would_be_refused_again_is_not_asked_again(protocol: Protocol) -> None:
    async with open_model(protocol, otherwise=Fail(400, "invalid_request_error")) as server:
        with pytest.raises(ModelRefused):
            await hear(server, patience=HASTE)
    assert len(server.asked) == 1


@both
async def test_the_time_that_a_provider_asks_for_is_waited_within_bounds(
    protocol: Protocol, autojump_clock: trio.testing.MockClock
) -> None:
    del autojump_clock  # Nothing here waits for the network while the clock could jump.
    waits = [ModelAway("busy", 7.0), ModelAway("busy", 3600.0), ModelAway("busy"), None]

    class Busy:
        async def stream(self, prompt: Prompt) -> AsyncIterator[Delta]:
            fault = waits.pop(0)
            if fault is not None:
                raise fault
            yield Reply(Message("assistant", (Text("Here."),)), Stop.END, Usage())

    retrying = ModelChain([Link(0, Busy())], Patience(), random.Random(1))  # type: ignore[arg-type]
    async with aclosing(retrying.stream(ask())) as deltas:
        times = [trio.current_time() async for _ in deltas]
    first, second, third = (late - early for early, late in itertools.pairwise(times))

    assert (first, second) == (7.0, 60.0)
    assert 2.0 <= third <= 4.0


def test_retry_after_is_read_in_each_of_its_spellings() -> None:
    soon = email.utils.formatdate(time.time() + 30, usegmt=True)

    assert 25 < (retry_after({"retry-after": soon}) or 0) <= 30
    assert retry_after({"retry-after": "2.5"}) == 2.5
    assert retry_after({"retry-after-ms": "1500", "retry-after": "9"}) == 1.5
    assert retry_after({"retry-after": "-3"}) is None
    assert retry_after({"retry-after": "soon"}) is None
    assert retry_after({"retry-after": "٣"}) is None


@both
@pytest.mark.parametrize("after", [0, 1, 2, 3, 4, 5])
async def test_a_stream_that_is_cut_anywhere_is_never_taken_for_an_answer(
    protocol: Protocol, after: int
) -> None:
    async with open_model(protocol, Say("It is a heron.", cut_after=after)) as server:
        with pytest.raises(ModelAway):
            await hear(server)


GARBAGE = (
    b"data: {not json\n\n",
    b'event: content_block_delta\ndata: {"type": "content_block_delta", "index": "x"}\n\n',
    b'event: content_block_stop\ndata: {"type": "content_block_stop", "index": 77}\n\n',
    b'event: message_delta\ndata: {"type": "message_delta", "delta": 7}\n\n',
    b"event: message_start\ndata: [1, 2]\n\n",
    b"event: message_start\ndata: null\n\n",
    b"event: message_start\ndata: \xff\xfe\n\n",
    (
        b'event: content_block_start\ndata: {"type": "content_block_start", "index": 9, '
        b'"content_block": {"type": "tool_use", "id": 5}}\n\n'
        b'event: content_block_stop\ndata: {"type": "content_block_stop", "index": 9}\n\n'
    ),
)
CHAT_GARBAGE = (
    b"data: {not json\n\n",
    b'data: {"choices": 7}\n\n',
    b'data: {"choices": [{"index": 0, "delta": {"content": {"a": 1}}}]}\n\n',
    b'data: {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": "x"}]}}]}\n\n',
    b"data: [1, 2]\n\n",
    b"data: null\n\n",
    b"data: \xff\xfe\n\n",
    b'data: {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 9, "id": "n"}]}}]}\n\n',
)


@pytest.mark.parametrize(
    ("protocol", "garbage"),
    [*(("anthropic", line) for line in GARBAGE), *(("openai", line) for line in CHAT_GARBAGE)],
)
async def test_events_that_make_no_sense_break_the_answer_off(protocol: Protocol, garbage: bytes) -> None:
    async with open_model(protocol, Say("Well.", garbage_after=2, garbage=garbage)) as server:
        with pytest.raises(ModelAway):
            await hear(server)


@pytest.mark.parametrize(
    ("protocol", "line", "kind"),
    [
        (
            "anthropic",
            b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error"}}\n\n',
            ModelAway,
        ),
        (
            "anthropic",
            b'event: error\ndata: {"type": "error", "error": {"type": "invalid_request_error"}}\n\n',
            ModelRefused,
        ),
        ("anthropic", b"event: error\ndata: oh no\n\n", ModelAway),
        (
            "openai",
            b'data: {"error": {"message": "The server had an error", "type": "server_error"}}\n\n',
            ModelAway,
        ),
        ("openai", b'data: {"error": {"message": "no", "code": "context_length_exceeded"}}\n\n', WindowFull),
        ("openai", b'data: {"error": "out of memory"}\n\n', ModelAway),
    ],
)
async def test_an_error_within_a_stream_is_told_by_its_kind(
    protocol: Protocol, line: bytes, kind: type[ModelFault]
) -> None:
    async with open_model(protocol, Say("Well.", garbage_after=2, garbage=line)) as server:
        with pytest.raises(ModelFault) as caught:
            await hear(server)
    assert type(caught.value) is kind


@both
async def test_an_answer_without_end_is_broken_off(
    protocol: Protocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "MAX_ANSWER_BYTES", 20_000)
    endless = b": " + b"x" * 50_000 + b"\n\n"
    async with open_model(protocol, Say("Well.", garbage_after=1, garbage=endless)) as server:
        with pytest.raises(ModelAway):
            await hear(server)


@both
async def test_silence_is_a_fault_after_a_while(protocol: Protocol, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "SILENCE_S", 0.05)
    async with open_model(protocol, Say("Well.", hang_after=2)) as server:
        with pytest.raises(ModelAway):
            await hear(server)


async def test_a_server_that_is_not_there_is_away() -> None:
    async with open_model("openai") as server:
        pass
    with pytest.raises(ModelAway):
        await hear(server)


# --- leaving ------------------------------------------------------------------------------------------


@both
async def test_a_cancelled_question_hangs_up_at_once_also_before_the_first_byte(protocol: Protocol) -> None:
    never = trio.Event()
    async with open_model(protocol, Say("Well.", wait_for=never), Say("Well.", hang_after=3)) as server:
        for number in (1, 2):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(hear, server)
                await server.until(lambda wanted=number: len(server.asked) == wanted)  # type: ignore[misc]
                nursery.cancel_scope.cancel()
            await server.until(lambda wanted=number: server.left == wanted)  # type: ignore[misc]


@both
async def test_a_listener_that_leaves_in_the_middle_hangs_up(protocol: Protocol) -> None:
    async with (
        open_model(protocol, Say("It is a heron.", hang_after=4)) as server,
        provider_at(server) as provider,
    ):
        async with aclosing(provider.stream(ask())) as deltas:
            async for delta in deltas:
                if isinstance(delta, TextDelta):
                    break
        await server.until(lambda: server.left == 1)


# --- who is asked -------------------------------------------------------------------------------------


async def test_nothing_is_taken_from_the_environment_of_the_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "of-the-operator")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "of-the-operator")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "of-the-operator")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    for protocol in PROTOCOLS:
        async with open_model(protocol, Say("Here.")) as server:
            assert reply_of(await hear(server)).message.text == "Here."
        assert "of-the-operator" not in str(server.heads)


async def test_a_provider_that_needs_a_key_is_not_asked_without_one() -> None:
    with pytest.raises(ProviderMissing, match="needs a key"):
        async with open_provider("anthropic", None, addresses={}, patience=ONCE, rng=random.Random(1)):
            pass


async def test_a_local_server_needs_no_key() -> None:
    async with open_model("openai", Say("Here.")) as server:
        server.key = "none"
        addresses = {"ollama": server.base_url}
        async with (
            open_provider(
                "ollama", None, addresses=addresses, patience=ONCE, rng=random.Random(1)
            ) as provider,
            aclosing(provider.stream(ask())) as deltas,
        ):
            assert reply_of([delta async for delta in deltas]).message.text == "Here."


def test_an_unknown_provider_is_refused_unless_its_address_is_set() -> None:
    with pytest.raises(ProviderMissing, match="SEXTON_MY_LAB_BASE_URL"):
        service_of("my-lab", {})
    addresses = read_addresses({"SEXTON_MY_LAB_BASE_URL": "http://lab:9/v1/"})
    assert service_of("my_lab", addresses).base_url == "http://lab:9/v1"

    with pytest.raises(ProviderMissing, match="address"):
        service_of("openai", {"openai": "file:///etc/passwd"})


async def test_a_missing_package_is_said_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sexton_runner.providers.openai_api", None)
    with pytest.raises(ProviderMissing, match=r"'openai' cannot be imported.*the extra models"):
        async with open_provider("openai", "k", addresses={}, patience=ONCE, rng=random.Random(1)):
            pass
