"""What runs know by name: tools, providers and keys of the context. Tests hold it to what the runner has."""

from collections.abc import Mapping

import msgspec

TOOLS = frozenset(
    {
        "shell",
        "python",
        "http_request",
        "memory_store",
        "memory_recall",
        "request_integration",
        "request_approval",
        "schedule_follow_up",
        "propose_improvement",
    }
)
PROVIDERS = frozenset(
    {
        "anthropic",
        "openai",
        "deepseek",
        "fireworks",
        "groq",
        "mistral",
        "openrouter",
        "together",
        "xai",
        "llamacpp",
        "lmstudio",
        "ollama",
        "vllm",
    }
)


class Bound(msgspec.Struct, frozen=True):
    """What a key of the context may hold: a number, or one word in its place."""

    least: float
    most: float
    whole: bool = True
    word: str | None = None
    nullable: bool = False

    def admits(self, value: object) -> bool:
        """Whether it may stand there.

        >>> Bound(1, 10).admits(10), Bound(1, 10).admits(True), Bound(0, 1, whole=False).admits(0.5)
        (True, False, True)
        """
        if value is None:
            return self.nullable
        if isinstance(value, str):
            return value == self.word
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        if self.whole and isinstance(value, float):
            return False
        return self.least <= value <= self.most

    def __str__(self) -> str:
        number = "a whole number" if self.whole else "a number"
        other = f", or `{self.word}`" if self.word else ""
        return f"{number} from {self.least:,} to {self.most:,}{other}"


CONTEXT: Mapping[str, Bound] = {
    "context_cap_tokens": Bound(1_024, 10_000_000),
    "tool_window": Bound(0, 1_000, word="auto"),
    "memory_checkpoint_every": Bound(0, 1_000),
    "stage_chunk_threshold": Bound(0.1, 1, whole=False),
    "max_turns": Bound(1, 1_000),
    "max_stages": Bound(1, 100),
    "max_output_tokens": Bound(1, 1_000_000, nullable=True),
    "max_continuations": Bound(0, 100),
}
"""Context keys of the runtime ``agent``; a value that no run could use is refused at installation."""


class Surroundings(msgspec.Struct, frozen=True):
    """What an operator has added for the runners of this server, as far as it is known here."""

    providers: frozenset[str] = frozenset()
    """Those with an address of their own."""
    mcp_servers: frozenset[str] | None = None
    """None when it is not known here which servers runners have."""
