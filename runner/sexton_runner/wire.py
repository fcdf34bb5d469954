"""The shapes that cross the wire between a runner and the control plane."""

from typing import Any

import msgspec

MAX_LEASES_PER_POLL = 64
MAX_RENEWALS_PER_CALL = 1024
MAX_FRAMES_PER_CALL = 256
MAX_REPORTS_PER_CALL = 64
MAX_ENTRIES_PER_CALL = 256


class Enrolled(msgspec.Struct, frozen=True):
    """The answer to an enrolment; the token is shown this once."""

    runner_id: str
    runner_token: str

    def __repr__(self) -> str:
        return f"<Enrolled {self.runner_id}>"


class EventFile(msgspec.Struct, frozen=True):
    """A file that an event brings; ``name`` is its path below the folder ``in`` of the run."""

    name: str
    media_type: str
    size: int
    sha256: str


class Event(msgspec.Struct, frozen=True):
    """The event a lease is for; ``request_json`` is the normalised body, as text or as an object."""

    event_id: str
    zombie_id: str
    workspace_id: str
    actor: str
    event_type: str
    request_json: Any = None
    created_at: int = 0
    traceparent: str | None = None
    files: list[EventFile] = []


class Resources(msgspec.Struct, frozen=True):
    """What the agent asks of its host for a run; None: as for every run."""

    cpu_millis: int | None = None
    memory_mib: int | None = None
    pids: int | None = None
    disk_mib: int | None = None
    wall_s: int | None = None


class NetworkRule(msgspec.Struct, frozen=True):
    """A part of a host that a run may reach; what is empty bounds nothing, but no ports are 80 and 443."""

    host: str
    ports: tuple[int, ...] = ()
    methods: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


class NetworkPolicy(msgspec.Struct, frozen=True):
    """Where a run may go: ``allow`` are whole hosts, ``rules`` parts of others."""

    allow: tuple[str, ...] = ()
    rules: tuple[NetworkRule, ...] = ()


class SecretUse(msgspec.Struct, frozen=True, rename={"place": "in"}):
    """A place in a request where a credential stands: ``header``, ``query`` or ``basic``."""

    place: str
    name: str | None = None


class FallbackModel(msgspec.Struct, frozen=True):
    """A model that is asked when those before it are busy. Holds a key, so it shows none of itself."""

    provider: str
    model: str
    api_key: str | None = None

    def __repr__(self) -> str:
        return f"<FallbackModel {self.provider} {self.model}>"


class DeclaredServer(msgspec.Struct, frozen=True):
    """An MCP server of the workspace: at a ``url``, or a ``command`` that this runner offers.

    ``secrets`` are by ``NAME.FIELD``, for the headers. Holds secrets, so it shows none of itself.
    """

    name: str
    url: str = ""
    command: str = ""
    headers: dict[str, str] = {}
    env: dict[str, str] = {}
    tools: list[str] = []
    secrets: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"<DeclaredServer {self.name}>"


class Policy(msgspec.Struct, frozen=True):
    """What the run may use. Holds secrets, so it shows none of itself."""

    tools: list[str] = []
    network_policy: NetworkPolicy = NetworkPolicy()
    secrets_map: dict[str, Any] = {}
    secret_hosts: dict[str, list[str]] = {}
    secret_uses: dict[str, list[SecretUse]] = {}
    env: dict[str, str] = {}
    provider: str | None = None
    model: str | None = None
    api_key: str | None = None
    budget_left_nanos: int | None = None
    gates: Any = None
    context: Any = None
    integrations: dict[str, str] = {}
    resources: Resources = Resources()
    image: str | None = None
    fallbacks: list[FallbackModel] = []
    understands: list[str] = []
    mcp_servers: list[DeclaredServer] = []

    @property
    def hosts(self) -> tuple[str, ...]:
        """Every host that the run may reach, as a whole or in part."""
        rules = self.network_policy.rules
        return tuple(dict.fromkeys((*self.network_policy.allow, *(rule.host for rule in rules))))

    def __repr__(self) -> str:
        return "<Policy>"


class Lease(msgspec.Struct, frozen=True):
    """One claim on one event. ``lease_expires_at`` and ``ceiling_at`` are Unix ms on the database's clock."""

    lease_id: str
    fencing_token: int
    lease_expires_at: int
    event: Event
    instructions: str
    runtime: str
    ceiling_at: int | None = None
    attempt: int = 1
    policy: Policy = msgspec.field(default_factory=Policy)
    memory: list[Any] = []
    feedback: list[Any] = []
    checkpoint: Any = None
    workspace: str = "fresh"
    traceparent: str = ""
    """What programs of the run hand on; a server of an older release names none."""

    def __repr__(self) -> str:
        return f"<Lease {self.lease_id} token {self.fencing_token} event {self.event.event_id}>"


class Polled(msgspec.Struct, frozen=True):
    """The answer to a long poll.

    Leases stay raw here, so that a malformed one does not hide its neighbours.
    """

    leases: list[msgspec.Raw] = []
    cancelled_lease_ids: list[str] = []
    retry_after_ms: int | None = 0
    waited_ms: int | None = None
    """How long after the poll had come the leases were granted, at least; None: the server does not tell."""

    def granted(self, asked: float, now: float) -> float | None:
        """The earliest time, on the clock of ``asked`` and ``now``, at which a lease can have been granted.

        The poll came to the server after it was asked, so a slow answer makes the time no later.

        >>> Polled(waited_ms=2_000).granted(asked=10.0, now=13.0)
        12.0
        >>> Polled(waited_ms=2_000).granted(asked=10.0, now=70.0), Polled(waited_ms=9_000).granted(10.0, 13.0)
        (12.0, 13.0)
        >>> Polled().granted(10.0, 13.0) is None
        True
        """
        return None if self.waited_ms is None else min(now, asked + max(0, self.waited_ms) / 1000)


class LeaseName(msgspec.Struct, frozen=True):
    """The least that must be readable in a lease so that it can be given back."""

    lease_id: str


class Pulse(msgspec.Struct, frozen=True):
    """The answer to a heartbeat; ``status`` is ok, drain or stop."""

    status: str = "ok"
    cancelled_lease_ids: list[str] = []


class Renewal(msgspec.Struct, frozen=True):
    """One renewal's answer, alone or as a row of a batch (then with ``lease_id`` and ``ok``)."""

    lease_id: str = ""
    ok: bool = True
    state: str = "active"
    lease_expires_at: int = 0
    error_code: str = ""
    status: int = 200


class Renewals(msgspec.Struct, frozen=True):
    """The answer to a batch of renewals."""

    results: list[Renewal]


class Snapshot(msgspec.Struct, frozen=True):
    """What a run is to start from, as it is kept: a tar, compressed with Zstandard."""

    sha256: str
    size: int


class WorkspaceStart(msgspec.Struct, frozen=True):
    """The answer to what a run starts from; None: an empty folder."""

    snapshot: Snapshot | None = None


class TranscriptTaken(msgspec.Struct, frozen=True):
    """What became of entries of a transcript."""

    more: bool = True
    """False: nothing further of this lease will be kept."""


class Gate(msgspec.Struct, frozen=True):
    """An approval gate as the control plane shows it."""

    gate_id: str
    status: str
    action_id: str = ""
    detail: str | None = None
    resolved_by: str | None = None


class MemoryEntry(msgspec.Struct, frozen=True):
    """One thing that an agent remembers."""

    key: str
    content: str
    category: str = ""


class Memories(msgspec.Struct, frozen=True):
    """What was found of an agent's memory; ``total`` counts all that fit."""

    items: list[MemoryEntry] = []
    total: int = 0


class FollowUp(msgspec.Struct, frozen=True):
    """What the agent will be woken for, and when: Unix ms."""

    follow_up_id: str
    at: int


class LentService(msgspec.Struct, frozen=True):
    """The credential of a service that the agent was granted. Holds secrets, so it shows none of itself."""

    service: str
    data: dict[str, Any]
    hosts: list[str] = []

    def __repr__(self) -> str:
        return f"<LentService {self.service}>"


class Problem(msgspec.Struct, frozen=True):
    """The part of a problem document that decides anything."""

    error_code: str = ""
    detail: str | None = None
    title: str | None = None


class ReportResult(msgspec.Struct, frozen=True):
    """What became of one report of many: as alone, with its status."""

    ok: bool
    status: int
    report: dict[str, Any] = {}
    error_code: str = ""
    problem: Problem = Problem()
    retry_after_s: float | None = None


class ReportResults(msgspec.Struct, frozen=True):
    """The answer to many reports, in the order in which they were sent."""

    results: list[ReportResult]


class Upload(msgspec.Struct, frozen=True):
    """A content on its way: ``received`` bytes have come."""

    upload_id: str
    received: int
    complete: bool
    part_bytes: int


class Artefact(msgspec.Struct, frozen=True):
    """A file that the control plane keeps."""

    artefact_id: str
