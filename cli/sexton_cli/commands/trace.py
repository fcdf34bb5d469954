"""``sexton trace``: draws the trace of an event, and compares the sum of its costs with the bill."""

from collections.abc import Mapping, Sequence
from typing import Final

import click

from sexton_cli.caller import Caller
from sexton_cli.client import Row
from sexton_cli.commands.command import command
from sexton_cli.commands.options import calling
from sexton_cli.commands.words import EVENT_WORD
from sexton_cli.exits import FAILED, Fault
from sexton_cli.output import Column, dollars, moment, span
from sexton_cli.short_ids import EVENT, path_of

BAR: Final = 24
"""Columns in which the whole time is drawn."""
SHORT_MS: Final = 100
"""What took less is told in ms."""
COLUMNS: Final = (
    Column("name", "SPAN", elastic=True),
    Column("bar", "WHEN", spare=True),
    Column("took", "TOOK"),
    Column("cost", "COST"),
)


@command()
@click.argument("event", type=EVENT_WORD)
@calling
def trace(caller: Caller, *, event: str) -> None:
    """Draw what the EVENT of this id did when, and what each part cost; checks the sum.

    The exit status is 1 where the costs of an event that has ended are not what it was charged.
    """
    with caller.client() as client:
        found = client.get(f"{path_of(caller, client, EVENT, event)}/trace")
    spans, cost, charged = found["spans"], found["cost_nanos"], found["charged_nanos"]
    if caller.output.as_json:
        caller.output.document(found)
    else:
        caller.output.facts(
            {"trace": found["trace_id"], "status": found["status"], "began": moment(_first(spans))}
        )
        caller.output.table(COLUMNS, drawn(spans))
        caller.output.say("")
        caller.output.say(told(found))
    if found["cut"]:
        caller.output.note("There were more spans than are shown.")
    elif found["ended"] and cost != charged:
        raise Fault(
            f"the spans cost {cost} nanos, and the event was charged {charged}",
            f"'sexton event show {event}' shows what each of its leases was charged.",
            status=FAILED,
        )


def told(found: Row) -> str:
    """The sum, beside the bill.

    >>> told({"cost_nanos": 4_500, "charged_nanos": 4_500, "ended": True})
    'All spans together cost $0.0000045 (4500 nanos), which is what the event was charged.'
    >>> told({"cost_nanos": 0, "charged_nanos": 7, "ended": False})
    'So far the spans cost $0.00 (0 nanos) and the event was charged $0.000000007 (7 nanos): it goes on.'
    """
    cost, charged = found["cost_nanos"], found["charged_nanos"]
    spans, bill = f"{dollars(cost)} ({cost} nanos)", f"{dollars(charged)} ({charged} nanos)"
    if cost == charged and found["ended"]:
        return f"All spans together cost {spans}, which is what the event was charged."
    if found["ended"]:
        return f"All spans together cost {spans}; the event was charged {bill}."
    return f"So far the spans cost {spans} and the event was charged {bill}: it goes on."


def drawn(spans: Sequence[Row]) -> list[Row]:
    """A row for each span, below the one that it belongs to.

    >>> at = {"fault": None, "attributes": {}, "events": []}
    >>> event = {"span_id": "a", "parent_id": None, "name": "event", "began_at": 0, "ended_at": 1200}
    >>> tool = {"span_id": "b", "parent_id": "a", "name": "wait", "began_at": 600, "ended_at": 1200}
    >>> for row in drawn([{**event, "cost_nanos": 5, **at}, {**tool, "cost_nanos": 0, **at}]):
    ...     print([row["name"], row["bar"], row["took"], row["cost"]])
    ['event', '████████████████████████', '1.2 s', '$0.000000005']
    ['└─ wait', '            ████████████', '0.6 s', '']
    """
    if not spans:
        return []
    since, until = _first(spans), max(one["ended_at"] for one in spans)
    heads = _heads(spans)
    return [
        {
            "name": f"{heads[one['span_id']]}{_name(one)}",
            "bar": _bar(one["began_at"] - since, one["ended_at"] - since, until - since),
            "took": _took(one["ended_at"] - one["began_at"]),
            "cost": dollars(one["cost_nanos"]) if one["cost_nanos"] else "",
        }
        for one in spans
    ]


def _first(spans: Sequence[Row]) -> int:
    return min((int(one["began_at"]) for one in spans), default=0)


def _took(ms: int) -> str:
    return f"{ms} ms" if ms < SHORT_MS else span(ms) or ""


def _bar(began: int, ended: int, whole: int) -> str:
    """Where in the whole a span lies: at least one column, however short it was.

    >>> _bar(0, 0, 0) == "█", _bar(10, 10, 10) == " " * (BAR - 1) + "█"
    (True, True)
    """
    first = min(began * BAR // max(1, whole), BAR - 1)
    last = max(first + 1, -(-ended * BAR // max(1, whole)))
    return " " * first + "█" * (last - first)


def _name(one: Row) -> str:
    """What a span is, with what a reader would ask next.

    >>> lease = {"name": "lease", "attributes": {"sexton.lease.attempt": 2}, "fault": "runner_lost"}
    >>> _name({**lease, "events": [{"name": "renewed"}, {"name": "renewed"}, {"name": "reclaimed"}]})
    'lease 2, 2 renewals (runner_lost)'
    """
    told: Mapping[str, object] = one["attributes"]
    words = one["name"]
    if (attempt := told.get("sexton.lease.attempt")) is not None:
        words += f" {attempt}"
    renewals = sum(event["name"] == "renewed" for event in one["events"])
    if renewals:
        words += f", {renewals} renewal{'s' if renewals > 1 else ''}"
    if (status := told.get("sexton.gate.status")) is not None:
        words += f", {status}"
    return f"{words} ({one['fault']})" if one["fault"] else words


def _heads(spans: Sequence[Row]) -> dict[str, str]:
    """What stands before each name: the lines of a tree."""
    known = {one["span_id"] for one in spans}
    last = {one["parent_id"]: one["span_id"] for one in spans}
    heads: dict[str, str] = {}
    above: dict[str, str] = {}
    for one in spans:
        name, parent = one["span_id"], one["parent_id"]
        if parent not in known:
            heads[name] = above[name] = ""
            continue
        ends = last[parent] == name
        heads[name] = above[parent] + ("└─ " if ends else "├─ ")
        above[name] = above[parent] + ("   " if ends else "│  ")
    return heads
