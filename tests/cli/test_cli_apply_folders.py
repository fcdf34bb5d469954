"""What ``sexton apply`` reads, and what it refuses before it asks any server."""

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from sexton_cli.declared import disk
from sexton_cli.declared.declaration_file import MAX_BYTES, parse
from sexton_cli.declared.folder import Folder, Unreadable, find_folders, read_folder
from sexton_cli.declared.forms import json_schema
from sexton_cli.declared.things import DEFAULTS, STAY, Kind, kind_of
from sexton_cli.declared.three_way import Change, Note, Plan, Verb, intended, plan
from tests.thorough import examples
from tests.worlds.agent_folders import agent_folder

HEAD = "format: 1\nfolder: crew\n"
TOKEN = "ghp_" + "a1" * 18


def folder_of(root: Path, text: str = HEAD, *agents: str) -> Path:
    """A folder with this ``sexton.yaml`` and command agents of these names."""
    (root / "agents").mkdir(exist_ok=True, parents=True)
    (root / "sexton.yaml").write_text(text)
    for name in agents:
        agent_folder(root / "agents", name)
    return root


def wrong_in(root: Path, **environ: str) -> list[str]:
    with pytest.raises(Unreadable) as unreadable:
        [read_folder(root, path, environ) for path in find_folders(root)]
    return [f"{one.line} {one.key}: {one.message}" for one in unreadable.value.problems]


def test_a_folder_is_read_with_its_secrets_and_without_their_text(tmp_path: Path) -> None:
    (tmp_path / "hub.json").write_text('{"token": "t0p"}\n')
    text = f"""{HEAD}workspace: harbour
paused: false
credentials:
  hub: {{object: {{file: ../hub.json}}, hosts: [api.example.com]}}
  hook: {{data: {{webhook_secret: {{env: HOOK}}}}, use: [{{in: header, name: X-Key}}]}}
  old:
mcp_servers:
  hub: {{url: "https://mcp.example.com/", headers: {{x-token: "${{secrets.hub.token}}"}}}}
agents:
  echo: {{status: stopped}}
"""
    root = folder_of(tmp_path / "crew", text, "echo", "other")
    folder = read_folder(root, root, {"HOOK": "s"})

    assert isinstance(folder, Folder)
    assert (folder.name, folder.workspace) == ("crew", "harbour")
    assert folder.secrets == {"credential/hub": {"token": "t0p"}, "credential/hook": {"webhook_secret": "s"}}
    assert folder.things["credential/hub"] == {"data": "(secret)", "hosts": ["api.example.com"]}
    assert folder.things["credential/hook"]["use"] == [{"in": "header", "name": "x-key"}]
    assert folder.things["credential/old"] == {}
    assert folder.things["mcp_server/hub"]["headers.x-token"] == "${secrets.hub.token}"
    assert folder.things["agent/echo"]["status"] == "stopped"
    assert folder.things["agent/other"].keys() == {"skill", "trigger"}


WRONG: list[tuple[str, str]] = [
    ("folder: crew\n", "1 : `format` is missing; add `format: 1`"),
    (HEAD + "pasued: true\n", "3 pasued: unknown key; did you mean `paused`?"),
    (HEAD + "paused: yes\n", "3 paused: `yes` can be read in two ways"),
    (HEAD + "folder: again\n", "3 : `folder` stands twice; keep one"),
    (HEAD + "agents:\n  a: &x {}\n", "4 : an anchor"),
    (HEAD + "agents: [a]\n", "3 agents: must be a mapping"),
    (HEAD + "agents: {herald: {}}\n", "1 agents.herald: there is no folder agents/herald"),
    (HEAD + "agents:\n  echo: {grants: [slack]}\n", "1 agents.echo.grants: TRIGGER.md does not name `slack`"),
    (
        HEAD + "agents:\n  echo: {paused_schedules: [{schedule: 0 5 * * *}]}\n",
        "has no schedule `0 5 * * *` in UTC",
    ),
    (HEAD + "credentials: {a: {hosts: []}, A: {hosts: []}}\n", "differs from `a` by the case of its letters"),
    (
        HEAD + "credentials:\n  hub:\n    data: {token: t0p}\n",
        "5 credentials.hub.data.token: a secret never stands",
    ),
    (HEAD + "credentials:\n  hub: t0p\n", "4 credentials.hub: a secret never stands in the folder"),
    (HEAD + "credentials: {hub: {data: {token: {env: MISSING}}}}\n", "the variable MISSING is not set"),
    (HEAD + "credentials: {hub: {object: {env: HERE}}}\n", "is no JSON object with fields"),
    (HEAD + "credentials: {hub: {object: {file: sexton.yaml}}}\n", "is in the folder itself"),
    (HEAD + "credentials: {hub: {object: {file: /dev/zero}}}\n", "is no plain file"),
    (HEAD + "model_key: {provider: anthropic, api_key: t0p}\n", "3 model_key.api_key: a secret never stands"),
    (
        HEAD + "mcp_servers:\n  hub:\n    headers: {authorization: Bearer abc}\n",
        "5 mcp_servers.hub.headers.authorization: a secret belongs in a credential",
    ),
    (HEAD + f"# {TOKEN}\n", "3 : a secret stands here as it is"),
    (HEAD + "x: " + "[" * 40, "3 : more than 16 mappings and lists within each other"),
    (HEAD + "x: \x07\n", "3 : a character that YAML does not allow"),
    (HEAD + "#" * MAX_BYTES, f"has more than {MAX_BYTES:,} bytes"),
]


def test_what_is_wrong_is_told_with_its_line_and_no_secret(tmp_path: Path) -> None:
    for text, expected in WRONG:
        told = wrong_in(folder_of(tmp_path, text, "echo"), HERE="t0p")
        assert any(expected in line for line in told), (text[:80], told)
        assert not any("t0p" in line or TOKEN in line for line in told), told


def _linked_out(root: Path) -> None:
    outside = agent_folder(root.parent, "far")
    (root / "agents" / "far").symlink_to(outside)


def _pipe(root: Path) -> None:
    (root / "agents" / "a").mkdir()
    os.mkfifo(root / "agents" / "a" / "SKILL.md")


def _huge(root: Path) -> None:
    agent_folder(root / "agents", "big")
    with (root / "agents" / "big" / "SKILL.md").open("ab") as file:
        file.truncate(100 * 1024 * 1024)


def _circle(root: Path) -> None:
    (root / "agents" / "c").mkdir()
    (root / "agents" / "c" / "SKILL.md").symlink_to("SKILL.md")


def _many(root: Path) -> None:
    for number in range(40):
        (root / "agents" / str(number)).touch()


def _other_name(root: Path) -> None:
    agent_folder(root / "agents", "one").rename(root / "agents" / "two")


def _case(root: Path) -> None:
    agent_folder(root / "agents", "one")
    agent_folder(root / "agents", "One")


def _out_above(root: Path) -> None:
    (root / "agents").rmdir()
    (root / "agents").symlink_to(root.parent)


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (_linked_out, "is a link out of the folder"),
        (_out_above, "agents: is a link out of the folder"),
        (_pipe, "is no plain file"),
        (_huge, "has more than 131,072 bytes"),
        (_circle, "leads nowhere"),
        (_many, "agents: holds more than 39 entries"),
        (_other_name, "the agent `one` stands in agents/two"),
        (_case, "by the case of its letters only"),
    ],
)
def test_a_hostile_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Path], None], expected: str
) -> None:
    monkeypatch.setattr(disk, "MAX_ENTRIES", 39)
    root = folder_of(tmp_path / "crew")
    spoil(root)

    assert any(expected in line for line in wrong_in(root)), wrong_in(root)


def test_a_folder_of_workspaces_is_read_one_by_one(tmp_path: Path) -> None:
    for name in ("north", "south"):
        folder_of(tmp_path / name, f"format: 1\nfolder: {name}\n", "echo")

    assert [path.name for path in find_folders(tmp_path)] == ["north", "south"]
    assert "neither has sexton.yaml nor folders with one" in wrong_in(tmp_path / "north" / "agents")[0]


def test_editors_are_given_a_schema_that_knows_the_same_keys() -> None:
    schema = json_schema()
    known = schema["$defs"]["Declaration"]

    assert known["additionalProperties"] is False
    assert {"format", "folder", "credentials", "agents"} <= known["properties"].keys()
    assert known["required"] == ["format", "folder"]


@given(st.text(max_size=300))
@settings(deadline=None, max_examples=examples(100))
def test_no_text_does_more_than_be_wrong(text: str) -> None:
    parsed = parse(HEAD + text)
    assert (parsed.declaration is None) == bool(parsed.problems)


# --- the three-way comparison -------------------------------------------------------------------------------

KEYS = st.sampled_from(["workspace/", "credential/hub", "mcp_server/hub", "agent/a", "agent/b"])
NAMES = ["paused", "hosts", "tools", "status", "headers.x", "skill", "grants.slack"]
FIELDS = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["1", "2", "3"]))
THINGS = st.dictionaries(KEYS, FIELDS)
NOTES = st.dictionaries(KEYS, st.builds(Note, st.sampled_from(["crew", "other"]), FIELDS))
State = dict[str, dict[str, object]]


def done(live: State, change: Change) -> None:
    """Make the change, as a server would."""
    if change.verb is Verb.REMOVE:
        live.pop(change.key, None)
        return
    fields = live.setdefault(change.key, {})
    for one in change.fields:
        fields[one.field] = one.after
        if one.after is None:
            del fields[one.field]


def settled(notes: dict[str, Note], live: State, want: State, *, prune: bool) -> Plan:
    return plan(notes, live, want, folder="crew", prune=prune)


@given(NOTES, THINGS, THINGS, st.booleans(), st.integers(0, 8))
@settings(deadline=None, max_examples=examples(200))
def test_applied_twice_the_second_time_does_nothing_wherever_the_first_was_broken_off(
    notes: dict[str, Note], live: State, want: State, prune: bool, broken_after: int
) -> None:
    before = msgspec.json.decode(msgspec.json.encode(live))
    first = settled(notes, live, want, prune=prune)
    begun = intended(notes, first)
    for change in first.steps[:broken_after]:
        done(live, change)

    again = settled(begun, live, want, prune=prune)
    for change in again.steps:
        done(live, change)
    last = settled(dict(again.notes), live, want, prune=prune)

    assert last.steps == []

    for key, fields in want.items():
        assert {name: live[key].get(name) for name in fields} == fields
    for key, fields in before.items():
        mine = key in notes and notes[key].folder == "crew"
        if key not in want and not (mine and (prune or kind_of(key) is Kind.WORKSPACE)):
            assert live[key] == fields, "what the folder neither names nor has made stays as it is"
        named = want.get(key, {}).keys() | (notes[key].fields.keys() if mine or key in notes else set())
        for name in fields.keys() - named:
            assert key not in live or live[key][name] == fields[name], "so does a field that nobody names"


@given(NOTES, THINGS, THINGS)
@settings(deadline=None, max_examples=examples(100))
def test_nothing_is_removed_unasked_and_nothing_of_another_folder_ever(
    notes: dict[str, Note], live: State, want: State
) -> None:
    kept = settled(notes, live, want, prune=False)
    pruned = settled(notes, live, want, prune=True)

    assert not [change for change in kept.steps if change.verb is Verb.REMOVE]

    for change in pruned.steps:
        if change.verb is Verb.REMOVE:
            assert notes[change.key].folder == "crew"
            assert change.key not in want
    left = {change.key for change in kept.changes if change.verb is Verb.LEAVE}
    assert left == {change.key for change in pruned.changes if change.verb is Verb.REMOVE}
    assert all(kept.notes[key] == notes[key] for key in left)


def test_things_are_made_before_what_names_them_and_removed_after_it() -> None:
    want: State = {"agent/a": {"skill": "1"}, "mcp_server/hub": {}, "credential/hub": {"data": "(secret)"}}
    made = settled({}, {}, want, prune=False)
    gone = settled(dict(made.notes), want, {}, prune=True)
    paused: State = {**want, "workspace/": {"paused": True}}
    resumed: State = {**want, "workspace/": {"paused": False}}
    rests = settled({}, {"workspace/": {"paused": False}}, paused, prune=False)
    goes_on = settled({}, {"workspace/": {"paused": True}}, resumed, prune=False)

    assert [change.key for change in made.steps] == ["credential/hub", "mcp_server/hub", "agent/a"]
    assert [change.key for change in gone.steps] == ["agent/a", "mcp_server/hub", "credential/hub"]
    assert (rests.steps[-1].key, goes_on.steps[0].key) == ("workspace/", "workspace/")
    assert STAY.isdisjoint(DEFAULTS[Kind.AGENT])
