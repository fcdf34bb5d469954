"""The limits of a run, from the agent's ``context``."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

DEFAULT_CAP_TOKENS = 32_768


class BadRunLimits(Exception):
    """The agent's ``context`` cannot be used; the text names the key."""


class RunLimits(msgspec.Struct, frozen=True):
    """The bounds of one run.

    ``tool_window`` is how many of the latest tool results stay whole; ``auto``, or 0, keeps as many as fit.
    Every ``memory_checkpoint_every`` tool calls the model is told to keep what it has learnt; 0 is never.
    At ``stage_chunk_threshold`` of the window the run ends, and another event goes on from its note.
    At most ``max_pictures`` are shown in one question, the latest of them; 0 shows none.
    ``temperature``, ``effort`` and ``thinking_tokens`` are the provider's own; None is its default.
    An answer that was cut at ``max_output_tokens`` is gone on with at most ``max_continuations`` times.
    """

    context_cap_tokens: Annotated[int, msgspec.Meta(ge=1_024, le=10_000_000)] = DEFAULT_CAP_TOKENS
    tool_window: Annotated[int, msgspec.Meta(ge=0, le=1_000)] | Literal["auto"] = "auto"
    memory_checkpoint_every: Annotated[int, msgspec.Meta(ge=0, le=1_000)] = 0
    stage_chunk_threshold: Annotated[float, msgspec.Meta(ge=0.1, le=1.0)] = 0.75
    max_turns: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 100
    max_stages: Annotated[int, msgspec.Meta(ge=1, le=100)] = 10
    max_output_tokens: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None
    max_continuations: Annotated[int, msgspec.Meta(ge=0, le=100)] = 16
    max_pictures: Annotated[int, msgspec.Meta(ge=0, le=100)] = 20
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    thinking_tokens: Annotated[int, msgspec.Meta(ge=1_024, le=200_000)] | None = None

    @property
    def full_at(self) -> int:
        """The number of tokens from which there is no room for another question."""
        return int(self.context_cap_tokens * self.stage_chunk_threshold)


def read_run_limits(context: Mapping[str, Any] | None) -> RunLimits:
    """Read the policy's ``context``; raises ``BadRunLimits``.

    >>> read_run_limits({"context_cap_tokens": 200000}).full_at
    150000
    """
    try:
        return msgspec.convert(dict(context or {}), RunLimits)
    except msgspec.ValidationError as fault:
        raise BadRunLimits(f"context: {fault}") from fault


def unused(context: Mapping[str, Any] | None) -> list[str]:
    """Name the keys of the context that mean nothing here: they may be the author's own, or typing mistakes.

    >>> unused({"max_turn": 5, "max_turns": 5})
    ['max_turn']
    """
    return [key for key in context or {} if key not in RunLimits.__struct_fields__]
