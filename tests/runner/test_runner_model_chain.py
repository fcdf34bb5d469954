"""Runs of an agent with several models: who is asked when one is busy, and what is told of each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sexton_runner.providers.settings import ModelSettings
from tests.fakes.control_plane import Plane, open_plane
from tests.fakes.model_servers import KEY, Fail, ModelServer, Say, open_model
from tests.worlds.runner import PACE, running, settings_for
from tests.worlds.runner_agents import HASTE, SHELL, TASK, give, reported, runner_with, shell, shown

ALL = ["cache_write_tokens", "fallbacks", "retry_after_ms"]
BUSY = Fail(529, "overloaded_error")
OTHER_KEY = "sk-other-0123456789abcdef"


@asynccontextmanager
async def two_models(first: ModelServer, second: ModelServer, folder: Path) -> AsyncIterator[Plane]:
    addresses: dict[str, str] = {first.protocol: first.base_url, second.protocol: second.base_url}
    async with open_plane() as plane:
        models = ModelSettings(addresses=addresses, patience=HASTE)
        async with running(settings_for(plane, folder, models=models), PACE):
            yield plane


def give_chain(plane: Plane, first: ModelServer, second: ModelServer, **policy: Any) -> dict[str, Any]:
    second.key = OTHER_KEY
    fallback = {"provider": second.protocol, "model": "m-2", "api_key": OTHER_KEY}
    own: dict[str, Any] = {"provider": first.protocol, "model": "m-1", "api_key": KEY, "context": {}}
    policy = {**own, "fallbacks": [fallback], "understands": ALL, **policy}
    return plane.give(TASK, runtime="agent", policy=policy)


async def test_the_next_model_answers_for_a_busy_one_and_is_counted_by_itself(tmp_path: Path) -> None:
    script = (Say("I look.", (shell("echo grey"),), input_tokens=7, output_tokens=2, written=50), BUSY)
    async with (
        open_model("anthropic", *script) as first,
        open_model(
            "openai", Say(f"Grey. {OTHER_KEY}", input_tokens=30, cached=10, output_tokens=4)
        ) as second,
        two_models(first, second, tmp_path) as plane,
    ):
        give_chain(plane, first, second, **SHELL)
        report = await reported(plane)
        text = shown(plane)
        asked = [question["model"] for question in (*first.asked, *second.asked)]

    assert (report.outcome, report.response_text) == ("processed", "Grey. [redacted]")
    assert asked == ["m-1", "m-1", "m-2"], "the busy one is asked once, the next at once"
    assert "the model m-2 is asked" in text
    assert OTHER_KEY not in text

    counts = (
        report.input_tokens,
        report.cached_input_tokens,
        report.cache_write_tokens,
        report.output_tokens,
    )
    assert counts == (37, 10, 50, 6)

    (other,) = report.fallbacks
    assert (other.input_tokens, other.cached_input_tokens, other.cache_write_tokens) == (30, 10, 0)
    assert other.output_tokens == 4
    assert (report.evidence or {})["models"] == [
        {"provider": "anthropic", "model": "m-1", "questions": 1},
        {"provider": "openai", "model": "m-2", "questions": 1},
    ]


async def test_an_account_without_credit_is_passed_over_and_not_asked_again(tmp_path: Path) -> None:
    async with (
        open_model("openai", Fail(429, "insufficient_quota")) as first,
        open_model("anthropic", Say("", (shell("true"),)), Say("Done.")) as second,
        two_models(first, second, tmp_path) as plane,
    ):
        give_chain(plane, first, second, **SHELL)
        report = await reported(plane)

    assert report.response_text == "Done."
    assert (len(first.asked), len(second.asked)) == (1, 2)


async def test_when_all_are_busy_for_long_the_event_is_given_back_and_goes_on_from_there(
    tmp_path: Path,
) -> None:
    long = Fail(429, "rate_limit_error", headers={"retry-after": "90"})
    script = (Say("", (shell("echo once >> count"),), input_tokens=7, output_tokens=2), long)
    async with open_model("anthropic", *script) as model, runner_with(model, tmp_path) as plane:
        give(plane, model, policy={**SHELL, "understands": ALL})
        await plane.until(lambda: plane.of("release"))
        ((_, back),) = plane.of("release")
        model.script += [Say("Done.")]
        give(plane, model, policy={**SHELL, "understands": ALL}, checkpoint=back.checkpoint)
        report = await reported(plane)

    assert 85_000 <= back.retry_after_ms <= 90_000
    assert "busy" in back.reason
    assert (back.usage.input_tokens, back.usage.output_tokens) == (7, 2)
    assert report.response_text == "Done."
    assert len(plane.frames("tool_call_started")) == 1, "what was done before is not done again"


async def test_an_older_control_plane_is_told_nothing_that_it_does_not_know(tmp_path: Path) -> None:
    long = Fail(529, "overloaded_error", headers={"retry-after": "90"})
    said = Say("Done.", input_tokens=7, written=50)
    async with open_model("anthropic", long, said) as model, runner_with(model, tmp_path) as plane:
        give(plane, model)
        report = await reported(plane)

    assert (report.outcome, report.input_tokens, report.cache_write_tokens) == ("processed", 57, 0)
    assert not plane.of("release")


async def test_options_are_spelt_as_each_provider_takes_them(tmp_path: Path) -> None:
    context = {"temperature": 0.25, "effort": "low"}
    async with (
        open_model("anthropic", BUSY) as first,
        open_model("openai", Say("Done.")) as second,
        two_models(first, second, tmp_path) as plane,
    ):
        give_chain(plane, first, second, context=context)
        await reported(plane)
        first.script += [Say("Thought.")]
        give_chain(plane, first, second, context={"thinking_tokens": 2048})
        await reported(plane, 2)
    (busy, thought), (asked,) = first.asked, second.asked

    assert (busy["temperature"], busy["output_config"]) == (0.25, {"effort": "low"})
    assert (asked["temperature"], asked["reasoning_effort"]) == (0.25, "low")
    assert thought["thinking"] == {"type": "enabled", "budget_tokens": 2048}
    assert thought["max_tokens"] > 2048


async def test_models_that_stay_busy_do_not_end_the_event(tmp_path: Path) -> None:
    async with open_model("openai", otherwise=Fail(503)) as model, runner_with(model, tmp_path) as plane:
        give(plane, model, policy={"understands": ALL})
        await plane.until(lambda: plane.of("release"))
        ((_, back),) = plane.of("release")

    assert len(model.asked) == HASTE.tries
    assert (back.retry_after_ms, back.checkpoint) == (300_000, None)
