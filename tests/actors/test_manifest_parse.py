"""An agent's two files become one manifest, or a list of what to mend and where."""

import msgspec
import orjson
import pytest

from sexton_actors.gate_rules.model import AnomalyRule, Behaviour, Check, GateRule
from sexton_actors.manifest.model import (
    CronTrigger,
    Manifest,
    Runtime,
    Signature,
    WebhookTrigger,
    from_json,
    to_json,
)
from sexton_actors.manifest.parse import ManifestRejected, parse

SKILL = """\
---
name: deploy-doctor
description: Looks at failed deployments.
version: 0.1.0
tags: [linux, gpu]
model: small-model
license: of the author's own
---
# Deploy doctor

Look at the failed run and say why it failed.
"""

TRIGGER = """\
---
name: deploy-doctor
triggers:
  - type: webhook
    source: github
    events: [workflow_run, issues.opened]
    signature:
      secret_ref: github-hook
---
Notes for people.
"""


def manifest_of(skill: str = SKILL, trigger: str = TRIGGER) -> Manifest:
    found = parse(skill, trigger)
    assert isinstance(found, Manifest), found
    return found


def rejection_of(skill: str = SKILL, trigger: str = TRIGGER) -> ManifestRejected:
    found = parse(skill, trigger)
    assert isinstance(found, ManifestRejected), found
    return found


def with_config(lines: str) -> str:
    """The trigger file with more lines of configuration; they begin at line 9."""
    return TRIGGER.replace("---\nNotes", f"{lines.rstrip()}\n---\nNotes")


def test_two_good_files_make_a_manifest() -> None:
    manifest = manifest_of()

    assert manifest.name == "deploy-doctor"
    assert manifest.description == "Looks at failed deployments."
    assert manifest.version == "0.1.0"
    assert manifest.required_tags == ("linux", "gpu")
    assert manifest.model == "small-model"
    assert manifest.instructions == "# Deploy doctor\n\nLook at the failed run and say why it failed."
    assert manifest.runtime is Runtime.AGENT
    assert manifest.command is None
    assert manifest.budget_daily_nanos is None
    assert manifest.budget_monthly_nanos is None
    assert manifest.allow_unsandboxed is False
    assert manifest.triggers == (
        WebhookTrigger("github", ("workflow_run", "issues.opened"), Signature("github-hook"), 300),
    )


def test_every_key_of_the_configuration_is_read() -> None:
    manifest = manifest_of(
        trigger=with_config(
            """\
  - {type: cron, schedule: "0  9 * * MON-FRI", timezone: Europe/Berlin, message: Good morning}
tools: [shell, "http.request"]
credentials: [deploy_key]
integrations: [github]
network:
  allow: [API.github.com, "*.example.com"]
budget:
  daily_dollars: 2.50
  monthly_dollars: 40
gates:
  rules:
    - {tool: "git_*", action: push, condition: "branch == 'main'", behavior: approve}
    - {tool: shell, action: "*", behavior: auto_kill}
  anomaly_rules:
    - {pattern: same_action, threshold_count: 5, threshold_window_s: 60}
  timeout_ms: 60000
  checks:
    - {name: tests, command: make test, timeout_s: 900, repair_attempts: 5}
context: {window: 20, ratio: 0.5, words: [a, b], deep: {on: true, none: null}}
model: big-model
provider: anthropic
allow_unsandboxed: true
"""
        )
    )

    assert manifest.cron_triggers == (CronTrigger("0 9 * * MON-FRI", "Europe/Berlin", "Good morning"),)
    assert manifest.tools == ("shell", "http.request")
    assert manifest.credentials == ("deploy_key",)
    assert manifest.integrations == ("github",)
    assert manifest.network_allow == ("api.github.com", "*.example.com")
    assert manifest.budget_daily_nanos == 2_500_000_000
    assert manifest.budget_monthly_nanos == 40_000_000_000
    assert manifest.gates.rules == (
        GateRule("git_*", "push", Behaviour.APPROVE, "branch == 'main'"),
        GateRule("shell", "*", Behaviour.AUTO_KILL),
    )
    assert manifest.gates.anomaly_rules == (AnomalyRule("same_action", 5, 60),)
    assert manifest.gates.timeout_ms == 60_000
    assert manifest.gates.checks == (Check("tests", "make test", 900, 5),)
    assert manifest.context == {
        "window": 20,
        "ratio": 0.5,
        "words": ["a", "b"],
        "deep": {"on": True, "none": None},
    }
    assert manifest.model == "big-model"
    assert manifest.provider == "anthropic"
    assert manifest.allow_unsandboxed is True


def test_a_gate_waits_an_hour_unless_told_otherwise() -> None:
    assert manifest_of().gates.timeout_ms == 3_600_000


def test_the_configuration_may_stand_under_its_own_key() -> None:
    nested = TRIGGER.replace("triggers:", "x-usezombie:\n triggers:").replace("\n  ", "\n   ")
    assert manifest_of(trigger=nested) == manifest_of()


def test_a_manifest_survives_its_way_through_json() -> None:
    manifest = manifest_of(trigger=with_config("budget: {daily_dollars: 1}\nruntime: agent"))
    plain = to_json(manifest)

    assert orjson.loads(orjson.dumps(plain)) == plain
    assert from_json(plain) == manifest


def test_what_is_no_manifest_cannot_be_read_as_one() -> None:
    with pytest.raises(msgspec.ValidationError):
        from_json({"name": "x"})


@pytest.mark.parametrize(
    "skill",
    [
        SKILL.replace("\n", "\r\n"),
        SKILL.replace("\n", "\r"),
        "\ufeff" + SKILL,
        "\n\n" + SKILL,
        SKILL.replace("---\n", "--- \n"),
    ],
    ids=["CRLF", "CR", "byte order mark", "blank lines before", "blanks after the fence"],
)
def test_the_ways_of_editors_make_no_difference(skill: str) -> None:
    assert manifest_of(skill) == manifest_of()


def test_a_trigger_file_may_be_yaml_as_a_whole() -> None:
    assert manifest_of(trigger=TRIGGER.split("---\n")[1]) == manifest_of()


def test_an_empty_list_may_be_written_as_nothing() -> None:
    assert manifest_of(SKILL.replace("[linux, gpu]", "")).required_tags == ()


def test_a_source_names_its_headers_in_lower_case() -> None:
    text = TRIGGER.replace("source: github", "source: billing").replace(
        "secret_ref: github-hook",
        'secret_ref: hook\n      header: X-Signature\n      prefix: "hmac "\n      ts_header: X-Time',
    )
    assert manifest_of(trigger=text).webhook_triggers[0].signature == Signature(
        "hook", "x-signature", "hmac ", "x-time"
    )


def test_an_empty_prefix_is_no_prefix() -> None:
    text = TRIGGER.replace("source: github", "source: billing").replace(
        "secret_ref: github-hook", 'secret_ref: hook\n      header: X-Signature\n      prefix: ""'
    )
    signature = manifest_of(trigger=text).webhook_triggers[0].signature

    assert signature == Signature("hook", "x-signature", "")


def test_a_native_source_may_name_its_credential_alone() -> None:
    text = TRIGGER.replace(
        "    signature:\n      secret_ref: github-hook", "    credential_name: github-hook"
    )
    assert manifest_of(trigger=text) == manifest_of()


def test_a_source_that_cannot_sign_needs_no_signature() -> None:
    text = TRIGGER.replace("source: github", "source: doorbell").replace(
        "    signature:\n      secret_ref: github-hook\n", ""
    )
    assert manifest_of(trigger=text).webhook_triggers == (
        WebhookTrigger("doorbell", ("workflow_run", "issues.opened")),
    )


def test_a_trigger_is_found_by_its_source() -> None:
    manifest = manifest_of()

    assert manifest.trigger_for("github") is manifest.webhook_triggers[0]
    assert manifest.trigger_for("GitHub") is None


@pytest.mark.parametrize(
    ("written", "nanos"),
    [
        ("0.1", 100_000_000),
        ("0.3", 300_000_000),
        ("999.999999999", 999_999_999_999),
        ("1000", 1_000_000_000_000),
        ("0.000000001", 1),
    ],
)
def test_dollars_become_exact_nanos(written: str, nanos: int) -> None:
    manifest = manifest_of(trigger=with_config(f"budget: {{daily_dollars: {written}}}"))
    assert manifest.budget_daily_nanos == nanos


WRONG_CONFIG = [
    ("trigger: {type: webhook}", "trigger", "triggers"),
    ("colour: red", "colour", "unknown key"),
    ("budget: {daily_dollars: 0}", "budget.daily_dollars", "more than 0"),
    ("budget: {daily_dollars: 1000.000000001}", "budget.daily_dollars", "at most 1000"),
    ("budget: {daily_dollars: -1}", "budget.daily_dollars", "number of dollars"),
    ('budget: {daily_dollars: "5"}', "budget.daily_dollars", "number of dollars"),
    ("budget: {daily_dollars: 1:30}", "budget.daily_dollars", "number of dollars"),
    ("budget: {daily_dollars: .inf}", "budget.daily_dollars", "number of dollars"),
    ("budget: {monthly_dollars: 5}", "budget.daily_dollars", "missing"),
    ("budget:", "budget", "empty"),
    ("budget: 5", "budget", "mapping"),
    ("network: {allow: [https://example.com]}", "network.allow[0]", "does not fit"),
    ("network: {allow: ['*']}", "network.allow[0]", "does not fit"),
    ("network: {allow: [example.com:443]}", "network.allow[0]", "does not fit"),
    ("network: {deny: [example.com]}", "network.deny", "unknown key"),
    ("tools: shell", "tools", "list"),
    ("tools: [no]", "tools[0]", "in quotes"),
    ("tools: [012]", "tools[0]", "in quotes"),
    ("tools: [{a: b}]", "tools[0]", "must be text"),
    ("credentials: ['a b']", "credentials[0]", "does not fit"),
    ("integrations: [GitHub]", "integrations[0]", "does not fit"),
    ("runtime: magic", "runtime", "`agent` or `command`"),
    ("allow_unsandboxed: yes", "allow_unsandboxed", "true"),
    ('allow_unsandboxed: "true"', "allow_unsandboxed", "without quotes"),
    ("context: [a]", "context", "mapping"),
    ("context: {a: off}", "context.a", "two ways"),
    ("context: {a: 012}", "context.a", "two ways"),
    ("context: {a: [{b: 0x1F}]}", "context.a[0].b", "two ways"),
    ("x-usezombie: {tools: [shell]}", "triggers", "move it below"),
    ("provider: ' '", "provider", "does not fit"),
]


@pytest.mark.parametrize(("lines", "key", "says"), WRONG_CONFIG, ids=[lines for lines, _, _ in WRONG_CONFIG])
def test_a_wrong_key_is_named_with_its_line_and_the_way_out(lines: str, key: str, says: str) -> None:
    rejection = rejection_of(trigger=with_config(lines))
    told = next(error for error in rejection.errors if error.key == key)
    assert (told.file, told.code) == ("TRIGGER.md", "UZ-ZMB-008")
    assert told.line == (3 if key == "triggers" else 9)
    assert says in told.message
    assert rejection.code == "UZ-ZMB-008"
    assert rejection.detail.startswith("ERR_ZOMBIE_INVALID_CONFIG: TRIGGER.md line ")

    first = rejection.errors[0]
    assert f"line {first.line}, key `{first.key}`: {first.message}" in rejection.detail


WRONG_GATES = [
    ("{rules: [{tool: a, action: b}]}", "gates.rules[0].behavior", "missing"),
    (
        "{rules: [{tool: a, action: b, behavior: ask}]}",
        "gates.rules[0].behavior",
        "`approve` or `auto_kill`",
    ),
    ("{rules: [{action: b, behavior: approve}]}", "gates.rules[0].tool", "missing"),
    ("{rules: {tool: a}}", "gates.rules", "list"),
    ("{rules: [a]}", "gates.rules[0]", "mapping"),
    ("{timeout_ms: 86400001}", "gates.timeout_ms", "from 1 to 86400000"),
    ("{timeout_ms: 0}", "gates.timeout_ms", "from 1 to 86400000"),
    ("{timeout_ms: 1.5}", "gates.timeout_ms", "whole number"),
    ("{timeout_ms: 010}", "gates.timeout_ms", "whole number"),
    ("{checks: [{name: a, command: b, timeout_s: 901}]}", "gates.checks[0].timeout_s", "900"),
    (
        "{checks: [{name: a, command: b, repair_attempts: 6}]}",
        "gates.checks[0].repair_attempts",
        "from 0 to 5",
    ),
    (
        "{anomaly_rules: [{pattern: odd, threshold_count: 1, threshold_window_s: 1}]}",
        "gates.anomaly_rules[0].pattern",
        "same_action",
    ),
    ("{extra: 1}", "gates.extra", "unknown key"),
    ("[a]", "gates", "mapping"),
]


@pytest.mark.parametrize(("value", "key", "says"), WRONG_GATES, ids=[value for value, _, _ in WRONG_GATES])
def test_wrong_gates_have_a_code_of_their_own(value: str, key: str, says: str) -> None:
    rejection = rejection_of(trigger=with_config(f"gates: {value}"))
    told = next(error for error in rejection.errors if error.key == key)

    assert (told.line, told.code) == (9, "UZ-APPROVAL-001")
    assert says in told.message
    assert rejection.code == "UZ-APPROVAL-001"


def test_an_unreadable_condition_has_a_code_of_its_own() -> None:
    lines = "gates:\n  rules:\n    - {tool: a, action: b, behavior: approve, condition: branch = main}"
    rejection = rejection_of(trigger=with_config(lines))

    assert rejection.code == "UZ-APPROVAL-005"
    assert rejection.errors[0].line == 11
    assert rejection.errors[0].key == "gates.rules[0].condition"


WRONG_CONDITIONS = [
    ("''", "is empty"),
    ("' '", "character 1: expected a field name"),
    ("branch matches '('", "character 16: a pattern that RE2 cannot read: missing ): ("),
    ("branch matches '(?<=a)b'", "character 16: a pattern that RE2 cannot read"),
    (f"branch matches '{'a' * 257}'", "character 16: a pattern of more than 256 characters"),
]


@pytest.mark.parametrize(("condition", "says"), WRONG_CONDITIONS)
def test_an_empty_condition_and_a_bad_pattern_are_unreadable_conditions(condition: str, says: str) -> None:
    written = condition if condition.startswith("'") else f'"{condition}"'
    rule = f"{{tool: a, action: b, behavior: deny, condition: {written}}}"
    rejection = rejection_of(trigger=with_config(f"gates:\n  rules:\n    - {rule}"))
    assert rejection.code == "UZ-APPROVAL-005"

    (error,) = rejection.errors
    assert (error.line, error.key) == (11, "gates.rules[0].condition")
    assert error.message.startswith(says)


def test_the_patterns_of_one_agent_are_bounded_in_number() -> None:
    rule = "    - {tool: a, action: b, behavior: approve, condition: \"x matches 'a' or y matches 'b'\"}"
    assert manifest_of(trigger=with_config("\n".join(["gates:", "  rules:", *[rule] * 4]))).gates.rules

    rejection = rejection_of(trigger=with_config("\n".join(["gates:", "  rules:", *[rule] * 5])))
    assert (rejection.code, rejection.errors[0].key) == ("UZ-APPROVAL-005", "gates.rules")


WRONG_TRIGGER = [
    ("{type: email}", "type", "`webhook` or `cron`"),
    ("{source: x}", "type", "missing"),
    ("a", "", "mapping"),
    ("{type: webhook}", "source", "missing"),
    ("{type: webhook, source: github, signature: {secret_ref: a}}", "source", "second"),
    ("{type: webhook, source: approval}", "source", "another label"),
    ("{type: webhook, source: grant-approval}", "source", "another label"),
    ("{type: webhook, source: a/b}", "source", "does not fit"),
    ("{type: webhook, source: yes}", "source", "in quotes"),
    ("{type: webhook, source: x, signature: {secret_ref: a}}", "signature.header", "missing"),
    ("{type: webhook, source: x, signature: {header: a}}", "signature.secret_ref", "missing"),
    ("{type: webhook, source: x, signature: }", "signature", "empty"),
    ("{type: webhook, source: x, credential_name: a}", "credential_name", "no native source"),
    (
        "{type: webhook, source: slack, credential_name: a, signature: {secret_ref: b}}",
        "signature.secret_ref",
        "leave credential_name out",
    ),
    (
        "{type: webhook, source: slack, credential_name: a, signature: {secret_ref: a}}",
        "signature.secret_ref",
        "leave credential_name out",
    ),
    (
        "{type: webhook, source: x, credential_name: a, signature: {header: b}}",
        "signature.secret_ref",
        "is missing beside credential_name",
    ),
    ("{type: webhook, source: slack, signature: {}}", "signature.secret_ref", "missing"),
    ("{type: webhook, source: svix}", "signature", "always signs"),
    (
        "{type: webhook, source: svix, signature: {secret_ref: a, header: b}}",
        "signature.header",
        "of its own",
    ),
    (
        "{type: webhook, source: linear, signature: {secret_ref: a, ts_header: b}}",
        "signature.ts_header",
        "no time",
    ),
    ("{type: webhook, source: x, events: []}", "events", "1 to 16"),
    ("{type: webhook, source: x, events: }", "events", "1 to 16"),
    (f"{{type: webhook, source: x, events: [{'e' * 65}]}}", "events[0]", "1 to 64"),
    (
        f"{{type: webhook, source: x, events: [{', '.join(f'e{n}' for n in range(17))}]}}",
        "events",
        "has 17",
    ),
    ("{type: webhook, source: x, payload: json}", "payload", "`raw` or `envelope`"),
    ("{type: webhook, source: stripe, payload: raw}", "payload", "leave the key out"),
    ("{type: webhook, source: x, tolerance_seconds: 29}", "tolerance_seconds", "30 to 3600"),
    ("{type: webhook, source: x, schedule: '* * * * *'}", "schedule", "unknown key"),
    ("{type: cron}", "schedule", "missing"),
    ("{type: cron, schedule: '* * * *'}", "schedule", "has 4"),
    ("{type: cron, schedule: '*/5 * * * * *'}", "schedule", "has 6"),
    ("{type: cron, schedule: '60 * * * *'}", "schedule", "Bad minute"),
    ("{type: cron, schedule: '0 0 31 2 *'}", "schedule", "no cron schedule"),
    ("{type: cron, schedule: '@daily'}", "schedule", "has 1"),
    ("{type: cron, schedule: '* * * * *', timezone: Mars/Olympus}", "timezone", "IANA"),
    ("{type: cron, schedule: '* * * * *', timezone: ../../etc/passwd}", "timezone", "IANA"),
    ("{type: cron, schedule: '* * * * *', timezone: America}", "timezone", "IANA"),
]


@pytest.mark.parametrize(
    ("value", "key", "says"), WRONG_TRIGGER, ids=[value for value, _, _ in WRONG_TRIGGER]
)
def test_a_wrong_trigger_is_named_by_its_place(value: str, key: str, says: str) -> None:
    rejection = rejection_of(trigger=with_config(f"  - {value}"))
    path = f"triggers[1].{key}" if key else "triggers[1]"
    told = next(error for error in rejection.errors if error.key == path)

    assert (told.line, told.code) == (9, "UZ-ZMB-008")
    assert says in told.message


def test_an_agent_has_at_most_eight_triggers() -> None:
    seven = "\n".join(f"  - {{type: cron, schedule: '{n} * * * *'}}" for n in range(7))
    assert len(manifest_of(trigger=with_config(seven)).triggers) == 8

    rejection = rejection_of(trigger=with_config(seven + "\n  - {type: cron, schedule: '9 * * * *'}"))
    assert "1 to 8 entries, has 9" in rejection.detail


def test_an_agent_has_at_least_one_trigger() -> None:
    assert "triggers" in rejection_of(trigger="---\nname: deploy-doctor\n---\n").detail
    assert "has 0" in rejection_of(trigger="---\nname: deploy-doctor\ntriggers: []\n---\n").detail


def test_the_same_schedule_twice_is_refused_and_in_another_time_zone_is_not() -> None:
    first = "  - {type: cron, schedule: '0 9 * * *'}\n"
    again = first + "  - {type: cron, schedule: '0  9 * * *', timezone: UTC}"
    assert "second schedule (the first: triggers[1])" in rejection_of(trigger=with_config(again)).detail

    elsewhere = first + "  - {type: cron, schedule: '0 9 * * *', timezone: Asia/Tokyo}"
    assert len(manifest_of(trigger=with_config(elsewhere)).cron_triggers) == 2


def test_the_two_multi_signature_sources_share_one_address_and_each_is_there_once() -> None:
    lines = (
        "  - {type: webhook, source: svix, signature: {secret_ref: a}}\n"
        "  - {type: webhook, source: standard-webhooks, signature: {secret_ref: b}}"
    )
    sources = [trigger.source for trigger in manifest_of(trigger=with_config(lines)).webhook_triggers]
    assert sources[1:] == ["svix", "standard-webhooks"]

    again = lines + "\n  - {type: webhook, source: svix, signature: {secret_ref: c}}"
    rejection = rejection_of(trigger=with_config(again))
    assert rejection.errors[0].key == "triggers[3].source"


def test_a_singular_trigger_is_refused_once_and_by_name() -> None:
    text = "---\nname: deploy-doctor\ntrigger:\n  type: webhook\n  source: github\n---\n"
    rejection = rejection_of(trigger=text)

    assert [error.key for error in rejection.errors] == ["trigger"]
    assert rejection.detail.startswith("ERR_ZOMBIE_INVALID_CONFIG: TRIGGER.md line 3, key `trigger`")


def test_two_names_are_refused_under_their_own_code() -> None:
    rejection = rejection_of(trigger=TRIGGER.replace("deploy-doctor", "other"))

    assert rejection.code == "UZ-ZMB-011"
    assert (rejection.errors[0].file, rejection.errors[0].line) == ("TRIGGER.md", 2)


WRONG_TAGS = [
    (f"[{'t' * 65}]", "1 to 64"),
    ("['']", "1 to 64"),
    (f"[{', '.join(f't{n}' for n in range(33))}]", "has 33"),
    ("linux", "list"),
    ("[no]", "in quotes"),
    ("[012]", "in quotes"),
    ("[[a]]", "text"),
]


@pytest.mark.parametrize(("tags", "says"), WRONG_TAGS, ids=[tags[:20] for tags, _ in WRONG_TAGS])
def test_tags_out_of_bounds_are_an_invalid_request(tags: str, says: str) -> None:
    rejection = rejection_of(SKILL.replace("[linux, gpu]", tags))

    assert rejection.code == "UZ-REQ-001"
    assert says in rejection.detail
    assert (rejection.errors[0].file, rejection.errors[0].line) == ("SKILL.md", 5)


def test_tags_at_their_bounds_are_taken() -> None:
    tags = [f"{n:064}t"[-64:] for n in range(32)]
    skill = SKILL.replace("[linux, gpu]", orjson.dumps(tags).decode())

    assert manifest_of(skill).required_tags == tuple(tags)


def test_a_tag_that_stands_twice_counts_once() -> None:
    assert manifest_of(SKILL.replace("[linux, gpu]", "[a, b, a]")).required_tags == ("a", "b")


WRONG_SKILL = [
    ("name: deploy-doctor", "name: Deploy Doctor", "name"),
    ("name: deploy-doctor", "name: -x", "name"),
    ("name: deploy-doctor", f"name: {'x' * 65}", "name"),
    ("name: deploy-doctor", "title: x", "name"),
    ("version: 0.1.0", "version: 0.1", "version"),
    ("version: 0.1.0", "version: v1.0.0", "version"),
    ("version: 0.1.0", "version: 01.0.0", "version"),
    ("version: 0.1.0", "version: 1.0.0-rc1", "version"),
    ("description: Looks at failed deployments.", "description:", "description"),
    ("description: Looks at failed deployments.", "description: 42", "description"),
    ("model: small-model", "model: [a]", "model"),
]


@pytest.mark.parametrize(("good", "bad", "key"), WRONG_SKILL, ids=[bad[:30] for _, bad, _ in WRONG_SKILL])
def test_a_wrong_skill_file_is_told_by_line_and_key(good: str, bad: str, key: str) -> None:
    rejection = rejection_of(SKILL.replace(good, bad))

    assert (rejection.code, rejection.errors[0].file) == ("UZ-ZMB-008", "SKILL.md")
    assert rejection.errors[0].key == key


@pytest.mark.parametrize("text", ["", "x" * 65_537, "é" * 32_769, "\ud800", "a\0b"])
def test_a_file_of_the_wrong_size_or_characters_is_an_invalid_request(text: str) -> None:
    assert rejection_of(text).code == "UZ-REQ-001"
    assert "/source_markdown" in rejection_of(text).detail
    assert "/trigger_markdown" in rejection_of(trigger=text).detail


def test_a_file_may_have_exactly_64_kib() -> None:
    padded = SKILL + "x" * (65_536 - len(SKILL))
    assert len(manifest_of(padded).instructions) > 65_000


@pytest.mark.parametrize("text", ["x", "# Title\n", "---\nname: x\n", "\ufeff", "- a\n", "---\n---\n"])
def test_a_skill_file_without_front_matter_is_refused(text: str) -> None:
    assert rejection_of(text).code == "UZ-ZMB-008"


def test_problems_of_both_files_are_told_together_and_the_first_one_leads() -> None:
    rejection = rejection_of(SKILL.replace("0.1.0", "one"), TRIGGER.replace("type: webhook", "type: letter"))

    assert [(error.file, error.key) for error in rejection.errors] == [
        ("SKILL.md", "version"),
        ("TRIGGER.md", "triggers[0].type"),
    ]
    assert "SKILL.md line 4" in rejection.detail


def test_an_unreadable_skill_file_hides_no_problem_of_the_trigger_file() -> None:
    rejection = rejection_of("---\n[\n---\n", with_config("colour: red"))
    assert [(error.file, error.key) for error in rejection.errors] == [
        ("SKILL.md", ""),
        ("TRIGGER.md", "colour"),
    ]


def test_the_list_of_problems_is_bounded() -> None:
    rejection = rejection_of(trigger=with_config("\n".join(f"k{n}: 1" for n in range(500))))
    assert len(rejection.errors) == 32
