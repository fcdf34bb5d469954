"""Servers and runners that look as rarely as their options and constants allow; their code stays as it is."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from sexton_actors.retention_terms import RetentionTerms
from sexton_runner.timing import Timing

LOOK_EVERY_S: Final = 60.0
"""The servers' option ``--look-every``."""
RETENTION: Final = RetentionTerms(slice_days=1)
"""The servers' option ``--slice-days``: metering rows of a day that is over become one for each attempt."""
TIMING: Final = Timing(heartbeat_s=180.0, poll_wait_s=30.0)
"""A runner's polls wait as long as a server lets them."""
_ROUNDS: Final = "sexton_actors.periodic"
CONSTANTS: Final = (
    (f"{_ROUNDS}.reclaimer", "RECLAIM_INTERVAL_S", 60.0),
    (f"{_ROUNDS}.sweeper", "SWEEP_INTERVAL_S", 60.0),
    (f"{_ROUNDS}.sweeper", "PRUNE_INTERVAL_S", 600.0),
    (f"{_ROUNDS}.sweeper", "TRANSCRIPTS_INTERVAL_S", 900.0),
    (f"{_ROUNDS}.delivery_rounds", "WRITE_INTERVAL_S", 300.0),
    (f"{_ROUNDS}.failure_rounds", "SORT_INTERVAL_S", 300.0),
    (f"{_ROUNDS}.word_indexer", "INDEX_INTERVAL_S", 300.0),
    (f"{_ROUNDS}.job_rounds", "JOBS_INTERVAL_S", 300.0),
    (f"{_ROUNDS}.erasure_rounds", "ERASURES_INTERVAL_S", 300.0),
    (f"{_ROUNDS}.erasure_rounds", "LIST_INTERVAL_S", 300.0),
    (f"{_ROUNDS}.canary_rounds", "JUDGE_INTERVAL_S", 300.0),
    (f"{_ROUNDS}.census", "CENSUS_INTERVAL_S", 300.0),
    (f"{_ROUNDS}.file_mover", "MOVE_EVERY_S", 300.0),
    ("sexton_actors.scheduler.actor", "SCHEDULE_INTERVAL_S", 60.0),
    ("sexton_http.gateway.node_questions", "LOOK_S", 300.0),
    ("sexton_http.wire.timeouts", "WATCH_S", 300.0),
)
"""Module, name and seconds. Whatever has a timer of its own still happens on time."""


@contextmanager
def rare_looks() -> Iterator[None]:
    """Have all rounds come rarely until the end of the block."""
    kept: list[tuple[Any, str, float]] = []
    for module_name, name, seconds in CONSTANTS:
        module = importlib.import_module(module_name)
        kept.append((module, name, getattr(module, name)))
        setattr(module, name, seconds)
    try:
        yield
    finally:
        for module, name, before in kept:
            setattr(module, name, before)
