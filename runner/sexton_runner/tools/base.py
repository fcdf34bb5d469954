"""What every tool is, and gives back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sexton_runner.pictures import Picture


@dataclass(frozen=True, slots=True)
class Found:
    """A picture that a tool has found; ``path`` is where it lies in the run's folder, if it does."""

    content: bytes = field(repr=False)
    path: str = ""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer to one call.

    ``content`` is what the model reads: redacted and bounded. ``facts`` are small JSON values for the
    evidence: status codes, sizes, hashes. What a tool has ``found`` the toolbox keeps as ``pictures``.
    """

    content: str
    ok: bool = True
    facts: Mapping[str, Any] = field(default_factory=dict)
    found: Sequence[Found] = ()
    pictures: tuple[Picture, ...] = ()


class Parked(Exception):
    """The run waits for a person and has to give up its slot: the loop stops, and its checkpoint is kept."""

    def __init__(self, gate_id: str) -> None:
        super().__init__(gate_id)
        self.gate_id = gate_id


class Tool(Protocol):
    """One tool. ``input_schema`` is a JSON Schema of an object; arguments are held against it beforehand."""

    @property
    def name(self) -> str:
        """Give the name that the model calls it by."""
        ...

    @property
    def description(self) -> str:
        """Say, for the model, what it does and when to use it."""
        ...

    @property
    def input_schema(self) -> Mapping[str, Any]:
        """Give the shape of the arguments."""
        ...

    @property
    def parallel_safe(self) -> bool:
        """Tell whether it may run beside other calls of the same turn."""
        ...

    async def call(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Do it. What goes wrong is a result with ``ok=False``; only a fault of ours is raised."""
        ...
