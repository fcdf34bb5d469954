"""Which rule, if any, stands between an agent and what it wants to do."""

from collections.abc import Mapping

from sexton_actors.gate_rules.conditions import Unreadable, holds, parse_condition
from sexton_actors.gate_rules.model import Behaviour, GateRule, Gates


def match_rules(gates: Gates, tool: str, action: str, fields: Mapping[str, object]) -> Behaviour | None:
    """The behaviour of the first rule of the file that matches; None: nothing stands in the way.

    For an event, before its lease: ``tool`` is the event type, ``action`` the actor, ``fields`` the
    payload's top level. For a tool call: the tool's name, its action, and the call's arguments.

    >>> gates = Gates(rules=(GateRule("git_*", "push", Behaviour.APPROVE, "branch == 'main'"),))
    >>> match_rules(gates, "git_cli", "push", {"branch": "main"})
    <Behaviour.APPROVE: 'approve'>
    >>> match_rules(gates, "git_cli", "push", {"branch": "topic"}) is None
    True
    """
    for rule in gates.rules:
        if _matches(rule, tool, action, fields):
            return rule.behavior
    return None


def glob_matches(pattern: str, text: str) -> bool:
    """Match the whole of ``text``, case included; only ``*`` is special, for any run of characters.

    Takes time in the length of the text times the pieces of the pattern at worst, never more: each piece is
    looked for once, from the left.

    >>> glob_matches("webhook:*", "webhook:github"), glob_matches("push", "push.tag")
    (True, False)
    """
    first, *middle_and_last = pattern.split("*")
    if not middle_and_last:
        return first == text
    *middle, last = middle_and_last
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    position, end = len(first), len(text) - len(last)
    for piece in middle:
        found = text.find(piece, position, end)
        if found < 0:
            return False
        position = found + len(piece)
    return True


def _matches(rule: GateRule, tool: str, action: str, fields: Mapping[str, object]) -> bool:
    if not glob_matches(rule.tool, tool) or not glob_matches(rule.action, action):
        return False
    if rule.condition is None:
        return True
    condition = parse_condition(rule.condition)
    # A manifest with an unreadable condition is never installed. Should one be met, the gate stands.
    return isinstance(condition, Unreadable) or holds(condition, fields)
