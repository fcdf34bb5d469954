"""The words of an approval request in a chat, with its buttons and after its decision."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from sexton_actors.ports.chat import Notice
from sexton_actors.webhooks.slack_actions import APPROVE, DENY
from sexton_storage.records.gates import Gate, GateStatus

MAX_TEXT_CHARS = 2_900
"""Slack takes 3,000 in one section."""
MAX_EVIDENCE_CHARS = 1_200
_LINK = re.compile(r"https?://[!-;=?-{}~]{1,500}")

_OUTCOMES = {
    GateStatus.APPROVED: "Approved",
    GateStatus.DENIED: "Denied",
    GateStatus.TIMED_OUT: "Timed out, and so denied",
    GateStatus.AUTO_KILLED: "Stopped by the platform",
}


def notice_of(gate: Gate | None) -> Notice:
    """The request with its buttons while it waits, else its outcome; None: the agent was deleted."""
    if gate is None:
        return _closed("This approval request is gone: its agent was deleted.")
    asked = (
        f"*{_plain(gate.zombie_name)}* asks for approval: `{_code(gate.tool_name)} {_code(gate.action_name)}`"
    )
    if gate.status is not GateStatus.PENDING:
        return _closed(f"{asked}\n{_outcome(gate)}")
    text = _bounded("\n".join([asked, *_facts(gate)]), MAX_TEXT_CHARS)
    return Notice(_bounded(asked, MAX_TEXT_CHARS), (_section(text), _buttons(gate)))


def _facts(gate: Gate) -> list[str]:
    lines = [_plain(_bounded(gate.proposed_action, 1_000))] if gate.proposed_action else []
    if gate.blast_radius:
        lines.append(f"_Reach:_ {_plain(_bounded(gate.blast_radius, 300))}")
    lines += _event(gate)
    if gate.evidence:
        evidence = _bounded(msgspec.json.encode(gate.evidence).decode(), MAX_EVIDENCE_CHARS)
        lines.append(f"```{_code(evidence)}```")
    until = gate.timeout_at // 1000
    lines.append(f"Denied by itself <!date^{until}^{{date_short_pretty}} {{time}}|at its time-out>.")
    return lines


def _event(gate: Gate) -> list[str]:
    """Say who sent a waiting event, what it says, and where it can be looked at."""
    if gate.lease_id is not None:
        return []
    sender, message, url = (str(gate.evidence.get(name) or "") for name in ("sender", "message", "url"))
    # A link is written between these signs, so one that holds them is shown as text.
    link = f"<{_plain(url)}|Look at it>" if _LINK.fullmatch(url) else _plain(_bounded(url, 300))
    lines = [f"_From:_ {_plain(sender)}"] if sender else []
    if message:
        lines.append(f">{_plain(_bounded(' '.join(message.split()), 600))}")
    return [*lines, link] if url else lines


def _outcome(gate: Gate) -> str:
    outcome = _OUTCOMES.get(gate.status, str(gate.status))
    who = gate.resolved_by or ""
    by = f" by <@{who.removeprefix('slack:')}>" if who.startswith("slack:") else f" by {_plain(who)}"
    reason = f"\n>{_plain(_bounded(gate.detail, 500))}" if gate.detail else ""
    return f"*{outcome}*{by if who else ''}.{reason}"


def _closed(text: str) -> Notice:
    bounded = _bounded(text, MAX_TEXT_CHARS)
    return Notice(bounded, (_section(bounded),))


def _section(text: str) -> Mapping[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def _buttons(gate: Gate) -> Mapping[str, Any]:
    return {
        "type": "actions",
        "block_id": str(gate.id),
        "elements": [
            _button("Approve", APPROVE, gate, "primary"),
            _button("Deny", DENY, gate, "danger"),
        ],
    }


def _button(label: str, verb: str, gate: Gate, style: str) -> Mapping[str, Any]:
    return {
        "type": "button",
        "action_id": verb,
        "style": style,
        "text": {"type": "plain_text", "text": label},
        "value": f"{verb}:{gate.id}",
    }


def _plain(text: str) -> str:
    """Nothing in it is a command to the platform.

    >>> _plain("<!channel> & <@U1>")
    '&lt;!channel&gt; &amp; &lt;@U1&gt;'
    """
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _code(text: str) -> str:
    return _plain(text).replace("`", "'")


def _bounded(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
