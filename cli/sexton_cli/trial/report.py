"""Tells a person what a trial does and what came of it, and gives the exit status of its end."""

import sys
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import orjson
import trio

from sexton_cli.caller import Caller, ask_line
from sexton_cli.demo.client import StreamFrame
from sexton_cli.exits import CONFIG, FAILED, OK, UNAVAILABLE
from sexton_cli.output import Column, Output, dollars, span
from sexton_cli.streams import spell_connection
from sexton_cli.trial.order import Approval
from sexton_cli.trial.session import Trial

STATUSES: Final[Mapping[str, int]] = {
    "startup_posture": UNAVAILABLE,
    "sandbox": UNAVAILABLE,
    "runner_lost": UNAVAILABLE,
    "session_create": UNAVAILABLE,
    "invalid_config": CONFIG,
    "secret_missing": CONFIG,
    "agent_init": CONFIG,
}
"""By failure label; any other is a run that failed."""
COLUMNS: Final = (
    Column("slice_seq", "SLICE"),
    Column("ran", "RUN TIME"),
    Column("fee", "RUN FEE"),
    Column("tokens", "TOKENS"),
    Column("charged", "CHARGED"),
)
FILES: Final = (
    Column("name", "FILE", elastic=True),
    Column("size", "BYTES"),
    Column("media_type", "TYPE", spare=True),
)


def status_of(event: Mapping[str, Any]) -> int:
    """The exit status for an event that has ended.

    >>> status_of({"status": "processed"}), status_of({"status": "agent_error", "failure_label": "sandbox"})
    (0, 69)
    """
    if event.get("status") == "processed":
        return OK
    return STATUSES.get(str(event.get("failure_label")), FAILED)


class Teller:
    """What is said while the agent works: its words on standard output, all else beside them."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._said = False

    def show(self, frame: StreamFrame) -> None:
        """Tell of one frame."""
        if self._output.as_json:
            return
        if frame.kind == "chunk":
            self._output.piece(str(frame.data.get("text", "")))
            self._said = True
        elif told := _line(frame.kind, frame.data):
            self._output.note(told)

    def close(self, trial: Trial) -> None:
        """Tell how it ended: the answer where it was not streamed, the evidence, the bill."""
        event = trial.event
        if self._output.as_json:
            self._output.document(
                {"event": event, "bill": trial.bill, "frames": trial.frames, "files": trial.files}
            )
            return
        self._output.piece("\n" if self._said else f"{event.get('response_text') or ''}\n")
        if event.get("evidence"):
            self._output.say("Evidence:")
            self._output.piece(orjson.dumps(event["evidence"], option=orjson.OPT_INDENT_2).decode() + "\n")
        if trial.files:
            self._output.say("Files:")
            self._output.table(FILES, trial.files)
        self._output.say("Bill:")
        self._output.table(COLUMNS, [_charge(row) for row in trial.bill])
        label = event.get("failure_label")
        ended = f"{event.get('status')} ({label})" if label else event.get("status")
        total = sum(int(row["charged_nanos"]) for row in trial.bill)
        self._output.facts({"ended": ended, "charged": dollars(total)})


def _line(kind: str, data: Mapping[str, Any]) -> str | None:
    match kind:
        case "event_leased":
            return f"… attempt {data.get('attempt', 1)} begins"
        case "tool_call_started":
            arguments = data.get("args_redacted")
            shown = f" {orjson.dumps(arguments).decode()}" if arguments else ""
            return f"… {data.get('name')}{shown}"
        case "tool_call_completed" if not data.get("ok", True):
            return f"… {data.get('name')} failed after {data.get('ms')} ms"
        case "gate_resolved":
            return f"… approval {data.get('gate_id')}: {data.get('status')}"
        case "connection":
            return f"… {spell_connection(data)}"
        case "lease_reclaimed":
            return "… its runner was lost; the event goes back to the queue"
        case "chunk" | "tool_call_progress" | "tool_call_completed" | "gate_pending":
            return None
        case "event_received" | "event_complete":
            return None
        case _:
            facts = {name: value for name, value in data.items() if name not in _ALWAYS}
            return f"… {kind} {orjson.dumps(facts).decode()}"


_ALWAYS: Final = frozenset({"kind", "event_id", "zombie_id", "at_ms"})


def _charge(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "slice_seq": row["slice_seq"],
        "ran": span(row["run_ms"]),
        "fee": dollars(row["run_fee_nanos"]),
        "tokens": dollars(row["token_cost_nanos"]),
        "charged": dollars(row["charged_nanos"]),
    }


class Decider:
    """Answers gates as the command line says, or has the person at the terminal answer, one at a time."""

    def __init__(self, caller: Caller, approval: Approval) -> None:
        self._caller, self._approval = caller, approval
        self._turn = trio.Lock()

    async def decide(self, gate: Mapping[str, Any]) -> tuple[bool, str]:
        """Whether it is approved, and the reason that the agent is given."""
        async with self._turn:
            self._caller.output.note(_question(gate))
            if self._approval is not Approval.ASK:
                approved = self._approval is Approval.APPROVE
                return approved, f"By --{self._approval.value}."
            if not self._caller.interactive:
                self._caller.output.note("Denied: there is nobody to ask. Give --approve or --deny.")
                return False, "There was nobody to ask."
            asking = partial(ask_line, sys.stdin, "Approve? (yes/no) ")
            said = await trio.to_thread.run_sync(asking, abandon_on_cancel=True)
            return (said or "").lower() in {"y", "yes"}, "By the person who tries the agent."


def _question(gate: Mapping[str, Any]) -> str:
    asked = gate.get("proposed_action") or "the agent asks for approval"
    place = " ".join(str(gate[name]) for name in ("tool_name", "action_name") if gate.get(name))
    reach = f", reaches {gate['blast_radius']}" if gate.get("blast_radius") else ""
    return f"? {asked} [{place}{reach}] {orjson.dumps(gate.get('evidence') or {}).decode()}"
