"""Files that make an agent, and what of them will probably not do what their author wants."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, strategies as st

from sexton_actors.manifest.known_names import CONTEXT, PROVIDERS, TOOLS, Surroundings
from sexton_actors.manifest.parse import ManifestRejected, Reading, read
from sexton_runner.providers.registry import SERVICES
from sexton_runner.runtimes.agent.run_limits import BadRunLimits, RunLimits, read_run_limits
from sexton_runner.tools.table import TOOLS as RUNNERS_TOOLS
from tests.actors.test_manifest_parse import SKILL, rejection_of, with_config

NOWHERE = Surroundings()


def reading_of(config: str, around: Surroundings = NOWHERE) -> Reading:
    found = read(SKILL, with_config(config), around)
    assert isinstance(found, Reading), found
    return found


def told(config: str, around: Surroundings = NOWHERE) -> list[tuple[int, str, str]]:
    return [(one.line, one.key, one.message) for one in reading_of(config, around).warnings]


ADVICE = [
    ("tools: [shel]", 9, "tools[0]", "there is no tool `shel`: did you mean `shell`?"),
    ("tools:\n  - shell\n  - teleport", 11, "tools[1]", "there is no tool `teleport`"),
    ("tools: [mcp:files]", 9, "tools[0]", "whether a runner has the MCP server `files` is not known here"),
    ("tools: [files.read]", 9, "tools[0]", "whether a runner has the MCP server `files` is not known here"),
    ("tools: ['mcp:a.b']", 9, "tools[0]", "`mcp:a.b` names no MCP server"),
    ("provider: antropic", 9, "provider", "no provider `antropic` is known"),
    ("provider: my_lab", 9, "provider", "nor its address in SEXTON_MY_LAB_BASE_URL"),
    ("context: {max_turn: 5}", 9, "context.max_turn", "did you mean `max_turns`?"),
    (
        "gates: {rules: [{tool: shell, action: '*', behavior: deny}]}",
        9,
        "gates.rules[0].tool",
        "the agent has no tool `shell`: add it to `tools`",
    ),
    (
        "tools: [shell]\ngates:\n  rules:\n    - tool: shel\n      action: '*'\n      behavior: deny",
        12,
        "gates.rules[0].tool",
        "did you mean `shell`?",
    ),
]


@pytest.mark.parametrize(("config", "line", "key", "says"), ADVICE, ids=[row[0] for row in ADVICE])
def test_what_will_not_do_what_it_says_is_warned_of_with_its_line(
    config: str, line: int, key: str, says: str
) -> None:
    ((at, where, message),) = told(config)

    assert (at, where) == (line, key)
    assert says in message


@pytest.mark.parametrize(
    "config",
    [
        "tools: [shell, http_request]",
        "provider: Anthropic",
        "context: {max_turns: 5, tool_window: auto}",
        "tools: [shell]\ngates: {rules: [{tool: shell, action: '*', behavior: approve}]}",
        "gates: {rules: [{tool: 'workflow_run.*', action: '*', behavior: approve}]}",
        "gates: {rules: [{tool: message, action: 'steer:*', behavior: approve}]}",
        "gates: {rules: [{tool: '*', action: '*', behavior: approve}]}",
    ],
)
def test_what_makes_sense_is_not_warned_of(config: str) -> None:
    assert told(config) == []


def test_what_an_operator_has_added_is_known() -> None:
    around = Surroundings(frozenset({"my-lab"}), frozenset({"files"}))
    assert told("provider: my_lab\ntools: [mcp:files, files.read]", around) == []

    ((_, _, message),) = told("tools: [mcp:file]", around)
    assert message == "there is no MCP server `file`: did you mean `files`?"


def test_the_credentials_that_have_to_be_there_are_named_with_their_lines() -> None:
    found = reading_of("credentials: [deploy-key]\nintegrations:\n  - slack")

    assert [(need.name, need.line, need.key) for need in found.needs if need.key[0] != "t"] == [
        ("deploy-key", 9, "credentials[0]"),
        ("slack", 11, "integrations[0]"),
    ]
    assert [need.key for need in found.needs if need.key[0] == "t"] == ["triggers[0]"]


@pytest.mark.parametrize("value", ["0", "'many'", "1.5", "true", "null", "[1]"])
def test_a_context_that_a_run_could_not_use_is_refused(value: str) -> None:
    rejection = rejection_of(trigger=with_config(f"context: {{max_turns: {value}}}"))

    assert (rejection.code, rejection.errors[0].key) == ("UZ-ZMB-008", "context.max_turns")
    assert "a whole number from 1 to 1,000" in rejection.detail


def test_what_is_known_here_is_what_runners_have() -> None:
    assert frozenset(RUNNERS_TOOLS) == TOOLS
    assert frozenset(SERVICES) == PROVIDERS
    assert set(RunLimits.__struct_fields__) == set(CONTEXT)


EDGES = [edge for bound in CONTEXT.values() for edge in (bound.least, bound.most)]
VALUES: st.SearchStrategy[object] = st.one_of(
    st.sampled_from([*EDGES, *(edge + 1 for edge in EDGES), *(edge - 1 for edge in EDGES)]),
    st.integers(-2, 10_000_001),
    st.floats(-1, 2, allow_nan=False),
    st.sampled_from([None, True, False, "auto", "high", "", "5", [], {}]),
)


@given(st.dictionaries(st.sampled_from(sorted(CONTEXT)), VALUES))
def test_an_installation_refuses_exactly_the_contexts_that_a_run_refuses(context: dict[str, object]) -> None:
    try:
        read_run_limits(context)
    except BadRunLimits:
        usable = False
    else:
        usable = True
    assert all(CONTEXT[key].admits(value) for key, value in context.items()) is usable


def test_warnings_are_told_of_good_files_only() -> None:
    assert isinstance(read(SKILL, with_config("tools: [shel]\nruntime: x")), ManifestRejected)
    assert msgspec.to_builtins(reading_of("tools: [shel]").warnings)[0]["file"] == "TRIGGER.md"
