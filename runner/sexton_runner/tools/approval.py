"""The tool by which an agent asks a person before it does something."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sexton_runner.tools.arguments import an_object
from sexton_runner.tools.base import ToolResult

MAX_ACTION_CHARS = 128
MAX_TEXT_CHARS = 1_024
NAME = "request_approval"


@dataclass(frozen=True, slots=True)
class RequestApproval:
    """``request_approval``. The question itself is asked by the toolbox, as for every call that needs one."""

    name: str = NAME
    parallel_safe: bool = False
    description: str = (
        "Ask a person to approve what you are about to do, and wait. Say what it is, what you found, and "
        "what it can affect. Do not do it when the answer is not an approval."
    )

    @property
    def input_schema(self) -> Mapping[str, Any]:
        """Give the shape of the arguments."""
        text = {"type": "string", "maxLength": MAX_TEXT_CHARS}
        return an_object(
            ["action", "summary"],
            action={"type": "string", "minLength": 1, "maxLength": MAX_ACTION_CHARS},
            summary={**text, "minLength": 1},
            evidence={"type": "object"},
            blast_radius=text,
            kind={"type": "string", "maxLength": MAX_ACTION_CHARS},
        )

    async def call(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Say that it was approved: who was refused does not come here."""
        return ToolResult("approved", facts={"action": arguments["action"]})
