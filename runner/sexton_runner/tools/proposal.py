"""The tool by which an agent proposes to change itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sexton_runner.redact import Redactor
from sexton_runner.tools.arguments import an_object
from sexton_runner.tools.base import ToolResult

MAX_PROPOSALS = 8
MAX_TITLE_CHARS = 200
MAX_RATIONALE_CHARS = 4_096
MAX_MARKDOWN_BYTES = 65_536
FILES = ("source_markdown", "trigger_markdown")


@dataclass(frozen=True, slots=True)
class ProposeImprovement:
    """``propose_improvement``: goes with the report, so that a run that is repeated proposes once."""

    proposals: list[dict[str, Any]]
    redactor: Redactor
    name: str = "propose_improvement"
    parallel_safe: bool = False
    description: str = (
        "Propose a change to your own instructions (source_markdown: the whole SKILL.md) or configuration "
        "(trigger_markdown: the whole TRIGGER.md). A person decides about it later."
    )

    @property
    def input_schema(self) -> Mapping[str, Any]:
        """Give the shape of the arguments."""
        markdown = {"type": "string", "minLength": 1, "maxLength": MAX_MARKDOWN_BYTES}
        return an_object(
            ["title", "rationale"],
            title={"type": "string", "minLength": 1, "maxLength": MAX_TITLE_CHARS},
            rationale={"type": "string", "minLength": 1, "maxLength": MAX_RATIONALE_CHARS},
            source_markdown=markdown,
            trigger_markdown=markdown,
        )

    async def call(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Collect it for the report."""
        if "source_markdown" not in arguments and "trigger_markdown" not in arguments:
            return ToolResult("give source_markdown, trigger_markdown, or both", ok=False)
        if len(self.proposals) >= MAX_PROPOSALS:
            return ToolResult(f"a run may propose {MAX_PROPOSALS} times", ok=False)
        proposal: dict[str, Any] = self.redactor.json(dict(arguments))
        # A mask may be longer than what it hides, and a report is not refused for that.
        proposal["title"] = proposal["title"][:MAX_TITLE_CHARS]
        proposal["rationale"] = proposal["rationale"][:MAX_RATIONALE_CHARS]
        if any(len(str(proposal.get(name, "")).encode()) > MAX_MARKDOWN_BYTES for name in FILES):
            return ToolResult(f"a file may have {MAX_MARKDOWN_BYTES} bytes in UTF-8", ok=False)
        self.proposals.append(proposal)
        return ToolResult("proposed; a person will decide", facts={"title": self.proposals[-1]["title"]})
