"""An agent as its two files describe it, checked and complete; kept as plain JSON with its config version."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from sexton_actors.gate_rules.model import Gates

DEFAULT_TOLERANCE_S = 300


class WorkspaceKind(StrEnum):
    """What a run finds in its folder."""

    FRESH = "fresh"
    """Nothing."""
    KEEP = "keep"
    """What the agent's run before left there."""


class Runtime(StrEnum):
    AGENT = "agent"
    """The loop of a language model."""
    COMMAND = "command"
    """The fenced block of SKILL.md, run in the sandbox with the event on its standard input."""


class Signature(msgspec.Struct, frozen=True):
    """Where a sender puts its signature; a native source knows what is None here by itself."""

    secret_ref: str
    """Name of the credential whose data holds ``webhook_secret``."""
    header: str | None = None
    """In lower case."""
    prefix: str | None = None
    ts_header: str | None = None
    """In lower case; the header with the time in seconds that is signed too."""


class Payload(StrEnum):
    """What the bodies of a source without a known form are; where nothing is said, each tells by itself."""

    RAW = "raw"
    """The sender's own, whatever its members are called."""
    ENVELOPE = "envelope"
    """The service's own: ``event_id``, ``type`` and ``data``, each of them required."""


class WebhookTrigger(msgspec.Struct, frozen=True, tag_field="type", tag="webhook"):
    source: str
    events: tuple[str, ...] | None = None
    """Event types, or their parts before the first dot; None lets all in."""
    signature: Signature | None = None
    """None when the sender cannot sign; the address then holds a secret instead."""
    tolerance_seconds: int = DEFAULT_TOLERANCE_S
    """How far a signed time may be from now, either way."""
    payload: Payload | None = None


class CronTrigger(msgspec.Struct, frozen=True, tag_field="type", tag="cron"):
    schedule: str
    """Five fields with one space between."""
    timezone: str = "UTC"
    message: str = ""


class Budget(msgspec.Struct, frozen=True):
    daily_nanos: int
    monthly_nanos: int | None = None


class Resources(msgspec.Struct, frozen=True):
    """What a run may have of its host; None: as much as its runner gives those that ask for nothing."""

    cpu_millis: int | None = None
    """Thousandths of a processor."""
    memory_mib: int | None = None
    """The processes and files of the run together."""
    pids: int | None = None
    disk_mib: int | None = None
    """The size of ``/workspace``, and of ``/tmp``; counted into the memory."""
    wall_s: int | None = None


class Command(msgspec.Struct, frozen=True):
    """The block that the ``command`` runtime runs."""

    language: str
    """``sh`` or ``python``."""
    code: str
    line: int
    """The line of SKILL.md on which the code begins."""


class NetworkRule(msgspec.Struct, frozen=True):
    """An entry of ``network.allow`` that allows a part of a host; what is empty bounds nothing."""

    host: str
    ports: tuple[int, ...] = ()
    """None: 80 and 443."""
    methods: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    """Prefixes, of whole segments."""

    @property
    def spelt(self) -> str:
        """The rule in one line, the host first: what people approve, and what is compared with it.

        >>> NetworkRule("api.example.com", (8443,), ("GET", "POST"), ("/v1",)).spelt
        'api.example.com port 8443 GET,POST /v1'
        """
        ports = f"port {','.join(map(str, self.ports))}" if self.ports else ""
        return " ".join(
            part for part in (self.host, ports, ",".join(self.methods), ",".join(self.paths)) if part
        )


class ModelWish(msgspec.Struct, frozen=True):
    """A model that is asked when those before it are busy."""

    model: str
    provider: str | None = None
    """None: whichever offers it."""


class Manifest(msgspec.Struct, frozen=True):
    name: str
    description: str
    version: str
    instructions: str
    """The body of SKILL.md, with line feeds only."""
    triggers: tuple[WebhookTrigger | CronTrigger, ...]
    """1 to 8, in the order of the file."""
    required_tags: tuple[str, ...] = ()
    """The ``tags`` of SKILL.md; a runner needs them all among its labels."""
    resources: Resources = Resources()
    image: str | None = None
    """The root that its runs have in place of the host's: a name, perhaps with ``@`` and a digest."""
    tools: tuple[str, ...] = ()
    credentials: tuple[str, ...] = ()
    integrations: tuple[str, ...] = ()
    network_allow: tuple[str, ...] = ()
    """Host names, or ``*.`` and a host name for those below it; lower case. Each is allowed as a whole: a
    release that knows no rules allows less, not more."""
    network_rules: tuple[NetworkRule, ...] = ()
    """Hosts that are allowed in part; none of them is in ``network_allow``."""
    env: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Variables of the run's programs. ``${secrets.NAME.FIELD}`` stands for what the proxy swaps."""
    budget: Budget | None = None
    gates: Gates = msgspec.field(default_factory=Gates)
    context: Mapping[str, Any] = msgspec.field(default_factory=dict)
    runtime: Runtime = Runtime.AGENT
    command: Command | None = None
    """Set if, and only if, the runtime is ``command``."""
    workspace: WorkspaceKind = WorkspaceKind.FRESH
    model: str | None = None
    provider: str | None = None
    allow_unsandboxed: bool = False
    """May be given to a runner whose sandbox tier is ``none``."""
    fallbacks: tuple[ModelWish, ...] = ()
    """The rest of ``models``, or all of it where ``model`` stands beside it."""
    mcp_servers: tuple[str, ...] = ()
    """Servers that ``tools`` names and the workspace declares; the others there are a runner's."""

    @property
    def webhook_triggers(self) -> tuple[WebhookTrigger, ...]:
        return tuple(trigger for trigger in self.triggers if isinstance(trigger, WebhookTrigger))

    @property
    def cron_triggers(self) -> tuple[CronTrigger, ...]:
        return tuple(trigger for trigger in self.triggers if isinstance(trigger, CronTrigger))

    @property
    def budget_daily_nanos(self) -> int | None:
        return self.budget.daily_nanos if self.budget else None

    @property
    def budget_monthly_nanos(self) -> int | None:
        return self.budget.monthly_nanos if self.budget else None

    @property
    def ungated_credentials(self) -> tuple[str, ...]:
        """Those that the agent has by its files alone: no service of their name needs a grant."""
        return tuple(name for name in self.credentials if name not in self.integrations)

    @property
    def network_hosts(self) -> tuple[str, ...]:
        """Every host that the agent may reach, as a whole or in part."""
        return tuple(dict.fromkeys((*self.network_allow, *(rule.host for rule in self.network_rules))))

    @property
    def network_reach(self) -> tuple[str, ...]:
        """The same, with the bounds of those that are allowed in part."""
        return (*self.network_allow, *(rule.spelt for rule in self.network_rules))

    def cron_for(self, schedule: str, timezone: str) -> CronTrigger | None:
        """The trigger of that schedule in that time zone; there is at most one."""
        sought = (schedule, timezone)
        return next(
            (trigger for trigger in self.cron_triggers if (trigger.schedule, trigger.timezone) == sought),
            None,
        )

    def trigger_for(self, source: str) -> WebhookTrigger | None:
        """The webhook trigger of that source; there is at most one."""
        return next((trigger for trigger in self.webhook_triggers if trigger.source == source), None)


def to_json(manifest: Manifest) -> dict[str, Any]:
    """Plain JSON: dicts, lists, text, integers, booleans and None."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(manifest))
    return plain


def from_json(compiled: Mapping[str, Any]) -> Manifest:
    """The manifest that ``to_json`` wrote; raises ``msgspec.ValidationError`` if it wrote no such thing."""
    return msgspec.convert(compiled, Manifest)
