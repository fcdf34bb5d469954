"""``sexton tree`` and ``sexton actor``: the actors of a server, down to one, and a fresh start for it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

import click

from sexton_cli.caller import Caller
from sexton_cli.client import Row, field, rows
from sexton_cli.commands.command import command
from sexton_cli.commands.late_group import noun
from sexton_cli.commands.options import calling
from sexton_cli.commands.table import ACTOR as VERBS
from sexton_cli.lookups import segment
from sexton_cli.output import Column
from sexton_cli.tree_nodes import walk

ACTOR: Final[Mapping[str, type]] = {"kind": str, "key": str, "state": str, "mailbox_depth": int}
CRASH: Final[Mapping[str, type]] = {"kind": str, "key": str, "error": str, "traceback": str}
MESSAGE: Final[Mapping[str, type]] = {"message": str, "has_failed": bool}
NODES: Final = (
    Column("node", "NODE"),
    Column("state", "STATE"),
    Column("live", "ALIVE"),
    Column("mailbox_depth", "MAIL"),
    Column("oldest", "OLDEST"),
    Column("restarts", "RESTARTS"),
    Column("handled", "HANDLED", spare=True),
    Column("mean", "MEAN", spare=True),
)
ACTORS: Final = (
    Column("key", "KEY"),
    Column("state", "STATE"),
    Column("mailbox_depth", "MAIL"),
    Column("oldest", "OLDEST"),
    Column("handling", "AT WORK ON"),
    Column("restarts", "RESTARTS", spare=True),
)
CRASHES: Final = (
    Column("ago", "CRASHED"),
    Column("who", "ACTOR"),
    Column("message", "ON"),
    Column("error", "WITH", elastic=True),
)
LETTERS: Final = (
    Column("ago", "DIED"),
    Column("who", "ACTOR"),
    Column("message", "MESSAGE"),
    Column("reason", "WHY"),
)
MESSAGES: Final = (
    Column("ago", "BEGAN"),
    Column("message", "MESSAGE"),
    Column("waited", "WAITED"),
    Column("took", "TOOK"),
    Column("said", "FAILED"),
    Column("contents", "CONTENTS", elastic=True, spare=True),
)
WORKER: Final = click.option(
    "--worker", type=click.IntRange(0, 1023), help="The worker to ask; default: whichever answers."
)
NODE: Final = click.option(
    "--node", type=click.UUID, help="The server to ask, by its id; default: the one called."
)
SERVERS: Final = (
    Column("node", "NODE"),
    Column("host", "HOST"),
    Column("version", "VERSION"),
    Column("heard", "HEARD"),
    Column("said", "STATE"),
)


@command()
@click.argument("kind", required=False)
@NODE
@WORKER
@calling
def tree(caller: Caller, *, kind: str | None, node: UUID | None, worker: int | None) -> None:
    """Show the supervision tree, or all actors of a KIND, with what has crashed; for platform admins."""
    with caller.client() as client:
        seen = client.get(_path("/v1/fleet/tree", kind=kind, node=node, worker=worker))
    if caller.output.as_json:
        caller.output.document(seen)
        return
    output = caller.output
    if kind is None:
        output.table(NODES, nodes_of(seen))
    else:
        output.table(
            ACTORS,
            [{**row, "oldest": _seconds(row, "mailbox_age_s")} for row in rows_of(seen, "actors", ACTOR)],
        )
    _show_faults(caller, seen)
    _show_nodes(caller, seen)
    output.note(_where(seen))


@noun(late=VERBS)
def actor() -> None:
    """Show the actors of a server and what one handles; restart or stop it; for platform admins."""


@actor.command()
@click.argument("kind")
@click.argument("key", required=False, default="")
@NODE
@WORKER
@calling
def show(caller: Caller, *, kind: str, key: str, node: UUID | None, worker: int | None) -> None:
    """Show the actor of this KIND and KEY, with its crashes whole; one that exists once has no KEY."""
    with caller.client() as client:
        seen = client.get(_path(_actor(kind), key=key, node=node, worker=worker))
    if caller.output.as_json:
        caller.output.document(seen)
        return
    one = field(seen, "actor", dict)
    timers = [f"{timer.get('name')} in {timer.get('due_in_s', 0):.1f} s" for timer in one.get("timers") or ()]
    caller.output.facts(
        {
            "actor": f"{one.get('kind')}/{one.get('key')}",
            "state": one.get("state"),
            "mail": f"{one.get('mailbox_depth')} of {one.get('mailbox_capacity')}",
            "most mail": one.get("mailbox_peak"),
            "oldest": _seconds(one, "mailbox_age_s"),
            "at work on": one.get("handling") or "nothing",
            "timers": ", ".join(timers) or "none",
            "restarts": one.get("restarts"),
        }
    )
    for crash in rows_of(seen, "crashes", CRASH):
        caller.output.say(
            f"crashed {_seconds(crash, 'age_s')} ago on {crash.get('message')}: {crash['error']}"
        )
        for line in crash["traceback"].rstrip().splitlines():
            caller.output.say(f"  {line}")
    caller.output.note(_where(seen))


@actor.command()
@click.argument("kind")
@click.argument("key", required=False, default="")
@click.option("--contents", is_flag=True, help="Show what is in them, but for what may be a secret.")
@NODE
@WORKER
@calling
def messages(
    caller: Caller, *, kind: str, key: str, contents: bool, node: UUID | None, worker: int | None
) -> None:
    """Show the last messages that an actor has handled; the first look begins the recording."""
    asked = {"contents": "true"} if contents else {}
    with caller.client() as client:
        seen = client.get(_path(f"{_actor(kind)}/messages", key=key, node=node, worker=worker, **asked))
    if caller.output.as_json:
        caller.output.document(seen)
        return
    caller.output.table(
        MESSAGES,
        [
            {
                **row,
                "ago": f"{_seconds(row, 'age_s')} ago",
                "waited": _seconds(row, "waited_s"),
                "took": _seconds(row, "took_s") or "at it",
                "said": "yes" if row["has_failed"] else "",
            }
            for row in rows_of(seen, "items", MESSAGE)
        ],
    )
    caller.output.note(f"It is recorded for another {field(seen, 'recorded_for_s', float):.0f} s.")


@actor.command()
@click.argument("kind")
@click.argument("key", required=False, default="")
@NODE
@WORKER
@calling
def restart(caller: Caller, *, kind: str, key: str, node: UUID | None, worker: int | None) -> None:
    """Have an actor begin again after the message that it works on; its mail is kept."""
    _act(caller, "restart", kind, key, {"node": node, "worker": worker})


@actor.command()
@click.argument("kind")
@click.argument("key", required=False, default="")
@NODE
@WORKER
@calling
def stop(caller: Caller, *, kind: str, key: str, node: UUID | None, worker: int | None) -> None:
    """End an actor after the message that it works on; its mail is refused, the next message wakes it."""
    _act(caller, "stop", kind, key, {"node": node, "worker": worker})


def _act(caller: Caller, verb: str, kind: str, key: str, place: Mapping[str, Any]) -> None:
    named = {name: value for name, value in place.items() if value is not None}
    body = {"key": key, **{name: str(value) if name == "node" else value for name, value in named.items()}}
    with caller.client() as client:
        done = client.post(f"{_actor(kind)}:{verb}", body)
    if caller.output.as_json:
        caller.output.document(done)
        return
    caller.output.note(f"{kind}/{key} {'begins again' if verb == 'restart' else 'has ended'}. {_where(done)}")


def nodes_of(seen: Row) -> list[dict[str, Any]]:
    """The rows of a tree, each node with what its kind has handled."""
    handled = {kind.get("kind"): _handled(kind) for kind in seen.get("kinds") or ()}
    return [
        {
            **node,
            "node": "  " * depth + str(node.get("name")),
            "oldest": _seconds(node, "mailbox_age_s"),
            **handled.get(node.get("name"), {}),
        }
        for depth, node in walk(field(seen, "tree", dict))
    ]


def _handled(kind: Row) -> dict[str, Any]:
    counts: Sequence[Row] = kind.get("messages") or ()
    number = sum(one.get("count") or 0 for one in counts)
    seconds = sum(one.get("seconds") or 0 for one in counts)
    return {"handled": number, "mean": f"{1000 * seconds / number:.2f} ms" if number else ""}


def _show_faults(caller: Caller, seen: Row) -> None:
    def told(row: Row) -> dict[str, Any]:
        return {**row, "ago": f"{_seconds(row, 'age_s')} ago", "who": f"{row['kind']}/{row['key']}"}

    for name, columns in (("crashes", CRASHES), ("dead_letters", LETTERS)):
        found = [told(row) for row in rows_of(seen, name, {"kind": str, "key": str})]
        if found:
            caller.output.say("")
            caller.output.table(columns, found)


def _show_nodes(caller: Caller, seen: Row) -> None:
    """Where there is more than one server: which, and which of them are silent."""
    if not seen.get("nodes"):
        return  # A server of an earlier release knows of none.
    servers = rows_of(seen, "nodes", {"node": str, "host": str, "is_silent": bool})
    if len(servers) > 1:
        caller.output.say("")
        caller.output.table(
            SERVERS,
            [
                {
                    **row,
                    "heard": f"{_seconds(row, 'heard_ago_s')} ago",
                    "said": "silent" if row["is_silent"] else "shown" if not number else "serves",
                }
                for number, row in enumerate(servers)
            ],
        )


def rows_of(seen: Row, name: str, kinds: Mapping[str, type]) -> list[Row]:
    """A list of an answer that has several. Raises Fault."""
    return rows({"items": seen.get(name)}, kinds)


def _seconds(row: Row, name: str) -> str:
    value = row.get(name)
    return f"{value:.3f} s" if isinstance(value, int | float) else ""


def _where(seen: Row) -> str:
    worker = seen.get("worker")
    crew = seen.get("workers") or ()
    others = f"; its workers are {', '.join(map(str, crew))}" if len(crew) > 1 else ""
    where = f"{seen.get('host')}, node {seen.get('node')}"
    return f"Seen at {where}{'' if worker is None else f', worker {worker}'}{others}."


def _actor(kind: str) -> str:
    return f"/v1/fleet/actors/{segment(kind)}"


def _path(path: str, **query: Any) -> str:
    given = {name: value for name, value in query.items() if value not in {None, ""}}
    return f"{path}?{urlencode(given)}" if given else path
