"""What runs know by name: tools, providers and keys of the context. Tests hold it to what the runner has."""

import re
from collections.abc import Mapping

import msgspec

TOOLS = frozenset(
    {
        "shell",
        "python",
        "http_request",
        "read_file",
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


ALL_OF = "mcp:"
"""Before the name of an MCP server all of whose tools are meant."""
WORKSPACE_SERVERS = "mcp:workspace.servers"
"""The offer of a runner that can reach servers which a workspace declares; no server can have that name."""
MCP_SERVER = re.compile("[A-Za-z0-9][A-Za-z0-9_-]{0,31}")


def mcp_server(tool: str) -> str | None:
    """The MCP server that a name of ``tools`` means; None for any other tool, and for what names no server.

    >>> mcp_server("mcp:files"), mcp_server("files.read"), mcp_server("shell"), mcp_server("mcp:a.b")
    ('files', 'files', None, None)
    """
    whole = tool.startswith(ALL_OF)
    server, dot, _ = tool.removeprefix(ALL_OF).partition(".")
    named = MCP_SERVER.fullmatch(server) is not None and whole is not bool(dot)
    return server if named else None


class Bound(msgspec.Struct, frozen=True):
    """What a key of the context may hold: a number, or a word in its place.

    Where the least is more than the most, a word only.
    """

    least: float = 1
    most: float = 0
    whole: bool = True
    words: tuple[str, ...] = ()
    nullable: bool = False

    def admits(self, value: object) -> bool:
        """Whether it may stand there.

        >>> Bound(1, 10).admits(10), Bound(1, 10).admits(True), Bound(0, 1, whole=False).admits(0.5)
        (True, False, True)
        """
        if value is None:
            return self.nullable
        if isinstance(value, str):
            return value in self.words
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        if self.whole and isinstance(value, float):
            return False
        return self.least <= value <= self.most

    def __str__(self) -> str:
        number = "a whole number" if self.whole else "a number"
        words = " or ".join(f"`{word}`" for word in self.words)
        if self.least > self.most:
            return words
        other = f", or {words}" if words else ""
        return f"{number} from {self.least:,} to {self.most:,}{other}"


EFFORTS = ("low", "medium", "high", "xhigh", "max")
CONTEXT: Mapping[str, Bound] = {
    "context_cap_tokens": Bound(1_024, 10_000_000),
    "tool_window": Bound(0, 1_000, words=("auto",)),
    "memory_checkpoint_every": Bound(0, 1_000),
    "stage_chunk_threshold": Bound(0.1, 1, whole=False),
    "max_turns": Bound(1, 1_000),
    "max_stages": Bound(1, 100),
    "max_output_tokens": Bound(1, 1_000_000, nullable=True),
    "max_continuations": Bound(0, 100),
    "max_pictures": Bound(0, 100),
    "temperature": Bound(0, 2, whole=False, nullable=True),
    "effort": Bound(words=EFFORTS, nullable=True),
    "thinking_tokens": Bound(1_024, 200_000, nullable=True),
}
"""Context keys of the runtime ``agent``; a value that no run could use is refused at installation."""


class Surroundings(msgspec.Struct, frozen=True):
    """What an operator has added for the runners of this server, as far as it is known here."""

    providers: frozenset[str] = frozenset()
    """Those with an address of their own."""
    mcp_servers: frozenset[str] | None = None
    """None when it is not known here which servers runners have."""
