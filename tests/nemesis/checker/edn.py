"""Histories as Elle and Knossos read them, so that another judge can look at the same run."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tests.nemesis.checker.history import INVOKE, OK, Entry
from tests.nemesis.checker.rules import DECIDED

_TYPES = {"invoke": ":invoke", "ok": ":ok", "fail": ":fail", "unknown": ":info"}


def elle(entries: Iterable[Entry]) -> Iterator[str]:
    """List-append: a send appends its delivery to its agent; the last line reads the order of beginnings.

    A delivery that was sent more than once is left out: Elle wants each append once.
    """
    known = [entry for entry in entries if entry.f in {"send", "read-events", "read-leases"}]
    sends = {entry.op: entry.value for entry in known if entry.f == "send" and entry.kind == INVOKE}
    tries: dict[str, int] = defaultdict(int)
    for value in sends.values():
        tries[value["delivery"]] += 1
    once = {delivery for delivery, count in tries.items() if count == 1}
    events: list[dict[str, Any]] = []
    leases: list[dict[str, Any]] = []
    for entry in known:
        if entry.op in sends and sends[entry.op]["delivery"] in once:
            value = sends[entry.op]
            yield _line(entry, ":txn", f"[[:append {_text(value['agent'])} {_text(value['delivery'])}]]")
        elif entry.f == "read-events" and entry.kind == OK:
            events += entry.value["rows"]
        elif entry.f == "read-leases" and entry.kind == OK:
            leases += entry.value["rows"]
    if not known:
        return
    delivery_of = {row["event"]: row["delivery"] for row in events}
    order: dict[str, list[str]] = defaultdict(list)
    for row in sorted(leases, key=lambda row: row["token"]):
        delivery = delivery_of.get(row["event"])
        if delivery in once and delivery not in order[row["agent"]]:
            order[row["agent"]].append(delivery)
    last = known[-1]
    asked = " ".join(f"[:r {_text(agent)} nil]" for agent in order)
    told = " ".join(f"[:r {_text(agent)} {_list(of_agent)}]" for agent, of_agent in order.items())
    reader = last._replace(process=1 + max(entry.process for entry in known))
    yield _line(reader._replace(kind=INVOKE), ":txn", f"[{asked}]")
    yield _line(reader._replace(kind=OK), ":txn", f"[{told}]")


def knossos(entries: Iterable[Entry]) -> Iterator[str]:
    """A register for each gate, with the gate as its key: a decision is a compare-and-set, a look a read."""
    known = [entry for entry in entries if entry.f in {"decide", "read-gate"}]
    asked = {entry.op: entry for entry in known if _begins_at_a_gate(entry)}
    for entry in known:
        if entry.op not in asked:
            continue
        value = asked[entry.op].value
        gate = _text(value["gate"])
        if entry.f == "read-gate":
            status = entry.value.get("status")
            yield _line(entry, ":read", f"[{gate} {':' + status if status else 'nil'}]")
            continue
        wanted = value["wants"]
        kind = entry.kind
        if kind == OK and not (entry.value.get("first") and entry.value["status"] in DECIDED):
            kind = "fail"  # Somebody had decided before.
        yield _line(entry._replace(kind=kind), ":cas", f"[{gate} [:pending :{wanted}]]")


def _begins_at_a_gate(entry: Entry) -> bool:
    return entry.kind == INVOKE and entry.f in {"decide", "read-gate"}


def _line(entry: Entry, f: str, value: str) -> str:
    kind = _TYPES[entry.kind]
    return f"{{:type {kind}, :f {f}, :value {value}, :process {entry.process}, :time {entry.time_ns}}}"


def _text(value: str) -> str:
    return json.dumps(value)


def _list(values: Sequence[str]) -> str:
    return f"[{' '.join(map(_text, values))}]"
