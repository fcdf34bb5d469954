"""Answers of a model that were cut, paused or never whole."""

from __future__ import annotations

from pathlib import Path

from sexton_runner.runtimes.agent.run_limits import RunLimits
from tests.fakes.model_servers import Call, Say, open_model
from tests.worlds.runner_agents import SHELL, Protocol, both, give, reported, runner_with, shell, shown

LENGTH = {"anthropic": "max_tokens", "openai": "length"}


@both
async def test_the_pieces_of_an_answer_that_was_cut_at_its_bound_are_one_answer(
    protocol: Protocol, tmp_path: Path
) -> None:
    cut = LENGTH[protocol]
    script = (Say("The her", stop=cut), Say("on is ", stop=cut), Say("grey."))
    async with open_model(protocol, *script) as model, runner_with(model, tmp_path) as plane:
        give(plane, model)
        report = await reported(plane)
        text = shown(plane)

    assert (report.outcome, report.response_text) == ("processed", "The heron is grey.")
    assert "The heron is grey.\n" in text
    assert [turn["role"] for turn in model.asked[2]["messages"]][-4:] == ["assistant", "user"] * 2
    assert report.output_tokens == 60


async def test_a_paused_turn_is_sent_back_as_it_is_and_nobody_says_a_word(tmp_path: Path) -> None:
    search = {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": "web_search",
        "input": {"query": "Ardea cinerea colour"},
    }
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"title": "Herons"}]}
    cited = {
        "type": "text",
        "text": "The heron is grey",
        "citations": [{"type": "web_search_result_location", "encrypted_index": "Eo8B", "title": "Herons"}],
    }
    script = (
        Say("I look it up. ", blocks=[search], stop="pause_turn"),
        Say(blocks=[found, cited], stop="pause_turn"),
        Say(", all of it."),
    )
    async with open_model("anthropic", *script) as model, runner_with(model, tmp_path) as plane:
        give(plane, model)
        report = await reported(plane)
    assert (report.outcome, report.response_text) == (
        "processed",
        "I look it up. The heron is grey, all of it.",
    )

    first, second, third = (question["messages"] for question in model.asked)
    assert second[:-1] == first
    assert second[-1] == {
        "role": "assistant",
        "content": [{"type": "text", "text": "I look it up. "}, search],
    }
    assert third == [*first, {"role": "assistant", "content": [*second[-1]["content"], found, cited]}]


@both
async def test_an_answer_that_is_never_whole_ends_with_what_was_said(
    protocol: Protocol, tmp_path: Path
) -> None:
    endless = Say("and on ", stop=LENGTH[protocol])
    async with open_model(protocol, otherwise=endless) as model, runner_with(model, tmp_path) as plane:
        give(plane, model, policy={"context": {"max_continuations": 2}})
        report = await reported(plane)

    assert len(model.asked) == 3
    assert (report.outcome, report.failure_reason) == ("agent_error", "agent_run")
    assert report.response_text.startswith("and on and on and on ")
    assert "max_continuations" in report.response_text


async def test_a_pause_without_end_is_bounded(tmp_path: Path) -> None:
    async with (
        open_model("anthropic", otherwise=Say("", stop="pause_turn")) as model,
        runner_with(model, tmp_path) as plane,
    ):
        give(plane, model)
        report = await reported(plane)

    assert len(model.asked) == RunLimits().max_continuations + 1
    assert (report.outcome, report.failure_reason) == ("agent_error", "agent_run")


async def test_words_before_a_tool_call_are_not_part_of_a_cut_answer(tmp_path: Path) -> None:
    script = (
        Say("Let me", stop="max_tokens"),
        Say(" look.", (shell("echo grey"),)),
        Say("It is ", stop="max_tokens"),
        Say("grey."),
    )
    async with open_model("anthropic", *script) as model, runner_with(model, tmp_path) as plane:
        give(plane, model, policy=SHELL)
        report = await reported(plane)

    assert report.response_text == "It is grey."


async def test_a_call_that_was_cut_before_its_arguments_is_not_carried_out(tmp_path: Path) -> None:
    script = (Say("", (Call("shell", "", id="a"),), stop="max_tokens"), Say("Done."))
    async with open_model("anthropic", *script) as model, runner_with(model, tmp_path) as plane:
        give(plane, model, policy=SHELL)
        await reported(plane)
    (answer,) = model.asked[1]["messages"][-1]["content"]

    assert answer["is_error"]
    assert "cut off" in answer["content"]
    assert not plane.frames("tool_call_started")


async def test_a_thought_that_was_cut_is_not_sent_back(tmp_path: Path) -> None:
    script = (Say(thinking="Herons are", signature="", stop="max_tokens"), Say("Grey."))
    async with open_model("anthropic", *script) as model, runner_with(model, tmp_path) as plane:
        give(plane, model)
        report = await reported(plane)

    assert (report.outcome, report.response_text) == ("processed", "Grey.")


async def test_what_was_answered_when_the_window_was_full_is_in_the_note(tmp_path: Path) -> None:
    script = (
        Say("The heron ", stop="max_tokens"),
        Say("is", stop="model_context_window_exceeded"),
        Say("All is left to do."),
    )
    async with open_model("anthropic", *script) as model, runner_with(model, tmp_path) as plane:
        give(plane, model)
        report = await reported(plane)

    assert report.checkpoint is not None
    assert report.response_text.startswith("All is left to do.")
    assert report.response_text.endswith("The heron is")
