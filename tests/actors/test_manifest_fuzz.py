"""Whatever stands in the two files, they become a manifest or a list of problems, never an exception."""

from typing import Any

import orjson
import yaml
from hypothesis import HealthCheck, given, settings, strategies as st

from sexton_actors.manifest.model import Manifest, from_json, to_json
from sexton_actors.manifest.nodes import NotYaml, read_yaml
from sexton_actors.manifest.parse import ManifestRejected, parse
from sexton_actors.manifest.problems import MAX_PROBLEMS
from tests.thorough import examples

SKILL = "---\nname: x\ndescription: d\nversion: 1.0.0\n---\n```sh\necho\n```\n"
TRIGGER = """\
---
name: x
runtime: command
triggers:
  - type: webhook
    source: github
    events: [push]
    signature: {secret_ref: hook, header: X-A, prefix: "a="}
  - {type: cron, schedule: "* * * * *", timezone: UTC}
tools: [shell]
network: {allow: ["*.example.com"]}
budget: {daily_dollars: 1.5, monthly_dollars: 2}
gates:
  rules: [{tool: "*", action: a, condition: "a == 'b'", behavior: approve}]
  anomaly_rules: [{pattern: same_action, threshold_count: 2, threshold_window_s: 3}]
  timeout_ms: 1000
  checks: [{name: a, command: b, timeout_s: 1, repair_attempts: 0}]
context: {a: [1, 2.5, true, null, text]}
---
"""
CODES = {"UZ-ZMB-008", "UZ-ZMB-011", "UZ-REQ-001", "UZ-APPROVAL-001", "UZ-APPROVAL-005"}

SCRAPS = (
    st.sampled_from(
        ["\n", "\r", " ", "\t", ":", "- ", "[", "]", "{", "}", '"', "'", "*a", "&a ", "!x ", "|", "#"]
    )
    | st.sampled_from(
        ["---\n", "...\n", "```sh\n", "~~~", "? ", "<<: ", "no", "012", ".inf", "~", "\0", "\ufeff"]
    )
    | st.sampled_from(["\ud800", "\u2028", "x" * 300, "[" * 300, "trigger: ", "x-usezombie:\n "])
)


def check(source: str, trigger: str) -> None:
    found = parse(source, trigger)
    if isinstance(found, Manifest):
        assert from_json(orjson.loads(orjson.dumps(to_json(found)))) == found
        return
    assert isinstance(found, ManifestRejected)
    assert 1 <= len(found.errors) <= MAX_PROBLEMS
    assert found.code == found.errors[0].code
    assert found.detail.startswith("ERR_ZOMBIE_INVALID_CONFIG: ") == (found.code == "UZ-ZMB-008")
    for error in found.errors:
        text = source if error.file == "SKILL.md" else trigger
        assert error.code in CODES
        assert error.message
        assert 1 <= error.line <= len(text.splitlines()) + 2


@given(st.text(max_size=200), st.text(max_size=200))
@settings(deadline=None)
def test_any_two_texts(source: str, trigger: str) -> None:
    check(source, trigger)


@given(st.data())
@settings(deadline=None, max_examples=examples(300))
def test_good_files_with_scraps_in_them(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from([SKILL, TRIGGER]))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        gone = data.draw(st.integers(0, 12))
        text = text[:at] + data.draw(SCRAPS) + text[at + gone :]
    check(text, TRIGGER)
    check(SKILL, text)


def test_good_files_cut_off_anywhere() -> None:
    for end in range(len(TRIGGER)):
        check(SKILL, TRIGGER[:end])
    for end in range(len(SKILL)):
        check(SKILL[:end], TRIGGER)


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
KEYS = st.sampled_from(
    ["triggers", "tools", "credentials", "integrations", "network", "budget", "gates", "context"]
) | st.sampled_from(["runtime", "model", "provider", "allow_unsandboxed", "x-usezombie", "trigger", "other"])


@given(st.dictionaries(KEYS, JSON, max_size=4))
@settings(deadline=None)
def test_any_value_under_any_key(config: dict[str, Any]) -> None:
    text = yaml.safe_dump({"name": "x", **config}, allow_unicode=True)
    check(SKILL, f"---\n{text}---\n")


INNER = {
    "rules": st.fixed_dictionaries(
        {}, optional={"tool": JSON, "action": JSON, "condition": JSON, "behavior": JSON}
    ),
    "anomaly_rules": st.fixed_dictionaries(
        {}, optional={"pattern": JSON, "threshold_count": JSON, "threshold_window_s": JSON}
    ),
    "checks": st.fixed_dictionaries(
        {}, optional={"name": JSON, "command": JSON, "timeout_s": JSON, "repair_attempts": JSON}
    ),
}
TRIGGERS = st.fixed_dictionaries(
    {"type": st.sampled_from(["webhook", "cron"]) | JSON},
    optional={
        "source": st.sampled_from(["github", "svix", "x"]) | JSON,
        "events": JSON,
        "signature": JSON | st.fixed_dictionaries({}, optional={"secret_ref": JSON, "header": JSON}),
        "credential_name": JSON,
        "tolerance_seconds": JSON,
        "payload": st.sampled_from(["raw", "envelope"]) | JSON,
        "schedule": JSON | st.text("0123456789*/,-LW# ", max_size=20),
        "timezone": JSON,
        "message": JSON,
    },
)


@given(
    st.lists(TRIGGERS, max_size=3),
    st.fixed_dictionaries({}, optional={key: st.lists(value, max_size=2) for key, value in INNER.items()}),
)
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_value_within_triggers_and_gates(triggers: list[Any], gates: dict[str, Any]) -> None:
    config = {"name": "x", "triggers": triggers, "gates": gates}
    check(SKILL, yaml.safe_dump(config, allow_unicode=True))


@given(st.dictionaries(st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1), JSON))
@settings(deadline=None)
def test_what_a_writer_of_yaml_writes_is_read(document: dict[str, Any]) -> None:
    found = read_yaml(yaml.safe_dump(document, allow_unicode=True), 1)
    assert not isinstance(found, NotYaml) or "U+" in found.message or "quotes" in found.message
