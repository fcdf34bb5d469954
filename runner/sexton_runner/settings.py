"""What an operator may choose about one runner, checked before anything starts."""

import enum
import socket
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from sexton_runner.egress_settings import EgressSettings
from sexton_runner.errors import BadSettings
from sexton_runner.logs import LogSettings
from sexton_runner.providers.settings import ModelSettings
from sexton_runner.tool_settings import ToolSettings

MAX_SLOTS = 256
MAX_LABELS = 64
MAX_LABEL_CHARS = 64
MAX_HOST_ID_CHARS = 256
DEFAULT_SLOTS = 4
DEFAULT_DRAIN_S = 20.0
DEFAULT_RUN_WALL_S = 3600.0
DEFAULT_RUN_MEMORY_BYTES = 1 << 30
DEFAULT_RUN_PIDS = 128
MIN_RUN_MEMORY_BYTES = 1 << 26
MIN_RUN_PIDS = 8


class SandboxTier(enum.StrEnum):
    """How a command is shut in. ``none`` is never a default and never a fallback."""

    BUBBLEWRAP = "bubblewrap"
    LANDLOCK = "landlock"
    PODMAN = "podman"
    NONE = "none"


def _this_host() -> str:
    return socket.gethostname()[:MAX_HOST_ID_CHARS] or "localhost"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerSettings:
    """Settings of one runner process. Tokens stay out of ``repr``.

    ``runner_token`` wins over the token kept in ``state_dir``; ``enrolment_token`` is used only when there
    is neither.
    ``strict`` takes no work where the host gives less to the sandbox than it could.
    ``drain_s`` is how long runs may go on after SIGTERM; ``run_wall_s`` ends a run, not counting time at
    gates.
    """

    base_url: str
    state_dir: Path
    runner_token: str | None = field(default=None, repr=False)
    enrolment_token: str | None = field(default=None, repr=False)
    host_id: str = field(default_factory=_this_host)
    labels: tuple[str, ...] = ()
    slots: int = DEFAULT_SLOTS
    sandbox_tier: SandboxTier = SandboxTier.BUBBLEWRAP
    drain_s: float = DEFAULT_DRAIN_S
    run_wall_s: float = DEFAULT_RUN_WALL_S
    run_memory_bytes: int = DEFAULT_RUN_MEMORY_BYTES
    run_pids: int = DEFAULT_RUN_PIDS
    run_default: str = ""
    """Bounds of a run that asks for nothing, in place of the above, as ``run_bounds`` reads them."""
    run_most: str = ""
    """The most that a run may ask for; what is not named, as much as one has that asks for nothing."""
    images: Path | None = None
    """The folder of images; None: this runner has none."""
    strict: bool = False
    server_cert: Path | None = None
    """The server's own certificate, trusted in place of one that an authority vouches for."""
    log: LogSettings = field(default_factory=LogSettings)
    tools: ToolSettings = field(default_factory=ToolSettings)
    models: ModelSettings = field(default_factory=ModelSettings)
    egress: EgressSettings = field(default_factory=EgressSettings)

    def __post_init__(self) -> None:
        for problem in _problems(self):
            raise BadSettings(problem)


def _problems(settings: RunnerSettings) -> list[str]:
    address = urlsplit(settings.base_url)
    checks = (
        (
            address.scheme in ("http", "https") and bool(address.hostname),
            "base_url must be an http:// or https:// address",
        ),
        (
            1 <= len(settings.host_id) <= MAX_HOST_ID_CHARS,
            f"host_id must have 1 to {MAX_HOST_ID_CHARS} characters",
        ),
        (1 <= settings.slots <= MAX_SLOTS, f"slots must be 1 to {MAX_SLOTS}"),
        (len(settings.labels) <= MAX_LABELS, f"at most {MAX_LABELS} labels"),
        (
            all(1 <= len(label) <= MAX_LABEL_CHARS for label in settings.labels),
            f"each label must have 1 to {MAX_LABEL_CHARS} characters",
        ),
        (settings.drain_s >= 0, "drain_s must not be negative"),
        (settings.run_wall_s > 0, "run_wall_s must be positive"),
        (settings.run_memory_bytes >= MIN_RUN_MEMORY_BYTES, "run_memory_bytes must be at least 64 MiB"),
        (settings.run_pids >= MIN_RUN_PIDS, f"run_pids must be at least {MIN_RUN_PIDS}"),
        (_is_token(settings.runner_token, "zrn_"), "runner_token must begin with zrn_"),
        (_is_token(settings.enrolment_token, "zre_"), "enrolment_token must begin with zre_"),
    )
    servers = settings.tools.mcp_servers.items()
    wrong = [f"MCP server {name}: {problem}" for name, server in servers if (problem := server.problem())]
    return [problem for fine, problem in checks if not fine] + wrong


def _is_token(token: str | None, prefix: str) -> bool:
    return token is None or (token.startswith(prefix) and token.isascii() and token.isprintable())
