"""Tells how a promise was broken: who sent what to whom, when, and what was known."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final
from uuid import UUID

from sexton_storage.memory.tables import Tables
from tests.simulation.shrink import Failure
from tests.simulation.world.deviations import WINDOW_S, Deviation
from tests.simulation.world.tale import Told

LINES_MAX: Final = 60
STARTED_LAST: Final = "fate/1"
"""The program that is started when all others have been."""
_TWICE: Final = re.compile(r"\b(event|lease|gate|runner) \1-")
"""As in "lease lease-3"."""
_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def story_of(failure: Failure, deviations: Iterable[Deviation]) -> list[str]:
    """The deviations, what happened to those whom the judge names, and what it saw in the end."""
    heard = failure.heard
    if heard.tale is None or heard.record is None:
        return [failure.said]
    tables = heard.record.tables
    names = dict(_names(tables))
    about = _about(tables, failure.said)
    lines = heard.tale.lines
    kept = [line for line in lines if _concerns(line, about)]
    last_start = max((line.at_s for line in lines if line.who == STARTED_LAST), default=0.0)
    # That all programs are started once is no news.
    kept = [line for line in kept if not line.is_of_world or line.at_s > last_start]
    left_out = max(0, len(kept) - LINES_MAX)
    shown = [*_deviations(deviations, lines)]
    shown.append("")
    if left_out:
        shown.append(f"({left_out} earlier lines about the same are left out)")
    shown += [_named(str(line), names) for line in kept[left_out:]]
    shown.append(_named(f"{heard.ended_s:9.3f} s  judge      {failure.said}", names))
    return shown


def _deviations(deviations: Iterable[Deviation], lines: Iterable[Told]) -> Iterator[str]:
    faults = {line.what.split()[0]: line for line in lines if line.who == "fault"}
    for kind, number in deviations:
        if kind == "fault":
            line = faults.get(str(number))
            what = "it comes to nothing" if line is None else f"{line.what.split()[1]} at {line.at_s:.3f} s"
            yield f"deviation: fault {number}: {what}"
        else:
            what = "tasks run in another order" if kind == "order" else "delays are not the mean ones"
            yield f"deviation: from {number * WINDOW_S:.0f} s to {(number + 1) * WINDOW_S:.0f} s {what}"


def _concerns(line: Told, about: set[str]) -> bool:
    return line.is_of_world or bool(about.intersection(_ID.findall(line.what)))


def _about(tables: Tables, said: str) -> set[str]:
    """Ids that the judge names, and those of their leases, gates and events; an agent's latest event."""
    named = {UUID(one) for one in _ID.findall(said)}
    events = {one for one in named if one in tables.events}
    events |= {lease.event_id for lease in tables.leases.values() if lease.id in named}
    events |= {gate.event_id for gate in tables.gates.values() if gate.id in named}
    for agent in named & tables.zombies.keys():
        leased = [lease for lease in tables.leases.values() if lease.zombie_id == agent]
        leased.sort(key=lambda lease: lease.granted_at)
        events |= {lease.event_id for lease in leased[-2:]}
    found = {*named, *events} - tables.zombies.keys()
    found |= {lease.id for lease in tables.leases.values() if lease.event_id in events}
    found |= {gate.id for gate in tables.gates.values() if gate.event_id in events}
    return {str(one) for one in found}


def _names(tables: Tables) -> Iterator[tuple[str, str]]:
    for agent in tables.zombies.values():
        yield str(agent.id), agent.name
    for runner in tables.runners.values():
        yield str(runner.id), runner.host_id
    for number, event in enumerate(tables.events.values(), 1):
        yield str(event.id), f"event-{number}"
    for number, lease in enumerate(tables.leases.values(), 1):
        yield str(lease.id), f"lease-{number}"
    for number, gate in enumerate(tables.gates.values(), 1):
        yield str(gate.id), f"gate-{number}"
    for workspace in tables.workspaces.values():
        yield str(workspace.id), workspace.name


def _named(text: str, names: dict[str, str]) -> str:
    shown = _ID.sub(lambda found: names.get(found.group(), found.group()[-6:]), text)
    return _TWICE.sub(r"\1-", shown)
