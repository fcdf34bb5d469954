"""What a runner is handed with a lease, as the description of the interface shows it."""

from typing import Annotated, Any
from uuid import UUID

import msgspec

from sexton_actors.manifest.model import NetworkRule, Runtime, WorkspaceKind
from sexton_actors.secret_uses import Use
from sexton_http.bodies.memories import MemoryItem
from sexton_http.bodies.shapes import Shape


class LeaseFile(Shape):
    name: str
    """The path below the folder `in` of the run."""
    media_type: str
    size: int
    sha256: str


class LeaseEvent(Shape, omit_defaults=True):
    event_id: UUID
    zombie_id: UUID
    workspace_id: UUID
    actor: str
    event_type: str
    request_json: Annotated[Any, msgspec.Meta(description="What woke the agent, as it came.")]
    created_at: int
    traceparent: str | None
    files: list[LeaseFile] = msgspec.field(default_factory=list)
    """What the event brings; a runner reads them by their places in this list."""


class NetworkPolicy(Shape):
    allow: list[str]
    """Hosts, or `*.` and a host, each allowed as a whole."""
    rules: list[NetworkRule]
    """Hosts that are allowed in part; an empty list of ports means 80 and 443, of others no bound."""


class LeaseResources(Shape, omit_defaults=True):
    """What the run may have; what is left out is as its runner has it for runs that ask for nothing."""

    cpu_millis: int | None = None
    """Thousandths of a processor."""
    memory_mib: int | None = None
    """Processes and files together."""
    pids: int | None = None
    disk_mib: int | None = None
    """The size of `/workspace`, and of `/tmp`."""
    wall_s: int | None = None


class FallbackModel(Shape):
    provider: str
    model: str
    api_key: str


class LeaseMcpServer(Shape):
    """A server that the workspace declares: it has either a `url` or a `command`."""

    name: str
    url: str
    command: str
    """The name of a server that the runner offers."""
    headers: dict[str, str]
    """With `${secrets.NAME.FIELD}` where one of `secrets` belongs."""
    env: dict[str, str]
    tools: list[str]
    """Those that the run may use; none: all."""
    secrets: dict[str, str]
    """By `NAME.FIELD`: for the headers, towards the host of `url`, and nothing else."""


class LeasePolicy(Shape):
    tools: list[str]
    network_policy: NetworkPolicy
    secrets_map: dict[str, dict[str, Any]]
    secret_hosts: dict[str, list[str]]
    """Where each of them may go; none: nowhere."""
    """By the name of the credential, its data."""
    secret_uses: dict[str, list[Use]]
    """Where in a request each of them stands."""
    env: dict[str, str]
    """Variables of the run's programs, with `${secrets.NAME.FIELD}` where a placeholder belongs."""
    integrations: dict[str, str]
    """How the grant of each service stands."""
    provider: str | None
    model: str | None
    api_key: str | None
    context: dict[str, Any]
    fallbacks: list[FallbackModel]
    """Asked in this order where ``model`` is busy."""
    understands: list[str]
    """Additions to the interface that this server takes: a runner sends them to no other."""
    budget_left_nanos: int | None
    """Null: the agent has no budget."""
    gates: dict[str, Any]
    resources: LeaseResources
    image: str | None
    """The root that the run has in place of its host's: a name, perhaps with `@` and a digest."""
    mcp_servers: list[LeaseMcpServer]


class LeaseHanded(Shape):
    lease_id: UUID
    fencing_token: int
    lease_expires_at: int
    ceiling_at: int
    attempt: int
    """How many leases its event has had, this one included."""
    event: LeaseEvent
    policy: LeasePolicy
    instructions: str
    runtime: Runtime
    workspace: WorkspaceKind
    """`keep`: the run starts from what the agent's run before left, and leaves what it has in the end."""
    memory: list[MemoryItem]
    feedback: list[dict[str, Any]]
    checkpoint: dict[str, Any] | None
    traceparent: str
    """What the run's programs and calls may hand on: their spans are children of this attempt's. That of the
    `event` is its sender's."""
