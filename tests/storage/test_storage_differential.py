"""Histories of random commands come to the same rows and answers in PostgreSQL as by the rules."""

import os
import sys
import time
from collections.abc import Iterator

import pytest

from tests.storage.row_histories import difference_of, first_difference
from tests.storage.row_twins import Twins, opened_twins
from tests.thorough import amount

COMMANDS = amount(1_500, 20_000, variable="SEXTON_DIFFERENTIAL_COMMANDS")
SEED = int(os.environ.get("SEXTON_DIFFERENTIAL_SEED", "1"))
STEPS = tuple(int(step) for step in os.environ.get("SEXTON_DIFFERENTIAL_STEPS", "").split(",") if step)
"""The steps of this one seed, to see a difference again."""


@pytest.fixture
def twins(postgres_dsn: str) -> Iterator[Twins]:
    with opened_twins(postgres_dsn) as opened:
        yield opened


def test_histories_are_decided_alike(twins: Twins) -> None:
    began = time.monotonic()

    found = difference_of(twins, SEED, STEPS) if STEPS else first_difference(twins, SEED, COMMANDS)

    spent_s = time.monotonic() - began
    total = twins.compared.total()
    sys.stdout.write(f"{total} commands in {spent_s:.0f} s: {dict(twins.compared)}; {dict(twins.answers)}\n")
    sys.stdout.write(f"{twins.dropped} events were deleted by retention\n")

    assert found is None, str(found)


@pytest.mark.parametrize(
    ("seed", "old", "new", "says"),
    [
        (5, "is_removed = true, entries = 0", "is_removed = true, entries = 1", "entries: rule 0"),
        (5, "WHEN status = 'pending' THEN 'cancelled'", "WHEN true THEN 'cancelled'", "status: rule"),
        (5, "unnest($2::uuid[]) u(id)", "unnest($2::uuid[]) u(id) LIMIT 1", "erasure_events"),
        (5, "AND version = $2 - 1", "AND version <= $2", "answer to"),
    ],
)
def test_a_statement_of_an_erasure_or_a_job_that_deviates_is_found(
    twins: Twins, seed: int, old: str, new: str, says: str
) -> None:
    words = twins.reword(old, new)

    found = first_difference(twins, seed, 6_000)

    assert words.put, "the statement does not say this any more: word another deviation"
    assert found is not None
    assert says in found.says


def test_a_statement_that_deviates_is_found_and_cut_down(twins: Twins) -> None:
    words = twins.reword("attempts = e.attempts + 1", "attempts = e.attempts + 2")

    found = first_difference(twins, 5, 2_000)

    assert words.put, "the statement does not say this any more: word another deviation"
    assert found is not None
    assert "attempts: rule" in found.says
    assert len(found.steps) <= 2, "a claim, and the event that it claims where the world has none"
    assert difference_of(twins, found.seed, found.steps) == found
