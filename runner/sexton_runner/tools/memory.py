"""The tools that keep what an agent has learnt, and look it up."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sexton_runner.client import ControlPlane
from sexton_runner.errors import Refused, TokenRejected
from sexton_runner.redact import Redactor
from sexton_runner.tools.arguments import an_object
from sexton_runner.tools.base import ToolResult
from sexton_runner.tools.truncation import clipped
from sexton_runner.wire import Lease

MAX_KEY_CHARS = 255
MAX_CONTENT_CHARS = 16_384
MAX_CATEGORY_CHARS = 64
MAX_QUERY_CHARS = 1_024
MAX_RECALLED = 50
DEFAULT_RECALLED = 10


@dataclass(frozen=True, slots=True)
class MemoryStore:
    """``memory_store``: keeps at once, and under the same key again if the run starts over."""

    plane: ControlPlane
    lease: Lease
    redactor: Redactor
    name: str = "memory_store"
    parallel_safe: bool = False
    description: str = (
        "Remember something for later events. The same key replaces what was there. Category core is never "
        "forgotten, daily for three days; others make room for newer ones."
    )

    @property
    def input_schema(self) -> Mapping[str, Any]:
        """Give the shape of the arguments."""
        return an_object(
            ["key", "content"],
            key={"type": "string", "minLength": 1, "maxLength": MAX_KEY_CHARS},
            content={"type": "string", "minLength": 1, "maxLength": MAX_CONTENT_CHARS},
            category={"type": "string", "minLength": 1, "maxLength": MAX_CATEGORY_CHARS},
        )

    async def call(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Keep it, without any secret that may stand in it."""
        entry = self.redactor.json(dict(arguments))
        facts = {"key": entry["key"]}
        try:
            await self.plane.remember(self.lease, entry)
        except TokenRejected:
            raise
        except Refused as refusal:
            return ToolResult(f"not kept: {refusal.code}: {refusal.detail}", ok=False, facts=facts)
        return ToolResult("kept", facts=facts)


@dataclass(frozen=True, slots=True)
class MemoryRecall:
    """``memory_recall``."""

    plane: ControlPlane
    lease: Lease
    redactor: Redactor
    name: str = "memory_recall"
    parallel_safe: bool = True
    description: str = "Look up what was remembered: by words, by category, or the newest."

    @property
    def input_schema(self) -> Mapping[str, Any]:
        """Give the shape of the arguments."""
        return an_object(
            [],
            query={"type": "string", "maxLength": MAX_QUERY_CHARS},
            category={"type": "string", "maxLength": MAX_CATEGORY_CHARS},
            limit={"type": "integer", "minimum": 1, "maximum": MAX_RECALLED, "default": DEFAULT_RECALLED},
        )

    async def call(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Find entries and tell them one after the other."""
        wanted = {"limit": DEFAULT_RECALLED, **arguments}
        try:
            found = await self.plane.recall(self.lease, wanted)
        except TokenRejected:
            raise
        except Refused as refusal:
            return ToolResult(f"not found: {refusal.code}: {refusal.detail}", ok=False)
        lines = [f"{found.total} found, {len(found.items)} shown"]
        lines += [f"## {item.key} ({item.category})\n{item.content}" for item in found.items]
        return ToolResult(clipped(self.redactor.text("\n\n".join(lines))), facts={"found": found.total})
