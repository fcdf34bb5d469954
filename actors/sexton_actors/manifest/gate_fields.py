"""Reads the gates of a trigger file."""

import re

from sexton_actors.gate_rules.conditions import MAX_CONDITION_CHARS, Unreadable, parse_condition, patterns_in
from sexton_actors.gate_rules.model import (
    DEFAULT_CHECK_TIMEOUT_S,
    DEFAULT_GATE_TIMEOUT_MS,
    MAX_ANOMALY_RULES,
    MAX_CHECK_TIMEOUT_S,
    MAX_CHECKS,
    MAX_COMMAND_CHARS,
    MAX_GATE_RULES,
    MAX_GATE_TIMEOUT_MS,
    MAX_GLOB_CHARS,
    MAX_PATTERNS,
    MAX_REPAIR_ATTEMPTS,
    MAX_THRESHOLD_COUNT,
    MAX_THRESHOLD_WINDOW_S,
    AnomalyRule,
    Behaviour,
    Check,
    GateRule,
    Gates,
)
from sexton_actors.manifest.fields import Fields, is_empty
from sexton_actors.manifest.nodes import Node, Scalar
from sexton_actors.manifest.problems import INVALID_CONDITION

_GATES = frozenset({"rules", "anomaly_rules", "timeout_ms", "checks"})
_RULE = frozenset({"tool", "action", "condition", "behavior"})
_ANOMALY = frozenset({"pattern", "threshold_count", "threshold_window_s"})
_CHECK = frozenset({"name", "command", "timeout_s", "repair_attempts"})
_PATTERN = re.compile("same_action")
_CHECK_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9_.-]*")


def read_gates(fields: Fields | None) -> Gates:
    if fields is None:
        return Gates()
    fields.only(_GATES)
    rules = tuple(_rule(rule) for rule in fields.tables("rules", most=MAX_GATE_RULES))
    if sum(_patterns(rule) for rule in rules) > MAX_PATTERNS:
        message = f"has more than {MAX_PATTERNS} patterns in its conditions; put some together with `|`"
        fields.wrong("rules", message, code=INVALID_CONDITION)
    return Gates(
        rules=rules,
        anomaly_rules=tuple(
            _anomaly(rule) for rule in fields.tables("anomaly_rules", most=MAX_ANOMALY_RULES)
        ),
        timeout_ms=fields.integer(
            "timeout_ms", least=1, most=MAX_GATE_TIMEOUT_MS, default=DEFAULT_GATE_TIMEOUT_MS
        ),
        checks=tuple(_check(check) for check in fields.tables("checks", most=MAX_CHECKS)),
    )


def _rule(fields: Fields) -> GateRule:
    fields.only(_RULE)
    return GateRule(
        tool=fields.text("tool", most=MAX_GLOB_CHARS),
        action=fields.text("action", most=MAX_GLOB_CHARS),
        behavior=fields.choice("behavior", Behaviour, Behaviour.APPROVE, required=True),
        condition=_condition(fields),
    )


def _condition(fields: Fields) -> str | None:
    if _is_blank(fields.node("condition")):
        message = "is empty; leave the key out if the rule always holds"
        fields.wrong("condition", message, code=INVALID_CONDITION)
        return None
    text = fields.optional_text("condition", most=MAX_CONDITION_CHARS)
    condition = parse_condition(text) if text is not None else None
    if isinstance(condition, Unreadable):
        message = f"character {condition.at}: {condition.message}; a condition reads like: branch == 'main'"
        fields.wrong("condition", message, code=INVALID_CONDITION)
        return None
    return text


def _is_blank(node: Node | None) -> bool:
    return isinstance(node, Scalar) and not node.text and not is_empty(node)


def _patterns(rule: GateRule) -> int:
    condition = parse_condition(rule.condition) if rule.condition is not None else None
    return 0 if condition is None or isinstance(condition, Unreadable) else patterns_in(condition)


def _anomaly(fields: Fields) -> AnomalyRule:
    fields.only(_ANOMALY)
    return AnomalyRule(
        pattern=fields.text("pattern", most=64, pattern=_PATTERN),
        threshold_count=fields.integer("threshold_count", least=1, most=MAX_THRESHOLD_COUNT),
        threshold_window_s=fields.integer("threshold_window_s", least=1, most=MAX_THRESHOLD_WINDOW_S),
    )


def _check(fields: Fields) -> Check:
    fields.only(_CHECK)
    return Check(
        name=fields.text("name", most=64, pattern=_CHECK_NAME),
        command=fields.text("command", most=MAX_COMMAND_CHARS),
        timeout_s=fields.integer(
            "timeout_s", least=1, most=MAX_CHECK_TIMEOUT_S, default=DEFAULT_CHECK_TIMEOUT_S
        ),
        repair_attempts=fields.integer("repair_attempts", least=0, most=MAX_REPAIR_ATTEMPTS, default=0),
    )
