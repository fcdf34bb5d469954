"""Asks a person to approve a call, where a rule or the model itself requires it."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import orjson

from sexton_runner.anomalies import KIND, Occurrences
from sexton_runner.command_protocol import Ask
from sexton_runner.gates import BY_DENY_RULE, MAX_GATE_EVIDENCE_BYTES, Asking, Decision
from sexton_runner.rules import DENY, Rule, behaviour, glob_matches
from sexton_runner.tools import approval
from sexton_runner.tools.truncation import shown

MAX_SUMMARY_CHARS = 1_024
RUN = "run"


def action_of(tool: str, arguments: Mapping[str, Any]) -> str:
    """Name what a call does, for the rules to match.

    ``METHOD host`` of a request, the service of an integration, the action of an approval, else ``run``.

    >>> action_of("http_request", {"url": "https://api.example.org/x", "method": "POST"})
    'POST api.example.org'
    >>> action_of("shell", {"command": "ls"})
    'run'
    """
    match tool:
        case "http_request":
            try:
                host = urlsplit(str(arguments.get("url", ""))).hostname or ""
            except ValueError:
                host = ""
            return f"{arguments.get('method', 'GET')} {host}"[: approval.MAX_ACTION_CHARS]
        case "request_integration":
            return str(arguments.get("service", RUN))
        case approval.NAME:
            return str(arguments.get("action", RUN))
        case _:
            return RUN


def may_be_gated(rules: Sequence[Rule], tool: str) -> bool:
    """Tell whether a call of this tool could need a person."""
    return tool == approval.NAME or any(glob_matches(rule.tool, tool) for rule in rules)


async def decide(
    asking: Asking,
    rules: Sequence[Rule],
    seen: Occurrences,
    tool: str,
    arguments: Mapping[str, Any],
    *,
    call_id: str,
) -> Decision | None:
    """Wait for a person where one is to be asked; None where nobody is. What ``asking`` raises passes.

    What is done too often is brought before the control plane, too, which then asks nobody. What a rule
    refuses is refused here, by what the call really holds: nobody could say otherwise.
    """
    action = action_of(tool, arguments)
    if tool == approval.NAME:
        ask = Ask(
            ask_id="",
            action=action,
            tool=tool,
            kind=str(arguments.get("kind", "")),
            summary=str(arguments["summary"]),
            blast_radius=str(arguments.get("blast_radius", "")),
        )
        return await asking.decide(ask, _evidence(arguments.get("evidence", {})), call_id)
    odd = seen.count(tool, action)
    rule = behaviour(rules, tool, action, arguments)
    if not odd and rule is None:
        return None
    if not odd and rule == DENY:
        return Decision("denied", by=BY_DENY_RULE)
    summary = f"Call {tool} with {orjson.dumps(shown(dict(arguments))).decode()}"[:MAX_SUMMARY_CHARS]
    ask = Ask(
        ask_id="",
        action=action,
        tool=tool,
        kind=KIND if odd else "tool_call",
        summary=summary,
        blast_radius="",
    )
    return await asking.decide(ask, _evidence(arguments), call_id)


def _evidence(value: Mapping[str, Any]) -> bytes:
    """Spell what the approver sees and the control plane's rules read: the call's fields at the top level."""
    text = orjson.dumps(dict(value))
    most = MAX_SUMMARY_CHARS
    while len(text) > MAX_GATE_EVIDENCE_BYTES and most > 1:
        text = orjson.dumps(shown(dict(value), most))
        most //= 4
    return text if len(text) <= MAX_GATE_EVIDENCE_BYTES else b"{}"
