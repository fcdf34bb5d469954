"""The tool that has the agent woken again later."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from sexton_runner.client import ControlPlane
from sexton_runner.errors import Refused, TokenRejected
from sexton_runner.redact import Redactor
from sexton_runner.tools.arguments import an_object
from sexton_runner.tools.base import ToolResult
from sexton_runner.wire import Lease

MAX_MESSAGE_BYTES = 8_192
MIN_DELAY_S = 60
MAX_DELAY_S = 2_592_000


@dataclass(frozen=True, slots=True)
class ScheduleFollowUp:
    """``schedule_follow_up``: the same arguments in an event are one follow-up, however often asked."""

    plane: ControlPlane
    lease: Lease
    redactor: Redactor
    name: str = "schedule_follow_up"
    parallel_safe: bool = False
    description: str = (
        "Be woken once more later, with this message, as an event of its own. Name the time as delay_s (60 "
        "to 2592000 seconds from now) or as at (Unix milliseconds), not both."
    )

    @property
    def input_schema(self) -> Mapping[str, Any]:
        """Give the shape of the arguments."""
        return an_object(
            ["message"],
            message={"type": "string", "minLength": 1, "maxLength": MAX_MESSAGE_BYTES},
            delay_s={"type": "integer", "minimum": MIN_DELAY_S, "maximum": MAX_DELAY_S},
            at={"type": "integer", "minimum": 0},
        )

    async def call(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Ask for it, without any secret that may stand in the message."""
        wanted = self.redactor.json(dict(arguments))
        name = hashlib.sha256(orjson.dumps(wanted, option=orjson.OPT_SORT_KEYS)).hexdigest()
        try:
            made = await self.plane.schedule_follow_up(self.lease.lease_id, {"call_id": name, **wanted})
        except TokenRejected:
            raise
        except Refused as refusal:
            facts = {"code": refusal.code}
            return ToolResult(f"not scheduled: {refusal.code}: {refusal.detail}", ok=False, facts=facts)
        scheduled = {"follow_up_id": made.follow_up_id, "at": made.at}
        return ToolResult(f"scheduled for {made.at} (Unix milliseconds)", facts=scheduled)
