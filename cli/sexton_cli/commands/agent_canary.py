"""``sexton agent canary``: try a version of an agent's files on a share of its events, and end that."""

from typing import Any, Final

import click

from sexton_cli.caller import Caller
from sexton_cli.client import Row
from sexton_cli.commands.agent_versions import version_number
from sexton_cli.commands.late_group import noun
from sexton_cli.commands.options import calling, sure, yes
from sexton_cli.commands.words import AGENT_WORD
from sexton_cli.lookups import agent_path
from sexton_cli.output import Column, dollars, moment

COLUMNS: Final = (
    Column("side", "SIDE"),
    Column("version", "VERSION"),
    Column("runs", "RUNS"),
    Column("failed", "FAILED"),
    Column("cost", "COST OF A RUN"),
    Column("score", "SCORE"),
)
NANOS: Final = 1_000_000_000


@noun()
def canary() -> None:
    """Try a version of an agent's files on a share of its events; promote or withdraw it."""


@canary.command()
@click.argument("name", metavar="AGENT", type=AGENT_WORD)
@click.argument("version")
@click.option("--share", required=True, type=click.IntRange(1, 99), metavar="PERCENT", help="Of its events.")
@click.option(
    "--min-runs", type=click.IntRange(1), default=10, show_default=True, help="Judge after as many."
)
@click.option("--max-failures", type=click.IntRange(0, 100), metavar="PERCENT", help="Of its runs.")
@click.option(
    "--failure-margin", type=click.IntRange(0, 100), metavar="POINTS", help="More than the active one."
)
@click.option("--max-cost", type=click.FloatRange(0), metavar="DOLLARS", help="Of a run, on average.")
@click.option("--cost-margin", type=click.IntRange(0), metavar="PERCENT", help="More than the active one.")
@click.option("--min-score", type=click.FloatRange(0, 1), metavar="SCORE", help="On average, from 0 to 1.")
@click.option(
    "--score-margin", type=click.FloatRange(0, 1), metavar="SCORE", help="Less than the active one."
)
@click.option(
    "--promote-after", type=click.IntRange(1), metavar="RUNS", help="Promote it by itself after as many."
)
@calling
def start(caller: Caller, *, name: str, version: str, share: int, **bounds: Any) -> None:
    """Give a VERSION (its number or id) a share of an agent's events; a worse one goes back by itself."""
    cost = bounds.pop("max_cost")
    promote_after = bounds.pop("promote_after")
    guard = {
        "min_runs": bounds["min_runs"],
        "max_failure_percent": bounds["max_failures"],
        "failure_margin_percent": bounds["failure_margin"],
        "max_cost_nanos": None if cost is None else round(cost * NANOS),
        "cost_margin_percent": bounds["cost_margin"],
        "min_score": bounds["min_score"],
        "score_margin": bounds["score_margin"],
    }
    with caller.client() as client:
        number = version_number(caller, client, name, version)
        body = {"agent_version": number, "share": share, "guard": guard, "promote_after": promote_after}
        _show(caller, client.post(f"{agent_path(caller, client, name)}/canary", body))


@canary.command()
@click.argument("name", metavar="AGENT", type=AGENT_WORD)
@calling
def status(caller: Caller, *, name: str) -> None:
    """Show the newest trial of an agent: how it goes or ended, and what came of both sides' runs."""
    with caller.client() as client:
        found = client.get(f"{agent_path(caller, client, name)}/canary")
    if caller.output.as_json:
        caller.output.document(found)
    elif found.get("canary") is None:
        caller.output.say(f"No version of agent {name} was ever on trial.")
    else:
        _show(caller, found["canary"])


@canary.command()
@click.argument("name", metavar="AGENT", type=AGENT_WORD)
@yes
@calling
def promote(caller: Caller, *, name: str, yes: bool) -> None:
    """Make the version that is on trial the active one, from the agent's next lease on."""
    sure(caller, f"Have agent {name} work by the version that is on trial, for all its events?", yes=yes)
    with caller.client() as client:
        _show(caller, client.post(f"{agent_path(caller, client, name)}/canary/promote", {}))


@canary.command()
@click.argument("name", metavar="AGENT", type=AGENT_WORD)
@click.option("--reason", default="", metavar="TEXT", help="Why; it is kept with the trial.")
@calling
def withdraw(caller: Caller, *, name: str, reason: str) -> None:
    """End the trial; all events of the agent go to its active version again."""
    with caller.client() as client:
        _show(caller, client.post(f"{agent_path(caller, client, name)}/canary/withdraw", {"reason": reason}))


def _show(caller: Caller, found: Row) -> None:
    if caller.output.as_json:
        caller.output.document(found)
        return
    facts = {
        "status": str(found.get("status")).replace("_", " "),
        "share": f"{found.get('share')} percent",
        "started": moment(found.get("started_at")),
        "ended": moment(found.get("ended_at")),
        "by": found.get("ended_by") or found.get("started_by"),
        "why": found.get("why"),
        "detail": found.get("detail") or None,
    }
    caller.output.facts(facts)
    caller.output.table(COLUMNS, [_side(side, found.get(side) or {}) for side in ("candidate", "stable")])


def _side(side: str, counts: Row) -> Row:
    return {
        "side": side,
        "version": counts.get("agent_version"),
        "runs": counts.get("runs"),
        "failed": counts.get("failed"),
        "cost": dollars(counts.get("mean_cost_nanos")),
        "score": counts.get("mean_score"),
    }
