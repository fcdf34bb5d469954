"""Reads the gates of a trigger file."""

import re

from sexton_actors.gates.conditions import MAX_CONDITION_CHARS, Unreadable, parse_condition
from sexton_actors.gates.model import (
    DEFAULT_CHECK_TIMEOUT_S,
    DEFAULT_GATE_TIMEOUT_MS,
    MAX_ANOMALY_RULES,
    MAX_CHECK_TIMEOUT_S,
    MAX_CHECKS,
    MAX_COMMAND_CHARS,
    MAX_GATE_RULES,
    MAX_GATE_TIMEOUT_MS,
    MAX_GLOB_CHARS,
    MAX_REPAIR_ATTEMPTS,
    MAX_THRESHOLD_COUNT,
    MAX_THRESHOLD_WINDOW_S,
    AnomalyRule,
    Behaviour,
    Check,
    GateRule,
    Gates,
)
from sexton_actors.manifest.fields import Fields
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
    return Gates(
        rules=tuple(_rule(rule) for rule in fields.tables("rules", most=MAX_GATE_RULES)),
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
    text = fields.optional_text("condition", most=MAX_CONDITION_CHARS)
    condition = parse_condition(text) if text is not None else None
    if isinstance(condition, Unreadable):
        message = f"character {condition.at}: {condition.message}; a condition reads like: branch == 'main'"
        fields.wrong("condition", message, code=INVALID_CONDITION)
        return None
    return text


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
