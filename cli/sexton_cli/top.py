"""What ``sexton top`` looks at, and how it is laid out on a screen."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from sexton_cli.client import Client, Row, field, rows
from sexton_cli.exits import printable
from sexton_cli.output import cell, counted, moment, span
from sexton_cli.tree_nodes import walk

RUNNERS: Final = 100
"""Shown at most; the fleet's list has the rest."""
LEASES: Final = 200
TERM_MS: Final = 30_000
THIN_MS: Final = 5_000
"""A lease with less left is shown as a warning."""
BAR: Final = 10
OVERHEAD: Final = 11
"""Lines that are no rows: titles, rules, the summary."""
LEAST_ROWS: Final = 3
LIVENESS: Final = {"busy": "green", "online": "green", "offline": "red", "registered": "yellow"}
LEASE: Final = {"lease_id": str, "zombie_id": str, "runner_id": str, "slack_ms": int, "granted_at": int}
CRASH: Final = {"kind": str, "key": str, "error": str, "age_s": float}
CRASHES: Final = 3
"""Shown at most; the tree's page has the rest."""
RUNNER: Final = {"id": str, "host_id": str, "liveness": str, "admin_state": str}


class Look(NamedTuple):
    """All of it at one moment, as the server told it."""

    queue: Row
    leases: Sequence[Row]
    now: int
    runners: Sequence[Row]
    runners_total: int
    tree: Row
    crashes: Sequence[Row] = ()
    """The latest crashes of actors, newest first."""
    handled: Mapping[str, int] = {}
    """Messages that each kind of actor has handled."""

    def document(self) -> dict[str, Any]:
        return {
            "at": self.now,
            "queue": self.queue,
            "leases": self.leases,
            "runners": self.runners,
            "runners_total": self.runners_total,
            "supervisor": self.tree,
            "crashes": self.crashes,
            "handled": self.handled,
        }


def look(client: Client) -> Look:
    """Ask for all of it. Raises Fault."""
    queue = client.get("/v1/fleet/queue")
    field(queue, "depth", int)
    leases = client.get(f"/v1/fleet/leases?limit={LEASES}")
    runners = client.get(f"/v1/fleet/runners?page_size={RUNNERS}")
    told = client.get("/v1/fleet/tree")
    kinds = rows({"items": told.get("kinds")}, {"kind": str, "messages": list})
    return Look(
        queue=queue,
        leases=rows(leases, LEASE),
        now=field(leases, "now", int),
        runners=rows(runners, RUNNER),
        runners_total=field(runners, "total", int),
        tree=field(told, "tree", dict),
        crashes=rows({"items": told.get("crashes")}, CRASH),
        handled={kind["kind"]: sum(one.get("count") or 0 for one in kind["messages"]) for kind in kinds},
    )


def screen(seen: Look, base_url: str, *, height: int | None = None, trouble: str = "") -> RenderableType:
    """Everything, one below the other; with a ``height`` each part gets its share of the lines."""
    above = OVERHEAD + (min(CRASHES, len(seen.crashes)) + 2 if seen.crashes else 0)
    share = None if height is None else max((height - above) // 4, LEAST_ROWS)
    parts: list[RenderableType] = [_summary(seen, base_url)]
    if trouble:
        parts.append(Text(printable(trouble), style="bold red"))
    parts += [
        _heading("queue" if seen.queue.get("by_tags") else "queue, empty"),
        _queue(seen, share),
        _heading(f"leases, {len(seen.leases)}, the least time left first" if seen.leases else "leases, none"),
        _leases(seen, share),
        _heading(f"runners, {seen.runners_total}"),
        _runners(seen, share),
        _heading("supervision"),
        _tree(seen, share),
    ]
    if seen.crashes:
        parts[-2:-2] = [_heading("crashed: 'sexton actor show' has the whole of it"), _crashes(seen)]
    return Group(*parts)


def _heading(title: str) -> Text:
    # No rule across: a pipe has no width, and would be given a thousand columns of it.
    return Text(title, style="bold")


def _summary(seen: Look, base_url: str) -> Text:
    queue = seen.queue
    oldest = span(queue.get("oldest_age_ms"))
    waiting = counted(queue["depth"], "event waits", "events wait") if queue["depth"] else "no event waits"
    told = (
        f"{base_url}  {moment(seen.now)}  "
        f"{waiting}{f', the oldest for {oldest}' if oldest else ''}  "
        f"{counted(queue.get('leases_active'), 'lease', 'leases')}  "
        f"{counted(queue.get('waiting_offers'), 'request for work', 'requests for work')}"
    )
    summary = Text(printable(told), style="bold")
    blocked, exhausted = queue.get("events_blocked") or 0, queue.get("tenants_exhausted") or 0
    if blocked or exhausted:
        said = counted(blocked, "event waits for credit", "events wait for credit")
        said += f", {counted(exhausted, 'tenant has none', 'tenants have none')}"
        said += ": see 'sexton billing credit --help'"
        summary.append(f"\n{printable(said)}", style="bold red")
    return summary


def _queue(seen: Look, share: int | None) -> Table:
    table = _table("LABELS", "AGENTS", "NOTE")
    nobody = {tuple(row.get("required_tags") or ()) for row in seen.queue.get("unsatisfiable") or ()}
    by_tags: Sequence[Row] = seen.queue.get("by_tags") or ()
    for row in _cut(sorted(by_tags, key=lambda row: -_number(row.get("agents"))), share):
        tags = tuple(row.get("required_tags") or ())
        note = Text("no runner has these labels", style="red") if tags in nobody else Text("")
        table.add_row(_text(", ".join(tags) or "none needed"), _text(row.get("agents")), note)
    return table


def _leases(seen: Look, share: int | None) -> Table:
    table = _table("LEASE", "AGENT", "RUNNER", "TRY", "HELD", "LEFT", "")
    hosts = {row["id"]: row["host_id"] for row in seen.runners}
    for row in _cut(seen.leases, share):
        slack = row["slack_ms"]
        style = "red" if slack < THIN_MS else "green"
        left = Text("cancelling", style="yellow") if row.get("cancelling") else Text(bar(slack), style=style)
        table.add_row(
            _text(row["lease_id"]),
            _text(row.get("zombie_name") or row["zombie_id"]),  # An older server tells only the id.
            _text(hosts.get(row["runner_id"], row["runner_id"])),
            _text(row.get("attempt")),
            _text(span(seen.now - row["granted_at"])),
            Text(f"{slack / 1000:5.1f} s", style=style),
            left,
        )
    return table


def _runners(seen: Look, share: int | None) -> Table:
    table = _table("RUNNER", "HOST", "LIVENESS", "STANDING", "SLOTS", "LABELS", "LAST SEEN")
    for row in _cut(seen.runners, share):
        table.add_row(
            _text(row["id"]),
            _text(row["host_id"]),
            Text(printable(row["liveness"]), style=LIVENESS.get(row["liveness"], "")),
            _text(row["admin_state"]),
            _text(f"{row.get('active_leases')}/{row.get('slots')}"),
            _text(", ".join(row.get("labels") or ()) or "-"),
            _text(moment(row.get("last_seen_at"))),
        )
    return table


def _tree(seen: Look, share: int | None) -> Table:
    table = _table("NODE", "STATE", "ALIVE", "RESTARTS", "MAIL", "OLDEST", "HANDLED")
    for depth, node in _cut(list(walk(seen.tree)), None if share is None else 2 * share):
        restarts = _number(node.get("restarts"))
        table.add_row(
            _text("  " * depth + str(node.get("name"))),
            _text(node.get("state")),
            _text(node.get("live")),
            Text(str(restarts), style="red" if restarts else ""),
            _text(node.get("mailbox_depth")),
            _text(f"{_number(node.get('mailbox_age_s')):.1f} s"),
            _text(seen.handled.get(str(node.get("name")), "")),
        )
    return table


def _crashes(seen: Look) -> Table:
    table = _table("ACTOR", "AGO", "ON", "WITH")
    for row in seen.crashes[:CRASHES]:
        table.add_row(
            Text(printable(f"{row['kind']}/{row['key']}"), style="red"),
            _text(f"{row['age_s']:.0f} s"),
            _text(row.get("message")),
            _text(row["error"]),
        )
    return table


def bar(slack_ms: int) -> str:
    """How much of a term is left.

    >>> bar(30_000), bar(15_000), bar(-5)
    ('##########', '#####.....', '..........')
    """
    filled = max(0, min(BAR, round(BAR * slack_ms / TERM_MS)))
    return "#" * filled + "." * (BAR - filled)


def _table(*titles: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for title in titles:
        table.add_column(title, overflow="ellipsis", no_wrap=True)
    return table


def _cut(items: Sequence[Any], share: int | None) -> Sequence[Any]:
    return items if share is None else items[:share]


def _text(value: Any) -> Text:
    return Text(cell(value))


def _number(value: Any) -> float:
    return value if isinstance(value, int | float) else 0
