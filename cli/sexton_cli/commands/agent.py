"""``sexton agent``: lists, shows and changes agents; other verbs are late."""

from typing import Any

import click

from sexton_cli.caller import Caller
from sexton_cli.client import Row, field
from sexton_cli.commands.late_group import noun
from sexton_cli.commands.options import calling, sure, yes
from sexton_cli.commands.table import AGENT_COMMANDS
from sexton_cli.commands.words import AGENT_WORD
from sexton_cli.lookups import AGENT, agent_id, agent_path, first_of, walk, workspace_path
from sexton_cli.output import Column, dollars, moment

SHOWN_ONCE = (
    "The secret at the end of an address was shown once, when it was made. For another one take its trigger "
    "out of TRIGGER.md, run 'sexton agent update', put it in again and update once more."
)
COLUMNS = (
    Column("name", "NAME", elastic=True),
    Column("zombie_id", "ID"),
    Column("status", "STATUS"),
    Column("woken_by", "WOKEN BY", spare=True),
    Column("last_event", "LAST EVENT", spare=True),
    Column("created", "CREATED", spare=True),
)


@noun(late=AGENT_COMMANDS)
def agent() -> None:
    """Write, try, install, update, check, look at, stop and delete agents."""


@agent.command("list")
@click.option("--status", type=click.Choice(["active", "paused", "stopped", "killed"]), help="Only these.")
@click.option("--name", metavar="GLOB", help="Only agents whose names match; * stands for any characters.")
@calling
def list_(caller: Caller, *, status: str | None, name: str | None) -> None:
    """List the workspace's agents, newest first."""
    with caller.client() as client:
        path = f"{workspace_path(caller, client)}/zombies"
        rows = list(walk(client, path, {"status": status, "name": name}, AGENT))
    if caller.output.as_json:
        caller.output.document({"items": rows, "total": len(rows)})
        return
    caller.output.table(
        COLUMNS,
        [
            {
                **row,
                "woken_by": woken_by(row),
                "last_event": moment(row.get("last_event_at")),
                "created": moment(row.get("created_at")),
            }
            for row in rows
        ],
    )


@agent.command()
@click.argument("name", metavar="AGENT", type=AGENT_WORD)
@click.option("--files", is_flag=True, help="Print SKILL.md and TRIGGER.md as they are installed.")
@calling
def show(caller: Caller, *, name: str, files: bool) -> None:
    """Show the agent of this NAME or id: what wakes it and where, its budget, and what it has spent.

    A secret in an address was shown once, when it was made. For another one take its trigger out of
    TRIGGER.md, update, put it in again and update once more.
    """
    with caller.client() as client:
        found = client.get(agent_path(caller, client, name))
    if caller.output.as_json:
        caller.output.document(found)
        return
    if files:
        caller.output.piece(f"{found.get('source_markdown')}\n{found.get('trigger_markdown')}\n")
        return
    budget: Row = found.get("budget") or {}
    caller.output.facts(
        {
            "agent": f"{found.get('name')} ({found.get('zombie_id')})",
            "status": found.get("status"),
            "waiting for": waits_for(found),
            "woken by": woken_by(found),
            "needs labels": ", ".join(found.get("required_tags") or ()) or None,
            "revision": f"{found.get('config_revision')} ({found.get('config_version_id')})",
            "pinned": _pinned(found),
            "budget a day": dollars(budget.get("daily_nanos")),
            "budget a month": dollars(budget.get("monthly_nanos")),
            **_spent(found),
            **urls_of(found),
            "last event": moment(found.get("last_event_at")),
            "created": moment(found.get("created_at")),
            "updated": moment(found.get("updated_at")),
        }
    )
    if any(str(url).endswith("***") for url in urls_of(found).values()):
        caller.output.note(SHOWN_ONCE)


@agent.command()
@click.argument("name", metavar="AGENT", type=AGENT_WORD)
@calling
def status(caller: Caller, *, name: str) -> None:
    """Say how the agent of this NAME or id does: trust, last event, what waits for a person."""
    with caller.client() as client:
        workspace = workspace_path(caller, client)
        zombie_id = agent_id(client, workspace, name)
        record = client.get(f"{workspace}/zombies/{zombie_id}")
        profile = client.get(f"/v1/agents/{zombie_id}")
        newest = first_of(client, f"{workspace}/events", {"zombie_id": zombie_id}, {"event_id": str}, 1).items
        query = {"zombie_id": zombie_id, "status": "pending"}
        waiting = list(walk(client, f"{workspace}/approvals", query, {"gate_id": str}))
    last = newest[0] if newest else None
    if caller.output.as_json:
        caller.output.document(
            {"agent": record, "profile": profile, "last_event": last, "pending_approvals": len(waiting)}
        )
        return
    label = f" ({last['failure_label']})" if last and last.get("failure_label") else ""
    stalled = "proposals have stopped helping" if profile.get("improvement_stalled_warning") else None
    caller.output.facts(
        {
            "agent": f"{record.get('name')} ({zombie_id})",
            "status": record.get("status"),
            "waiting for": waits_for(record),
            "trust": f"{profile.get('trust_level')}, {profile.get('trust_streak_runs')} good runs in a row",
            "warning": stalled,
            "last event": last and f"{last.get('status')}{label}, {moment(last.get('created_at'))}",
            "approvals": f"{len(waiting)} wait for a person" if waiting else "none wait",
            **_spent(record),
        }
    )


@agent.command()
@click.argument("name", metavar="AGENT", type=AGENT_WORD)
@calling
def stop(caller: Caller, *, name: str) -> None:
    """Let the agent finish what it does and take nothing new; its events wait."""
    _change(caller, name, "stopped")


@agent.command()
@click.argument("name", metavar="AGENT", type=AGENT_WORD)
@calling
def resume(caller: Caller, *, name: str) -> None:
    """Let a stopped or paused agent go on."""
    _change(caller, name, "active")


@agent.command()
@click.argument("name", metavar="AGENT", type=AGENT_WORD)
@yes
@calling
def kill(caller: Caller, *, name: str, yes: bool) -> None:
    """End the agent now and for good, with all that it does and that waits for it."""
    sure(caller, f"Kill agent {name} for good?", yes=yes)
    _change(caller, name, "killed")


@agent.command()
@click.argument("name", metavar="AGENT", type=AGENT_WORD)
@yes
@calling
def delete(caller: Caller, *, name: str, yes: bool) -> None:
    """Kill the agent and delete its record, history, memories and keys."""
    sure(caller, f"Delete agent {name} and its history for good?", yes=yes)
    with caller.client() as client:
        path = agent_path(caller, client, name)
        client.delete(path)
    if caller.output.as_json:
        caller.output.document({"zombie_id": path.rpartition("/")[2], "deleted": True})
        return
    caller.output.say(f"Deleted agent {name}.")


@agent.command("approval-token")
@click.argument("name", metavar="AGENT", type=AGENT_WORD)
@yes
@calling
def approval_token(caller: Caller, *, name: str, yes: bool) -> None:
    """Give an agent another approval token and show it, this once; the old one is out at once."""
    sure(caller, f"Give agent {name} another approval token?", yes=yes)
    with caller.client() as client:
        made = client.post(f"{agent_path(caller, client, name)}/approval-token", {})
    caller.output.thing(made, field(made, "approval_token", str))


def _change(caller: Caller, name: str, wanted: str) -> None:
    with caller.client() as client:
        changed = client.patch(agent_path(caller, client, name), {"status": wanted})
    if caller.output.as_json:
        caller.output.document(changed)
        return
    caller.output.say(f"Agent {changed.get('name')} is {changed.get('status')}.")


def waits_for(record: Row) -> str | None:
    """What the agent waits for, and what no runner has of what it needs."""
    lacks = ", ".join(record.get("unmet_needs") or ())
    waits = record.get("waiting_for")
    return f"{waits}: none has {lacks}" if lacks else waits


def woken_by(row: Row) -> str | None:
    """The agent's triggers in a few words.

    >>> woken_by({"triggers": [{"type": "webhook", "source": "github"}, {"type": "cron", "schedule": "@"}]})
    'webhook:github, cron:@'
    """
    triggers: list[Any] = row.get("triggers") or []
    told = [
        f"{trigger.get('type')}:{trigger.get('source') or trigger.get('schedule')}"
        for trigger in triggers
        if isinstance(trigger, dict)
    ]
    return ", ".join(told) or None


def _pinned(record: Row) -> str | None:
    """Since when and by whom; None: it is pinned to none.

    >>> _pinned({"pin": {"version": 3, "at": 0, "by": "user:ada", "held_version": 5}, "config_revision": 3})
    'to version 3 by user:ada; version 5 waits'
    >>> _pinned({"pin": None}) is None
    True
    """
    pin: Row = record.get("pin") or {}
    if not pin:
        return None
    held = pin.get("held_version")
    told = f"to version {pin.get('version')} by {pin.get('by')}"
    return told if held is None else f"{told}; version {held} waits"


def _spent(record: Row) -> dict[str, str | None]:
    spend: Row = record.get("spend") or {}
    return {
        "spent today": dollars(spend.get("day_nanos")),
        "spent this month": dollars(spend.get("month_nanos")),
    }


def urls_of(answer: Row) -> dict[str, Any]:
    """The addresses of an agent's webhooks, by what a person calls each."""
    urls: Row = answer.get("webhook_urls") or {}
    return {f"webhook {source}": url for source, url in urls.items()}
