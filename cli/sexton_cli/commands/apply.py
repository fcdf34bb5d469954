"""``sexton apply``: makes workspaces as a folder of files says."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
import msgspec

from sexton_cli.caller import Caller
from sexton_cli.client import Client, field
from sexton_cli.commands.command import Command
from sexton_cli.commands.options import calling, sure, yes
from sexton_cli.declared.folder import Folder, Unreadable, find_folders, read_folder
from sexton_cli.declared.forms import json_schema
from sexton_cli.declared.report import count_of, diff_of, document_of, line_of_trial, lines_of
from sexton_cli.declared.secrets_file import write_made
from sexton_cli.declared.session import Rules, Seen, Session, adopts
from sexton_cli.declared.three_way import Verb
from sexton_cli.exits import FAILED, OK, USAGE, Fault
from sexton_cli.id_parts import is_id
from sexton_cli.identity import workspaces_of
from sexton_cli.lookups import workspace_path

CHANGES: Final = 2
"""The exit status of ``--diff`` and ``--dry-run`` where something would change."""


class _WrongWord(click.UsageError):
    exit_code = FAILED


class _Command(Command):
    """A wrong word ends with 1, so that a script can take 2 for changes and nothing else."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as fault:
            raise _WrongWord(fault.format_message(), fault.ctx) from None


@dataclass(frozen=True, slots=True)
class Asked:
    """What stands on the command line."""

    root: Path | None
    shows_diff: bool
    dry_run: bool
    prune: bool
    take_over: bool
    wait: int
    secrets_file: Path | None
    schema: bool
    yes: bool

    @property
    def only_looks(self) -> bool:
        return self.shows_diff or self.dry_run


class Look(NamedTuple):
    """One folder, its workspace's name, and what was found there."""

    folder: Folder
    name: str
    session: Session
    seen: Seen


@click.command(cls=_Command)
@click.option("--folder", "-f", "root", type=click.Path(path_type=Path), metavar="DIR", help="The folder.")
@click.option("--diff", "shows_diff", is_flag=True, help="Change nothing; show what would change as a diff.")
@click.option("--dry-run", is_flag=True, help="Change nothing; show what would change, a line a thing.")
@click.option("--prune", is_flag=True, help="Remove what this folder has applied and names no more.")
@click.option("--take-over", is_flag=True, help="Take things over that another folder has applied.")
@click.option(
    "--wait",
    type=click.IntRange(0, 3_600),
    default=60,
    show_default=True,
    help="Seconds to wait while somebody else is applying to the workspace.",
)
@click.option(
    "--secrets-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write approval tokens and secret addresses of new agents there, readable by you alone.",
)
@click.option("--schema", is_flag=True, help="Print the JSON Schema of sexton.yaml, for editors.")
@yes
@calling
def apply(caller: Caller, **words: Any) -> None:
    """Make workspaces as the files of a folder say; done twice, the second time changes nothing.

    DIR has a sexton.yaml and agents/NAME/SKILL.md and TRIGGER.md, or several such folders. What the folder
    does not name stays as it is; what it named before and names no more goes back to what it is by itself.

    Ends with 0 where all is as the folder says, 1 for what is wrong. With --diff or --dry-run, 2 says that
    something would change.
    """
    asked = Asked(**words)
    if asked.schema:
        caller.output.document(json_schema())
        return
    if asked.root is None:
        raise Fault("there is no folder to apply", "Give one with -f DIR.", status=FAILED)
    try:
        folders = [read_folder(asked.root, path, os.environ) for path in find_folders(asked.root)]
    except Unreadable as unreadable:
        _tell_problems(caller, unreadable)
        return
    rules = Rules(prune=asked.prune, take_over=asked.take_over, wait_s=asked.wait)
    with caller.client() as client:
        sessions = [(one, *_session(caller, client, one, rules)) for one in folders]
        looked = [Look(folder, name, session, session.look()) for folder, name, session in sessions]
        for look in looked:
            _show(caller, look, shows_diff=asked.shows_diff)
        changes = sum(len(one.seen.plan.steps) + (one.session.workspace is None) for one in looked)
        documents = [_document(one, with_diff=asked.shows_diff) for one in looked]
        if not asked.only_looks:
            _ask(caller, looked, yes=asked.yes)
            for look in looked:
                _do(caller, client, look, asked.secrets_file)
    if caller.output.as_json:
        told = {"folders": documents, "changed": changes, "applied": not asked.only_looks}
        caller.output.document(told)
    elif not changes:
        caller.output.say("Nothing to do.")
    elif not asked.only_looks:
        caller.output.say("Applied.")
    click.get_current_context().exit(CHANGES if asked.only_looks and changes else OK)


def _session(caller: Caller, client: Client, folder: Folder, rules: Rules) -> tuple[str, Session]:
    """The name and the session of the folder's workspace.

    That is the one of the command line, else the folder's, else the one in use.
    """
    wanted = caller.given_workspace or folder.workspace
    if wanted is None or is_id(wanted):
        with _without_two():
            path = workspace_path(caller, client)
        return str(client.get(path).get("name")), Session(client, folder, path, rules)
    found = [row["workspace_id"] for row in workspaces_of(client) if row["name"] == wanted]
    return wanted, Session(client, folder, f"/v1/workspaces/{found[0]}" if found else None, rules)


@contextmanager
def _without_two() -> Iterator[None]:
    """What would end with 2 elsewhere ends with 1: 2 is for changes alone."""
    try:
        yield
    except Fault as fault:
        if fault.status != USAGE:
            raise
        raise Fault(fault.what, fault.way_out, status=FAILED, code=fault.code) from None


def _show(caller: Caller, look: Look, *, shows_diff: bool) -> None:
    planned = look.seen.plan
    if not caller.output.as_json:
        for left in look.seen.left:
            caller.output.say(line_of_trial(left))
    if caller.output.as_json or not (planned.changes or look.session.workspace is None):
        return
    if look.session.workspace is None:
        caller.output.say(f"There is no workspace {look.name} yet: it is made.")
    caller.output.say(f"Workspace {look.name}, folder {look.folder.name}: {count_of(planned)}.")
    if shows_diff and (text := diff_of(planned)):
        caller.output.changes(text)
    for line in lines_of(planned):
        caller.output.say(line)


def _document(look: Look, *, with_diff: bool) -> dict[str, Any]:
    return {
        "folder": look.folder.name,
        "workspace": look.name,
        "makes_workspace": look.session.workspace is None,
        "changes": document_of(look.seen.plan, with_diff=with_diff),
        "left": msgspec.to_builtins(look.seen.left),
    }


def _ask(caller: Caller, looked: Sequence[Look], *, yes: bool) -> None:
    steps = [change for look in looked for change in look.seen.plan.steps]
    removed = [change.key for change in steps if change.verb is Verb.REMOVE]
    if removed:
        with _without_two():
            sure(caller, f"Remove {', '.join(removed)} for good?", yes=yes)


def _do(caller: Caller, client: Client, look: Look, secrets_file: Path | None) -> None:
    session, seen = look.session, look.seen
    if session.workspace is None:
        made = client.post("/v1/workspaces", {"name": look.name}, key=session.key_of_workspace)
        session.workspace = f"/v1/workspaces/{field(made, 'workspace_id', str)}"
        seen = session.look()
    if not seen.plan.steps and not adopts(seen):
        return
    try:
        session.do(seen)
    finally:
        if session.made:
            write_made(caller.output, session.made, secrets_file)


def _tell_problems(caller: Caller, unreadable: Unreadable) -> None:
    """Every problem with its place; nothing was sent."""
    if caller.output.as_json:
        told = [
            {"file": p.file, "line": p.line, "key": p.key, "message": p.message} for p in unreadable.problems
        ]
        caller.output.document({"errors": told})
    for problem in () if caller.output.as_json else unreadable.problems:
        key = f" `{problem.key}`" if problem.key else ""
        caller.output.note(f"{problem.file}:{problem.line}:{key} {problem.message}")
    click.get_current_context().exit(FAILED)
