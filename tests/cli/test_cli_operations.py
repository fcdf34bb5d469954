"""Every operation of the interface has a command that does it, or a reason why none does."""

from __future__ import annotations

import re
from pathlib import Path

import click
import msgspec
import pytest
import yaml
from click.testing import CliRunner, Result

from sexton_cli.formats import names_in, spelled
from sexton_cli.main import cli
from sexton_cli.operations import COMMAND_OF, WITHOUT, WITHOUT_PATHS, WITHOUT_TAGS
from sexton_http.describe.examples import EXAMPLES
from sexton_http.routes.table import OPERATIONS
from tests.fakes.example_server import ExampleServer
from tests.worlds.agent_folders import agent_folder

ID = "019363b0-0000-7000-8000-00000000aaff"
BY_NAME = {operation.name: operation for operation in OPERATIONS}
MORE: dict[str, tuple[str, ...]] = {
    "list_workspace_audit": ("--here",),
    "list_platform_audit": ("--platform",),
    "export_platform_audit": ("--platform",),
    "read_delivery_body": ("--body",),
    "export_charges": ("--export",),
    "stream_workspace_events": ("--count", "1"),
    "end_session": (ID,),
    "end_sessions": ("--all",),
    "change_zombie": ("--agent", ID),
    "mute_failure": ("--off",),
    "rotate_vault": ("--no-wait",),
    "put_mcp_server": ("--url", "https://mcp.example.com/mcp"),
    "put_credential": ("--field", "token"),
    "start_shadow": ("--version", "1"),
}
"""Options with which a command does just this operation."""
SHOWN_BY = {
    "grant": ("list_workspace_grants", "grant_id"),
    "schedule": ("list_schedules", "schedule_id"),
}
"""What a command looks for in a list first, and so has to be in it."""
ELSEWHERE = frozenset(
    {
        *("get_applied", "put_applied", "compare_credential"),  # test_cli_apply
        *("create_auth_session", "get_auth_session", "verify_auth_session", "abort_auth_session"),  # login
        *("create_sign_in", "renew_token", "invite_member"),  # login, people
        *("stream_events", "steer_zombie", "begin_workspace_upload", "send_workspace_part"),  # steering
        *("deliver_to_source", "serve_assistant", "read_artefact", "view_supervisor"),  # trigger, mcp, files
        *("preview_spec", "export_audit", "export_platform_audit", "stream_workspace_events"),
        "export_events",
    }
)
"""What takes a conversation of more than one answer; the tests of these commands hold it."""

NOT_A_DOCUMENT = frozenset({"read_delivery_body", "export_charges"})
NAMELESS = frozenset(
    {
        *("get_agent_profile", "get_balance", "get_queue", "get_scoring", "get_tenant_provider"),
        *("get_retention", "preview_retention"),
        *("get_throughput", "healthz", "readyz", "show_chat", "show_vault", "show_workspace_files"),
        *("view_queue", "view_actor", "list_actor_messages", "get_canary"),
        *("get_shadow", "start_shadow"),
    }
)
"""What has no name: sums, settings of a whole, things that are not there."""


def command_of(words: str) -> click.Command:
    command: click.Command | None = cli
    for word in words.split():
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command, info_name="sexton"), word)
        assert command is not None, f"there is no `sexton {words}`"
    assert command is not None
    return command


def sample(command: click.Command, folder: Path) -> list[str]:
    """Words that fit what a command has to be given."""
    words = []
    for param in command.params:
        if isinstance(param, click.Option):
            words += ["--yes"] if param.name == "yes" else []
            words += [param.opts[0], _value(param, folder)] if param.required else []
        elif param.required:
            words.append(_value(param, folder))
    return words


def _value(param: click.Parameter, folder: Path) -> str:
    match param.type:
        case click.Choice(choices=choices):
            return str(choices[0])
        case click.IntRange() | click.FloatRange():
            return "3"
        case click.Path():
            return str(folder / "echo")
        case _ if param.name in SHOWN_BY:
            listing, key = SHOWN_BY[param.name]
            return str(EXAMPLES[listing].answers["200"]["items"][0][key])
        case _ if param.type is click.INT or param.name in {"dollars", "version"}:
            return "1"
        case _:
            return ID


def run(words: str, *more: str, folder: Path) -> Result:
    command = command_of(words)
    return CliRunner().invoke(cli, [*words.split(), *sample(command, folder), *more], input="s3cret\n")


def test_every_operation_has_a_command_or_a_reason() -> None:
    bare = [
        operation.name
        for operation in OPERATIONS
        if operation.name not in COMMAND_OF
        and operation.name not in WITHOUT
        and operation.tag not in WITHOUT_TAGS
        and not operation.path.startswith(tuple(WITHOUT_PATHS))
    ]

    assert bare == [], "name the command that does it in sexton_cli/operations.py, or say why none should"
    assert not COMMAND_OF.keys() & WITHOUT.keys()
    assert (COMMAND_OF.keys() | WITHOUT.keys()) <= BY_NAME.keys()


@pytest.mark.parametrize("name", sorted(COMMAND_OF.keys() - ELSEWHERE))
def test_a_command_does_the_operation_that_it_is_said_to_do(
    examples: ExampleServer, tmp_path: Path, name: str
) -> None:
    agent_folder(tmp_path)
    ended = run(COMMAND_OF[name], *MORE.get(name, ()), "-o", "json", folder=tmp_path)

    assert name in examples.asked, (ended.output, ended.exception)
    assert ended.exception is None or isinstance(ended.exception, SystemExit)

    if BY_NAME[name].method == "GET" and name not in NOT_A_DOCUMENT:
        document = msgspec.json.decode(ended.stdout)
        assert yaml.safe_load(spelled(document, "yaml")) == document
        rows = document.get("items", [document])
        assert len(names_in(document)) == (0 if name in NAMELESS else len(rows)), document


def test_a_list_of_leases_names_their_agents(examples: ExampleServer, tmp_path: Path) -> None:
    (row,) = EXAMPLES["list_live_leases"].answers["200"]["items"]
    title, line = run("lease list", folder=tmp_path).stdout.splitlines()

    assert line[title.index("AGENT") :].split()[0] == row["zombie_name"]


def test_the_queue_says_how_long_events_wait(examples: ExampleServer, tmp_path: Path) -> None:
    told = {**EXAMPLES["get_queue"].answers["200"], "leases": 1}
    idle = {"required_tags": [], "events": 0, "oldest_age_ms": None, "ages_ms": [0, 0]}
    examples.answers["get_queue"] = told | {"labels": [{**told["labels"][0], "ages_ms": [250_000]}, idle]}
    ended = run("queue", "--minutes", "20", folder=tmp_path)

    assert re.split(" {2,}", ended.stdout.splitlines()[0])[2:] == ["OLDEST WAITS", "LONGEST WAIT IN 20 MIN"]
    assert re.search(r"^gpu +2 +1 min 4 s +4 min 10 s$", ended.stdout, re.MULTILINE)
    assert re.search(r"^any runner +0 +- +-$", ended.stdout, re.MULTILINE)
    assert "1 live lease; the least time left is 18.4 s of 30 s." in ended.stderr


def test_the_answer_is_written_as_it_is_asked_for(examples: ExampleServer, tmp_path: Path) -> None:
    items = EXAMPLES["list_zombies"].answers["200"]["items"]
    told = {
        form: run("agent list", "-o", form, folder=tmp_path).stdout
        for form in ("json", "yaml", "name", "table")
    }
    again = run("agent list", "--json", folder=tmp_path).stdout
    key = run("keys create", "--output", "name", folder=tmp_path)

    assert yaml.safe_load(told["yaml"]) == msgspec.json.decode(told["json"])
    assert told["name"].splitlines() == [row["name"] for row in items]
    assert told["table"].startswith("NAME")
    assert again == told["json"]

    # What is shown once is not lost with the rest.
    made = EXAMPLES["create_api_key"].answers["201"]
    assert (key.stdout.strip(), made["key"] in key.stderr) == (made["key_name"], True)
