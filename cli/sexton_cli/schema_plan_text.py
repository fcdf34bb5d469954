"""Says what ``sexton migrate`` would do, for a person and for a script."""

from collections.abc import Iterator
from typing import Any

from sexton_storage.schema_plan import PlannedLock, PlannedStep, SchemaPlan

LOCKS_OUT = {
    "ACCESS SHARE": "locks nobody out",
    "ROW SHARE": "locks nobody out",
    "ROW EXCLUSIVE": "locks nobody out",
    "SHARE UPDATE EXCLUSIVE": "locks nobody out",
    "SHARE": "keeps others from writing",
    "SHARE ROW EXCLUSIVE": "keeps others from writing",
    "EXCLUSIVE": "keeps others from writing",
    "ACCESS EXCLUSIVE": "keeps others from reading and writing",
}
"""What each mode means to servers that go on: they read and write rows, and change no table."""


def document_of(plan: SchemaPlan) -> dict[str, Any]:
    return {
        "at": plan.at,
        "serves_from": plan.serves_from,
        "steps": [
            {
                "name": step.name,
                "in_transaction": step.in_transaction,
                "serves_from": step.serves_from,
                "measured": step.measured,
                "creates": list(step.creates),
                "locks": [
                    {
                        "table": lock.table,
                        "mode": lock.mode,
                        "goes_through": lock.goes_through,
                        "rows": lock.rows if lock.rows >= 0 else None,
                    }
                    for lock in step.locks
                ],
            }
            for step in plan.steps
        ],
    }


def lines_of(plan: SchemaPlan) -> Iterator[str]:
    """Steps with their locks; a line at the end on which releases work with the database afterwards."""
    if not plan.steps:
        yield "Nothing is to be done."
    for step in plan.steps:
        yield step.name + ("" if step.in_transaction else "  (outside a transaction)")
        yield from (f"    {line}" for line in _inside(step))
    if plan.serves_from is not None:
        after = " afterwards" if plan.steps else ""
        yield f"Releases that know step {plan.serves_from:04} work with this database{after}."


def _inside(step: PlannedStep) -> Iterator[str]:
    if not step.measured:
        yield "what it locks is not known"
    if step.creates:
        yield f"new: {', '.join(step.creates)}"
    for lock in step.locks:
        yield f"{lock.table}: {lock.mode}, {LOCKS_OUT[lock.mode]}, {_how_long(lock)}"


def _how_long(lock: PlannedLock) -> str:
    if not lock.goes_through:
        return "for a moment"
    if lock.rows < 0:
        return "for as long as it has rows"
    return f"while it goes through about {lock.rows:,} rows"
