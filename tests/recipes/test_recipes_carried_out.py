"""Every recipe does what it says: in one server, by one runner with the real sandbox."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio
from scripts import recipe_pages

from tests.recipes import github_cases, model_cases, service_cases
from tests.recipes.kitchen import PRELOADED, WEBHOOK_SECRET, Kitchen, open_kitchen

ELSEWHERE = {
    "cron-health-check": "tests/acceptance/test_acceptance_examples.py",
    "deploy-doctor": "tests/runner/test_runner_examples.py",
    "incident-scribe": "tests/acceptance/test_acceptance_examples.py",
    "issue-triage": "tests/acceptance/test_acceptance_examples.py",
}
"""Recipes that another test carries out."""
CASES: dict[str, Callable[[Kitchen], Awaitable[None]]] = {
    **github_cases.CASES,
    **service_cases.CASES,
    **model_cases.CASES,
}
ROOT = Path(__file__).resolve().parents[2]
AT_ONCE = 4
ENOUGH = 20


def test_there_are_twenty_recipes_and_each_has_a_case() -> None:
    assert len(recipe_pages.recipes()) >= ENOUGH
    assert sorted([*CASES, *ELSEWHERE]) == recipe_pages.recipes()
    assert [name for name, file in ELSEWHERE.items() if name not in (ROOT / file).read_text()] == []


async def test_each_recipe_is_carried_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(PRELOADED), prepend=os.pathsep)
    wanted = os.environ.get("RECIPES", "").split() or [*CASES]  # Names, where one is being written.
    faults: dict[str, Exception] = {}
    limit = trio.CapacityLimiter(AT_ONCE)

    async with open_kitchen(tmp_path, service_cases.DAYS) as kitchen, trio.open_nursery() as nursery:
        await kitchen.keep("github", webhook_secret=WEBHOOK_SECRET, token=github_cases.TOKEN)
        for sender in ("alerts", "linear"):
            await kitchen.keep(sender, webhook_secret=WEBHOOK_SECRET)

        async def carry_out(recipe: str) -> None:
            async with limit:
                try:
                    await CASES[recipe](kitchen)
                except Exception as fault:  # noqa: BLE001 - the others are to be told as well
                    faults[recipe] = fault

        for recipe in wanted:
            nursery.start_soon(carry_out, recipe)

    if faults:
        told = [f"{recipe}: {fault!r}" for recipe, fault in faults.items()]
        raise ExceptionGroup("\n".join(told), [*faults.values()])
