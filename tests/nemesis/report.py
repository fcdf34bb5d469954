"""What a run came to: counts, gaps, faults and the checker's verdict."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import mean
from typing import Any

from tests.nemesis.life import Size, Told


def figures(size: Size, told: Told, verdict: Mapping[str, int]) -> dict[str, Any]:
    """Everything, as JSON keeps it. ``verdict``: violations of each rule."""
    tally = told.tally
    assert tally is not None
    return {
        "seed": size.seed,
        "run_s": size.run_s,
        "spent_s": round(told.spent_s, 1),
        "accepted": tally.events,
        "renewals": tally.renewals,
        "command_runs": told.command_runs,
        "operations": {f: dict(ends) for f, ends in sorted(tally.ends.items())},
        "not_answered_with_yes": dict(tally.refusals.most_common()),
        "longest_gap_s": {f: round(gap, 1) for f, gap in sorted(tally.gaps_s.items())},
        "faults": dict(sorted(told.faults.items())),
        "left_out": told.lacks,
        "renewals_refused": dict(tally.refused_renewals),
        "load": {
            "least": min(told.loads, default=0),
            "mean": mean(told.loads or [0]),
            "most": max(told.loads, default=0),
        },
        "not_ended": told.unended,
        "violations": dict(verdict),
    }


def text(about: Mapping[str, Any]) -> str:
    """The same for people.

    >>> about = {"seed": 1, "run_s": 60.0, "accepted": 10, "renewals": 20, "faults": {"kill-node": 2}}
    >>> about |= {"command_runs": 3, "load": {"mean": 3.5, "most": 7.0}}
    >>> about |= {"left_out": {"fill-disk": "no root"}, "longest_gap_s": {"send": 1.5}, "not_ended": 0}
    >>> print(text(about | {"violations": {"gate_once": 0}, "not_answered_with_yes": {"503 ": 4}}))
    seed 1, 60 s of faults
    10 accepted events, 20 renewals, 3 runs of real runners, 0 events not ended
    faults: kill-node 2
    load of the machine: 3.5 on average, 7.0 at most
    left out: fill-disk (no root)
    longest time without a yes: send 1.5 s
    other answers: 4 x 503
    violations: 0
    """
    faults = ", ".join(f"{kind} {count}" for kind, count in about["faults"].items())
    left_out = ", ".join(f"{kind} ({why})" for kind, why in about["left_out"].items())
    gaps = ", ".join(f"{f} {gap} s" for f, gap in about["longest_gap_s"].items())
    others = ", ".join(f"{count} x {what.strip()}" for what, count in about["not_answered_with_yes"].items())
    broken = {rule: count for rule, count in about["violations"].items() if count}
    counted = f"{about['accepted']} accepted events, {about['renewals']} renewals"
    lines = [
        f"seed {about['seed']}, {about['run_s']:.0f} s of faults",
        f"{counted}, {about['command_runs']} runs of real runners, {about['not_ended']} events not ended",
        f"faults: {faults}",
        f"load of the machine: {about['load']['mean']} on average, {about['load']['most']} at most",
        *([f"left out: {left_out}"] if left_out else []),
        f"longest time without a yes: {gaps}",
        *([f"other answers: {others}"] if others else []),
        f"violations: {sum(broken.values())}",
        *(f"  {rule}: {count}" for rule, count in broken.items()),
    ]
    return "\n".join(lines)
