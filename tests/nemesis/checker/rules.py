"""What must hold of a history: one function a rule, which gives a sentence for each violation."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, pairwise
from typing import Final

from tests.nemesis.checker.history import Done, Entry, NotAHistory
from tests.nemesis.checker.seen import Row, Seen

ENDED: Final = frozenset({"processed", "agent_error", "cancelled", "dead_lettered"})
DECIDED: Final = frozenset({"approved", "denied", "timed_out", "auto_killed"})


def each_accepted_once(seen: Seen) -> Iterator[str]:
    """Each acknowledged delivery is one event, of the agent that it was sent to, and no delivery is two."""
    kept = Counter(row["event"] for row in seen.rows("events"))
    owner = {row["event"]: (row["tenant"], row["agent"]) for row in seen.rows("events")}
    by_delivery = Counter(row["delivery"] for row in seen.rows("events") if row["delivery"])
    told: dict[str, str] = {}
    for one in seen.done("send"):
        delivery, event = one.value["delivery"], one.value["event"]
        if told.setdefault(delivery, event) != event:
            yield f"delivery {delivery} was told to be {told[delivery]} and {event}"
        if kept[event] != 1:
            yield f"event {event} was acknowledged and is there {kept[event]} times"
        if by_delivery[delivery] == 0:
            yield f"delivery {delivery} was acknowledged and is in no event"
        sent_to = (one.value["tenant"], one.value["agent"])
        if owner.get(event, sent_to) != sent_to:
            yield f"event {event} was sent to {' '.join(sent_to)}, and belongs to {' '.join(owner[event])}"
    for delivery, count in by_delivery.items():
        if count > 1:
            yield f"delivery {delivery} is {count} events"


def each_ended(seen: Seen) -> Iterator[str]:
    """Whatever is kept has come to its end once faults have healed."""
    for row in seen.rows("events"):
        if row["status"] not in ENDED:
            yield f"event {row['event']} is {row['status']}"


def no_end_is_forgotten(seen: Seen) -> Iterator[str]:
    """What a runner was told to be reported is so, by the lease that reported it."""
    events = {row["event"]: row for row in seen.rows("events")}
    leases = {(row["agent"], row["token"]): row for row in seen.rows("leases")}
    for one in seen.done("report"):
        event = events.get(one.value["event"])
        lease = leases.get((one.value["agent"], one.value["token"]))
        if event is None or event["status"] != one.value["status"]:
            is_now = "not there" if event is None else event["status"]
            yield f"event {one.value['event']} was told to be {one.value['status']}, and is {is_now}"
        if lease is None or lease["status"] != "reported":
            yield f"agent {one.value['agent']}: token {one.value['token']} reported, and its lease says not"
    ends = Counter(row["event"] for row in seen.rows("leases") if row["status"] == "reported")
    for event_id, count in ends.items():
        if count > 1:
            yield f"event {event_id} was reported by {count} leases"


def order_of_agent(seen: Seen) -> Iterator[str]:
    """What was acknowledged before another was sent begins before it."""
    first: dict[str, int] = {}
    for row in seen.rows("leases"):
        first[row["event"]] = min(row["token"], first.get(row["event"], row["token"]))
    by_agent: dict[str, dict[str, tuple[int, int]]] = defaultdict(dict)
    for one in seen.done("send"):
        began = seen.first_tried[one.value["delivery"]]
        by_agent[one.value["agent"]].setdefault(one.value["event"], (began, one.ended_ns))
    for agent, spans in by_agent.items():
        latest: tuple[int, str] | None = None
        by_end = sorted((ended, event) for event, (_, ended) in spans.items() if event in first)
        at = 0
        for began, event in sorted((began, event) for event, (began, _) in spans.items() if event in first):
            while at < len(by_end) and by_end[at][0] < began:
                candidate = (first[by_end[at][1]], by_end[at][1])
                latest = candidate if latest is None else max(latest, candidate)
                at += 1
            if latest is not None and latest[0] > first[event]:
                yield f"agent {agent}: {latest[1]} was acknowledged before {event} was sent, and began later"


def one_live_lease(seen: Seen) -> Iterator[str]:
    """By the database's clock no lease of an agent begins before the one before has ended."""
    for agent, rows in _by_agent(seen).items():
        for before, after in pairwise(sorted(rows, key=lambda row: row["token"])):
            if before["ended"] is None or before["ended"] > after["granted"]:
                yield f"agent {agent}: token {after['token']} was granted while {before['token']} was live"


def fencing_grows(seen: Seen) -> Iterator[str]:
    """Tokens of an agent are never granted twice, and grow, as rows and as clients saw it."""
    for agent, rows in _by_agent(seen).items():
        for before, after in pairwise(sorted(rows, key=lambda row: (row["granted"], row["token"]))):
            if after["token"] <= before["token"]:
                yield f"agent {agent}: token {after['token']} was granted after {before['token']}"
    for agent, grants in _grants(seen).items():
        lease_of: dict[int, str] = {}
        latest = 0
        by_end = sorted(grants, key=lambda one: one.ended_ns)
        at = 0
        for one in sorted(grants, key=lambda one: one.began_ns):
            token, lease = one.value["token"], one.value["lease"]
            if lease_of.setdefault(token, lease) != lease:
                yield f"agent {agent}: two leases have token {token}"
            while by_end[at].ended_ns < one.began_ns:
                latest = max(latest, by_end[at].value["token"])
                at += 1
            if token < latest:
                yield f"agent {agent}: token {token} was granted after {latest} was seen"


def no_old_token_writes(seen: Seen) -> Iterator[str]:
    """Once a newer token was seen, nothing is kept that comes with an older one."""
    granted: dict[str, tuple[list[int], list[int]]] = {}
    for agent, of_agent in _grants(seen).items():
        by_end = sorted((one.ended_ns, one.value["token"]) for one in of_agent)
        newest = accumulate((token for _, token in by_end), max)
        granted[agent] = ([ended for ended, _ in by_end], list(newest))
    for one in (*_renewals(seen), *seen.done("report"), *seen.done("open-gate")):
        # A report that comes again is told what became of the first.
        if one.value.get("duplicate"):
            continue
        agent, token = one.value["agent"], one.value["token"]
        ends, newest_then = granted.get(agent, ([], []))
        before = bisect_left(ends, one.began_ns)
        if before and newest_then[before - 1] > token:
            newer = newest_then[before - 1]
            yield f"agent {agent}: {one.f} with token {token} was kept after {newer} was granted"


def every_cent_once(seen: Seen) -> Iterator[str]:
    """What is gone from a tenant's balance is what was metered, and what events and renewals were told."""
    metered = seen.metered
    for event, attempt, number in metered.twice:
        yield f"slice {number} of attempt {attempt} at {event} was metered twice"
    gone = {row["tenant"]: row["given"] - row["balance"] for row in seen.rows("money")}
    for tenant in gone.keys() | metered.of_tenant.keys():
        told, is_gone = metered.of_tenant[tenant], gone.get(tenant, 0)
        if told != is_gone:
            yield f"tenant {tenant}: {told} was metered, and {is_gone} is gone"
    for row in seen.rows("events"):
        if row["charged"] != metered.of_event[row["event"]]:
            said = metered.of_event[row["event"]]
            yield f"event {row['event']} says {row['charged']}, its slices say {said}"
    for one in _renewals(seen):
        event, attempt, number = one.value["event"], one.value["attempt"], one.value["slice"]
        charged = metered.slices.get((event, attempt), {}).get(number)
        if charged is None:
            yield f"slice {number} of attempt {attempt} at {event} was acknowledged, and is not metered"
        elif charged != one.value["charged"]:
            told = one.value["charged"]
            yield f"slice {number} of attempt {attempt} at {event} was told as {told}, and cost {charged}"


def gate_once(seen: Seen) -> Iterator[str]:
    """An action has one gate, and its first decision is the only one."""
    rows = {row["gate"]: row for row in seen.rows("gates")}
    actions = Counter((row["event"], row["action"]) for row in rows.values())
    for (event, action), count in actions.items():
        if count > 1:
            yield f"action {action} of {event} has {count} gates"
    asked: dict[tuple[str, str], str] = {}
    for one in seen.done("open-gate"):
        key = (one.value["event"], one.value["action"])
        if asked.setdefault(key, one.value["gate"]) != one.value["gate"]:
            yield f"action {key[1]} of {key[0]} was told two gates"
        if one.value["gate"] not in rows:
            yield f"gate {one.value['gate']} was acknowledged, and is not there"
    for gate, row in rows.items():
        if row["status"] not in DECIDED:
            yield f"gate {gate} is {row['status']}"
    for one in (*seen.done("decide"), *seen.done("read-gate")):
        row = rows.get(one.value["gate"], {})
        if one.value["status"] in DECIDED and row.get("status") != one.value["status"]:
            yield f"gate {one.value['gate']} was told {one.value['status']}, and is {row.get('status')}"


def streams_are_whole(seen: Seen) -> Iterator[str]:
    """Who follows an agent sees each frame once, goes on where they were, and is told ends that are true."""
    status_of = {row["event"]: row["status"] for row in seen.rows("events")}
    for one in seen.done("follow"):
        agent, after, ranges = one.value["agent"], one.value["after"], one.value["ranges"]
        if one.value["resync"]:
            yield f"agent {agent}: who had seen {after} was told to begin again"
        if len(ranges) > 1:
            yield f"agent {agent}: one stream had the frames {ranges}"
        if ranges and after is not None and ranges[0][0] != after + 1:
            yield f"agent {agent}: after {after} came {ranges[0][0]}"
        for event, status in one.value["ends"].items():
            if status_of.get(event) != status:
                yield f"event {event} was shown to be {status}, and is {status_of.get(event)}"


RULES: Final[tuple[Callable[[Seen], Iterator[str]], ...]] = (
    each_accepted_once,
    each_ended,
    no_end_is_forgotten,
    order_of_agent,
    one_live_lease,
    fencing_grows,
    no_old_token_writes,
    every_cent_once,
    gate_once,
    streams_are_whole,
)


def check(entries: Iterable[Entry]) -> dict[str, list[str]]:
    """Of each rule that is broken, what broke it. Raises NotAHistory."""
    seen = Seen(entries)
    found = {rule.__name__: list(rule(seen)) for rule in RULES}
    return {name: sentences for name, sentences in found.items() if sentences}


def _by_agent(seen: Seen) -> dict[str, list[Row]]:
    rows: dict[str, list[Row]] = defaultdict(list)
    for row in seen.rows("leases"):
        rows[row["agent"]].append(row)
    return rows


def _renewals(seen: Seen) -> Iterator[Done]:
    """Each that was acknowledged: its batch names the lease alone, and the rest is in its grant."""
    leases = {lease["lease"]: lease for one in seen.done("grant") for lease in one.value["leases"]}
    for one in seen.done("renew-batch"):
        for lease, (number, charged) in one.value["slices"].items():
            if lease not in leases:
                raise NotAHistory(f"lease {lease} was renewed, and nobody was granted it")
            renewed = leases[lease] | {"slice": number, "charged": charged}
            yield Done("renew", one.began_ns, one.ended_ns, renewed)


def _grants(seen: Seen) -> dict[str, list[Done]]:
    grants: dict[str, list[Done]] = defaultdict(list)
    for one in seen.done("grant"):
        for lease in one.value["leases"]:
            grants[lease["agent"]].append(one._replace(value=lease))
    return grants
