"""Tries each mutant against tests, in a forked child of a process that has imported them all."""

from __future__ import annotations

import inspect
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Final, NamedTuple

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import Phase, settings

from tests.mutation.children import ENDED, answers
from tests.mutation.makers import Mutant, mutants
from tests.mutation.replacement import function_at, note_calls, plant

NEEDS_A_DATABASE: Final = frozenset({"postgres_dsn", "module_dsn", "emptied_dsn", "embedded_server"})
SLOWEST_S: Final = 1.0
"""A test that takes longer is not asked. This and all other times are of the processor."""
PATIENCE: Final = 5
PATIENCE_S: Final = 3
"""A mutant's tests are ended when they take this many times as long as without it, and these seconds more."""
WHOLE_S: Final = 600.0
GROUP: Final = 40
"""Tests that one child looks at, in at most this time."""


class Tried(NamedTuple):
    """What became of one mutant."""

    module: str
    name: str
    line: int
    killed: str
    """The test that failed, or what else ended it; empty when nothing noticed it."""


class _Known(NamedTuple):
    """A test that passes without a mutant."""

    place: int
    seconds: float
    reached: frozenset[tuple[str, str]]
    """Modules and their functions that it calls."""


class Trials:
    """A plugin of pytest that does this instead of running the tests."""

    def __init__(
        self,
        modules: Sequence[str],
        processes: int,
        budget_s: float,
        told: Callable[[str, Sequence[Tried]], None],
        only: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        self._modules = [import_module(name) for name in modules]
        self._processes = processes
        self._budget_s = budget_s
        self._told = told
        self._only = only
        self._items: list[pytest.Item] = []
        self.tests = 0
        """Those that pass, and reach one of the modules."""

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        # What one run finds the next must find again, and a failure need not be made small.
        few = (Phase.explicit, Phase.generate)
        settings.register_profile(
            "mutants", settings(), derandomize=True, database=None, phases=few, deadline=None
        )
        settings.load_profile("mutants")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if not _needs_a_database(item)]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._items = session.items
        known = self._baseline()
        self.tests = len(known)
        for module in self._modules:
            tried = [
                Tried(one.module, one.name, one.line, "time" if killed == ENDED else killed)
                for one, killed in answers(self._trials(module, known), self._processes)
            ]
            self._told(module.__name__, tried)
        return True

    def _baseline(self) -> list[_Known]:
        groups = [range(first, len(self._items))[:GROUP] for first in range(0, len(self._items), GROUP)]
        jobs = ((None, partial(self._look, group), WHOLE_S) for group in groups)
        found: list[_Known] = []
        for _, known in answers(jobs, self._processes):
            found += [] if known == ENDED else known
        return sorted((one for one in found if one.reached), key=lambda one: one.place)

    def _look(self, places: Sequence[int]) -> list[_Known]:
        called = [note_calls(module, inspect.getsource(module)) for module in self._modules]
        known: list[_Known] = []
        for number, place in enumerate(places):
            for one in called:
                one.clear()
            began = time.process_time()
            failed = self._fails(place, places[number + 1] if number + 1 < len(places) else None)
            seconds = time.process_time() - began
            if not failed and seconds < SLOWEST_S:
                known.append(_Known(place, seconds, frozenset().union(*called)))
        return known

    def _fails(self, place: int, following: int | None) -> bool:
        after = None if following is None else self._items[following]
        return any(report.failed for report in runtestprotocol(self._items[place], log=False, nextitem=after))

    def _trials(
        self, module: ModuleType, known: Sequence[_Known]
    ) -> Iterator[tuple[Mutant, Callable[[], str], float]]:
        for mutant in mutants(module, inspect.getsource(module)):
            if self._only is not None and mutant.name not in self._only[module.__name__]:
                continue
            chosen = list(self._chosen(mutant, known))
            seconds = PATIENCE * sum(one.seconds for one in chosen) + PATIENCE_S
            yield mutant, partial(self._try, mutant, [one.place for one in chosen]), seconds

    def _chosen(self, mutant: Mutant, known: Sequence[_Known]) -> Iterator[_Known]:
        """Those that call the function, the most particular first, as far as there is time for them."""
        is_function = function_at(sys.modules[mutant.module], mutant.where) is not None
        able = [
            one
            for one in known
            if (mutant.module, mutant.where) in one.reached
            or (not is_function and any(module == mutant.module for module, _ in one.reached))
        ]
        left = self._budget_s
        for one in sorted(able, key=lambda one: (one.seconds * len(one.reached), one.place)):
            left -= one.seconds
            if left < 0:
                return
            yield one

    def _try(self, mutant: Mutant, places: Sequence[int]) -> str:
        try:
            plant(mutant)
        except Exception as error:  # noqa: BLE001  (whatever a changed module raises)
            return f"import: {type(error).__name__}"
        for number, place in enumerate(places):
            if self._fails(place, places[number + 1] if number + 1 < len(places) else None):
                return self._items[place].nodeid
        return ""


def _needs_a_database(item: pytest.Item) -> bool:
    wanted = set(getattr(item, "fixturenames", ()))
    call = getattr(item, "callspec", None)
    return bool(wanted & NEEDS_A_DATABASE) or (call is not None and "postgres" in call.params.values())
