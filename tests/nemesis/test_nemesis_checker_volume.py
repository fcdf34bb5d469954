"""A history as long as the longest run's is judged, and one thing that is wrong in it is found."""

from collections.abc import Callable, Iterator
from typing import Any

from tests.nemesis.checker.history import INVOKE, OK, Entry
from tests.nemesis.checker.rules import check
from tests.thorough import amount

EVENTS = amount(300, 100_000, variable="NEMESIS_EVENTS")
RENEWALS = 10
"""Of each event."""
AGENTS = 50
TENANTS = 4
PAGE = 100
Row = dict[str, Any]
Spoil = Callable[[str, Row], Row | None]


def history(spoil: Spoil = lambda _, row: row) -> Iterator[Entry]:
    """Events of many agents, one after the other; ``spoil`` changes a row of the last reads, or drops it."""
    ops = 0

    def act(f: str, asked: Row, told: Row) -> Iterator[Entry]:
        nonlocal ops
        ops += 1
        yield Entry(ops, 0, INVOKE, f, 2 * ops, asked)
        yield Entry(ops, 0, OK, f, 2 * ops + 1, told)

    for number in range(EVENTS):
        lease = lease_of(number)
        agent, event = lease["agent"], lease["event"]
        yield from act(
            "send", {"tenant": tenant_of(agent), "agent": agent, "delivery": event}, {"event": event}
        )
        yield from act("grant", {}, {"leases": [lease]})
        for renewal in range(RENEWALS):
            slices = {lease["lease"]: [renewal + 1, 5]}
            yield from act("renew-batch", {"asked": 1}, {"slices": slices, "refused": {}})
        yield from act("report", lease, {"status": "processed", "duplicate": False})
    for name, rows in rows_of().items():
        page: list[Row] = []
        for row in rows:
            kept = spoil(name, row)
            page += [kept] if kept else []
            if len(page) == PAGE:
                yield from act(f"read-{name}", {}, {"rows": page})
                page = []
        yield from act(f"read-{name}", {}, {"rows": page})


def lease_of(number: int) -> Row:
    agent, token = f"agent-{number % AGENTS:036}", number // AGENTS + 1
    return {
        "agent": agent,
        "token": token,
        "lease": f"lease-{number:036}",
        "event": f"event-{number:036}",
        "attempt": 1,
    }


def tenant_of(agent: str) -> str:
    return f"tenant-{int(agent.rpartition('-')[2]) % TENANTS}"


def rows_of() -> dict[str, Iterator[Row]]:
    leases = [lease_of(number) for number in range(EVENTS)]
    spent = dict.fromkeys((f"tenant-{number}" for number in range(TENANTS)), 0)
    for lease in leases:
        spent[tenant_of(lease["agent"])] += 5 * RENEWALS
    return {
        "events": (
            {"event": one["event"], "delivery": one["event"], "agent": one["agent"]}
            | {"tenant": tenant_of(one["agent"]), "status": "processed", "charged": 5 * RENEWALS}
            for one in leases
        ),
        "leases": (
            one | {"status": "reported", "granted": one["token"] * 10, "ended": one["token"] * 10 + 9}
            for one in leases
        ),
        "gates": iter(()),
        "metering": (
            {"event": one["event"], "attempt": 1, "slice": number + 1, "charged": 5}
            | {"tenant": tenant_of(one["agent"])}
            for one in leases
            for number in range(RENEWALS)
        ),
        "money": ({"tenant": one, "given": 10**9, "balance": 10**9 - gone} for one, gone in spent.items()),
    }


def test_a_long_history_without_fault_passes() -> None:
    assert check(history()) == {}


def test_one_slice_that_is_missing_among_all_is_found() -> None:
    lost = lease_of(EVENTS // 2)["event"]

    def lose(name: str, row: Row) -> Row | None:
        is_it = name == "metering" and (row["event"], row["slice"]) == (lost, RENEWALS)
        return None if is_it else row

    found = check(history(lose))

    assert found.keys() == {"every_cent_once"}
    assert (
        f"slice {RENEWALS} of attempt 1 at {lost} was acknowledged, and is not metered"
        in (found["every_cent_once"])
    )


def test_one_lease_among_all_that_begins_before_the_last_has_ended_is_found() -> None:
    late = lease_of(EVENTS // 2)

    def prolong(name: str, row: Row) -> Row:
        is_it = name == "leases" and row["lease"] == late["lease"]
        return row | {"ended": row["ended"] + 2} if is_it else row

    found = check(history(prolong))

    assert found == {
        "one_live_lease": [
            f"agent {late['agent']}: token {late['token'] + 1} was granted while {late['token']} was live"
        ]
    }
