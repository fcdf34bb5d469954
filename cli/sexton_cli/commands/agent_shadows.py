"""``sexton agent shadow``: runs saved events under other files of an agent, without effects."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from sexton_cli.caller import Caller
from sexton_cli.client import Client, Row, field, rows
from sexton_cli.commands.agent_versions import VERSION, version_number
from sexton_cli.commands.jobs import begin, job_path
from sexton_cli.commands.late_group import noun
from sexton_cli.commands.options import calling
from sexton_cli.commands.words import AGENT_WORD, JOB_WORD
from sexton_cli.exits import FAILED, USAGE, Fault
from sexton_cli.lookups import agent_id, first_of, segment, workspace_path
from sexton_cli.manifests import Files
from sexton_cli.output import Column, dollars

NANOS: Final = 1_000_000_000
PAIR: Final = {"shadow": dict, "same_answer": bool}
COLUMNS: Final = (
    Column("event", "EVENT"),
    Column("ended", "ENDED"),
    Column("cost", "COST"),
    Column("seconds", "SECONDS"),
    Column("tools", "TOOLS"),
    Column("asks", "WOULD ASK"),
    Column("answer", "ANSWER", elastic=True),
)


@noun()
def shadow() -> None:
    """Run saved events of an agent under other files, without effects, and compare."""


@shadow.command()
@click.argument("name", metavar="AGENT", type=AGENT_WORD)
@click.argument("folder", required=False, type=click.Path(file_okay=False, path_type=Path), metavar="[DIR]")
@click.option("--version", metavar="VERSION", help="One of the agent's versions, in place of DIR.")
@click.option("--filter", "picked", default="", metavar="FILTER", help="Which events that are over.")
@click.option(
    "--limit", type=click.IntRange(1, 1_000), default=20, show_default=True, help="How many events at most."
)
@click.option(
    "--budget",
    type=click.FloatRange(0, min_open=True),
    default=1.0,
    show_default=True,
    metavar="DOLLARS",
    help="What the runs may cost together.",
)
@click.option("--dry-run", is_flag=True, help="Count the events, and do nothing.")
@calling
def start(caller: Caller, *, name: str, folder: Path | None, version: str | None, **wish: Any) -> None:
    """Have events of an agent run under the files of DIR, which are kept as a draft; print the job's id.

    Nothing is reached but the model, nothing lent, remembered or scored, and nobody is asked. The runs are
    charged as any others.
    """
    if (folder is None) is (version is None):
        raise Fault("give either DIR or --version", status=USAGE)
    with caller.client() as client:
        workspace = workspace_path(caller, client)
        zombie_id = agent_id(client, workspace, name)
        number = (
            _drafted(client, workspace, zombie_id, folder)
            if version is None and folder is not None
            else version_number(caller, client, name, str(version))
        )
    body = {
        "agent_version": number,
        "filter": wish["picked"],
        "limit": wish["limit"],
        "budget_nanos": round(wish["budget"] * NANOS),
        "dry_run": wish["dry_run"],
    }
    begin(caller, f"zombies/{zombie_id}/shadow", body)


@shadow.command()
@click.argument("job", type=JOB_WORD)
@calling
def report(caller: Caller, *, job: str) -> None:
    """Show what came of the events of a JOB beside what they were: answer, cost, tools and time."""
    with caller.client() as client:
        path = f"{job_path(caller, client, job)}/shadow"
        found = client.get(path)
        items = rows(found, PAIR)
        while found.get("next_cursor"):
            found = client.get(f"{path}?cursor={segment(found['next_cursor'])}")
            items = [*items, *rows(found, PAIR)]
    if caller.output.as_json:
        caller.output.document({**found, "items": items, "next_cursor": None})
        return
    same = sum(item["same_answer"] for item in items)
    caller.output.table(COLUMNS, [line for item in items for line in _lines(item)])
    spent = dollars(field(found, "spent_nanos", int))
    about = field(found, "job", dict)
    caller.output.note(f"{about.get('status')}: {len(items)} events, {same} with the same answer, {spent}.")


def _drafted(client: Client, workspace: str, zombie_id: str, folder: Path) -> int:
    """Keep the files of a folder as a compiled version. Raises Fault where they make no agent."""
    files = Files(folder).body()
    if (before := _tried_before(client, workspace, zombie_id, files)) is not None:
        return before
    body = {"agent_id": zombie_id, **files}
    made = client.put(f"{workspace}/harness/source", body)
    wish = {"config_version_id": field(made, "config_version_id", str)}
    judged = client.post(f"{workspace}/harness/compile", wish)
    if judged.get("errors"):
        told = judged["errors"][0]
        what = f"{folder / str(told.get('file'))}:{told.get('line')}: {told.get('message')}"
        raise Fault(what, f"'sexton agent check {folder}' tells all.", status=FAILED)
    number: int = field(judged, "version", int)
    return number


def _tried_before(client: Client, workspace: str, zombie_id: str, files: Mapping[str, str]) -> int | None:
    """The number of the newest version, if it has these files and was compiled."""
    found = first_of(client, f"{workspace}/harness/versions", {"agent_id": zombie_id}, VERSION, 1).items
    if not found or found[0]["status"] == "DRAFT":
        return None
    newest = client.get(f"{workspace}/harness/versions/{found[0]['config_version_id']}")
    same = all(newest.get(name) == text for name, text in files.items()) and not newest.get("errors")
    return int(found[0]["version"]) if same else None


def _lines(item: Row) -> list[Row]:
    """The original's line and the shadow's."""
    asks = ", ".join(item.get("would_have_asked") or ()) or None
    original: Row = item.get("original") or {}
    first = _line(original, None) if original else {"event": "deleted"}
    return [first, {**_line(item["shadow"], asks), "event": f"version {item['shadow'].get('agent_version')}"}]


def _line(side: Row, asks: str | None) -> Row:
    tools: dict[str, int] = side.get("tools") or {}
    return {
        "event": side.get("event_id"),
        "ended": side.get("failure_label") or side.get("status"),
        "cost": dollars(side.get("charged_nanos")),
        "seconds": f"{side.get('wall_ms', 0) / 1000:.1f}",
        "tools": ", ".join(f"{name} {count}" for name, count in sorted(tools.items())) or None,
        "asks": asks,
        "answer": " ".join((side.get("response_text") or "").split()),
    }
