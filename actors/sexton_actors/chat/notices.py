"""The words of an approval request in a chat, with its buttons and after its decision."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from sexton_actors.chat.texts import MAX_TEXT_CHARS, bounded, code, message_of, plain, section
from sexton_actors.ports.chat import Notice
from sexton_actors.webhooks.slack_actions import APPROVE, DENY
from sexton_storage.records.gates import Gate, GateStatus

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
        return message_of("This approval request is gone: its agent was deleted.")
    asked = (
        f"*{plain(gate.zombie_name)}* asks for approval: `{code(gate.tool_name)} {code(gate.action_name)}`"
    )
    if gate.status is not GateStatus.PENDING:
        return message_of(f"{asked}\n{_outcome(gate)}")
    text = bounded("\n".join([asked, *_facts(gate)]), MAX_TEXT_CHARS)
    return Notice(bounded(asked, MAX_TEXT_CHARS), (section(text), _buttons(gate)))


def _facts(gate: Gate) -> list[str]:
    lines = [plain(bounded(gate.proposed_action, 1_000))] if gate.proposed_action else []
    if gate.blast_radius:
        lines.append(f"_Reach:_ {plain(bounded(gate.blast_radius, 300))}")
    lines += _event(gate)
    if gate.evidence:
        evidence = bounded(msgspec.json.encode(gate.evidence).decode(), MAX_EVIDENCE_CHARS)
        lines.append(f"```{code(evidence)}```")
    until = gate.timeout_at // 1000
    lines.append(f"Denied by itself <!date^{until}^{{date_short_pretty}} {{time}}|at its time-out>.")
    return lines


def _event(gate: Gate) -> list[str]:
    """Say who sent a waiting event, what it says, and where it can be looked at."""
    if gate.lease_id is not None:
        return []
    sender, message, url = (str(gate.evidence.get(name) or "") for name in ("sender", "message", "url"))
    # A link is written between these signs, so one that holds them is shown as text.
    link = f"<{plain(url)}|Look at it>" if _LINK.fullmatch(url) else plain(bounded(url, 300))
    lines = [f"_From:_ {plain(sender)}"] if sender else []
    if message:
        lines.append(f">{plain(bounded(' '.join(message.split()), 600))}")
    return [*lines, link] if url else lines


def _outcome(gate: Gate) -> str:
    outcome = _OUTCOMES.get(gate.status, str(gate.status))
    who = gate.resolved_by or ""
    by = f" by <@{who.removeprefix('slack:')}>" if who.startswith("slack:") else f" by {plain(who)}"
    reason = f"\n>{plain(bounded(gate.detail, 500))}" if gate.detail else ""
    return f"*{outcome}*{by if who else ''}.{reason}"


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
