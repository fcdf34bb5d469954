"""Says what of two good files will probably not do what their author wants; nothing here refuses them."""

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Final

import msgspec

from sexton_actors.gate_rules.rules import glob_matches
from sexton_actors.manifest.fields import Fields
from sexton_actors.manifest.known_names import CONTEXT, PROVIDERS, TOOLS, Surroundings, mcp_server
from sexton_actors.manifest.model import CronTrigger, Manifest, Runtime, WebhookTrigger
from sexton_actors.manifest.problems import TRIGGER_FILE

OWN_EVENTS: Final = ("message", "cron", "follow_up")
"""Types of events that the platform makes."""
REQUESTS: Final = "http"
"""By which rules mean a request of a run's program, as the runner's ``tools/request_gate.py`` does."""
MAX_UNKNOWN = 64
"""Keys of the context of which it is said that they mean nothing: to find what was meant takes a while."""


class Warned(msgspec.Struct, frozen=True):
    """As a problem is told, but of files that make an agent."""

    file: str
    line: int
    key: str
    message: str


class Need(msgspec.Struct, frozen=True):
    """A credential of the workspace that the files name, and where."""

    name: str
    line: int
    key: str
    use: str
    is_lent: bool = False
    """Whether runs send it to somebody, so that it has to be known to whom it may go."""
    is_signing: bool = False
    """Whether a sender of webhooks signs with it, so that it has to be kept as ``webhook_secret``."""


def advise(manifest: Manifest, config: Fields, around: Surroundings) -> tuple[Warned, ...]:
    """All that can be said without a vault. ``config`` is where the configuration stands, for the lines."""
    if manifest.runtime is not Runtime.AGENT:
        return ()
    return (
        *_tools(manifest, config, around),
        *_providers(manifest, config, around),
        *_context(manifest, config),
        *_rules(manifest, config),
    )


def needs(manifest: Manifest, config: Fields) -> tuple[Need, ...]:
    """The credentials that have to be in the vault before the agent can do its work."""
    found = [
        *_listed(config, "credentials", manifest.credentials, "is lent to runs"),
        *_listed(config, "integrations", manifest.integrations, "is lent to runs once its grant is approved"),
    ]
    for number, (trigger, entry) in enumerate(
        zip(manifest.triggers, config.tables("triggers", most=8), strict=False)
    ):
        if isinstance(trigger, WebhookTrigger) and trigger.signature is not None:
            key = f"{config.path}triggers[{number}]"
            use = "verifies deliveries; until it is there they are refused with UZ-WH-020"
            found.append(Need(trigger.signature.secret_ref, entry.line, key, use, is_signing=True))
    return tuple(found)


def missing(need: Need) -> Warned:
    """What is said of a credential that is not there.

    >>> missing(Need("hook", 7, "triggers[0]", "verifies deliveries")).message
    'the vault has no credential `hook`, which verifies deliveries; add it: sexton credentials set hook'
    """
    field = " --field webhook_secret" if need.is_signing else ""
    way_out = f"add it: sexton credentials set {need.name}{field}"
    return Warned(
        TRIGGER_FILE,
        need.line,
        need.key,
        f"the vault has no credential `{need.name}`, which {need.use}; {way_out}",
    )


def goes_nowhere(need: Need) -> Warned:
    """What is said of a credential of which nobody knows where it may be sent.

    >>> goes_nowhere(Need("hub", 7, "credentials[0]", "is lent to runs", is_lent=True)).message
    'no host is named for `hub`, so no run may send it; name one: sexton credentials set hub --host HOST'
    """
    way_out = f"name one: sexton credentials set {need.name} --host HOST"
    said = f"no host is named for `{need.name}`, so no run may send it; {way_out}"
    return Warned(TRIGGER_FILE, need.line, need.key, said)


def undeclared(name: str, config: Fields) -> Warned:
    """What is said of a server that the workspace does not declare."""
    line, place = _lines(config, "mcp_servers").get(name, (config.line_of("mcp_servers"), "mcp_servers"))
    said = (
        f"the workspace declares no MCP server `{name}`, so events end as agent_error; declare it:"
        f" sexton mcp-server set {name} --url URL"
    )
    return Warned(TRIGGER_FILE, line, config.path + place, said)


def _listed(config: Fields, key: str, names: tuple[str, ...], use: str) -> Iterator[Need]:
    lines = _lines(config, key)
    for name in names:
        line, place = lines.get(name, (config.line_of(key), key))
        yield Need(name, line, config.path + place, use, is_lent=True)


def _lines(config: Fields, key: str) -> dict[str, tuple[int, str]]:
    """Give the line and the key of each name in a list."""
    return {
        text: (node.line, f"{key}[{number}]")
        for number, node in enumerate(config.items(key, most=10_000))
        if (text := getattr(node, "text", ""))
    }


def _tools(manifest: Manifest, config: Fields, around: Surroundings) -> Iterator[Warned]:
    lines = _lines(config, "tools")
    for name in manifest.tools:
        if name in TOOLS:
            continue
        line, place = lines.get(name, (config.line_of("tools"), "tools"))
        said = "" if mcp_server(name) in manifest.mcp_servers else _of_server(name, around)
        if said is None:
            said = f"there is no tool `{name}`{_meant(name, TOOLS)}"
        if said:
            yield Warned(TRIGGER_FILE, line, config.path + place, said)


def _of_server(name: str, around: Surroundings) -> str | None:
    """What is to be said of a name that means an MCP server, nothing if it is known; None for other names."""
    server, _, tool = name.removeprefix("mcp:").partition(".")
    if not name.startswith("mcp:") and not tool:
        return None
    if mcp_server(name) is None:
        return f"`{name}` names no MCP server: write `mcp:SERVER` for all its tools, or `SERVER.TOOL` for one"
    if around.mcp_servers is None:
        return f"whether a runner has the MCP server `{server}` is not known here; events wait for one"
    if server not in around.mcp_servers:
        return f"there is no MCP server `{server}`{_meant(server, around.mcp_servers)}"
    return ""


def _providers(manifest: Manifest, config: Fields, around: Surroundings) -> Iterator[Warned]:
    known = PROVIDERS | around.providers
    for name in dict.fromkeys((manifest.provider, *(wish.provider for wish in manifest.fallbacks))):
        if name is not None and name.lower().replace("_", "-") not in known:
            key = "provider" if "provider" in config else "models"
            variable = f"SEXTON_{re.sub('[^A-Z0-9]', '_', name.upper())}_BASE_URL"
            said = f"no provider `{name}` is known, nor its address in {variable}{_meant(name, known)}"
            yield Warned(TRIGGER_FILE, config.line_of(key), config.path + key, said)


def _context(manifest: Manifest, config: Fields) -> Iterator[Warned]:
    fields = config.table("context")
    unknown = [key for key in manifest.context if key not in CONTEXT]
    if fields is not None:
        for key in unknown[:MAX_UNKNOWN]:
            said = f"means nothing to the runtime `agent`{_meant(key, CONTEXT)}"
            yield Warned(TRIGGER_FILE, fields.line_of(key), fields.path + key, said)


def _rules(manifest: Manifest, config: Fields) -> Iterator[Warned]:
    gates = config.table("gates")
    entries = [] if gates is None else gates.tables("rules", most=10_000)
    for rule, entry in zip(manifest.gates.rules, entries, strict=False):
        if said := _rule(rule.tool, manifest):
            yield Warned(TRIGGER_FILE, entry.line_of("tool"), entry.path + "tool", said)


def _rule(pattern: str, manifest: Manifest) -> str | None:
    callable_names = {_called(name) for name in manifest.tools}
    if manifest.network_hosts:
        callable_names.add(REQUESTS)
    # Of a server whose tools are all attached the names are not known.
    prefixes = tuple(_called(name.removeprefix("mcp:")) + "__" for name in manifest.tools if ":" in name)
    if any(glob_matches(pattern, name) for name in (*callable_names, *_types(manifest))):
        return None
    if prefixes and ("*" in pattern or pattern.startswith(prefixes)):
        return None
    if pattern in TOOLS:
        return f"the agent has no tool `{pattern}`: add it to `tools`, or the rule never holds"
    meant = _meant(pattern, callable_names | set(manifest.tools))
    webhooks = [trigger for trigger in manifest.triggers if isinstance(trigger, WebhookTrigger)]
    lets_in = any(
        trigger.events is None or any(_may_be(pattern, event) for event in trigger.events)
        for trigger in webhooks
    )
    if lets_in and not meant:
        return None
    return f"matches neither a tool of this agent nor an event that its triggers let in{meant}"


def _types(manifest: Manifest) -> Iterable[str]:
    crons = any(isinstance(trigger, CronTrigger) for trigger in manifest.triggers)
    return (kind for kind in OWN_EVENTS if kind != "cron" or crons)


def _may_be(pattern: str, event: str) -> bool:
    """Whether the pattern may match that event type, or one that begins with it and a dot."""
    return glob_matches(pattern, event) or pattern.startswith(f"{event}.") or "*" in pattern


def _called(name: str) -> str:
    """The name by which a model calls a tool of a server, as the runner spells it."""
    spelt = name.replace(".", "__", 1)
    return re.sub("[^A-Za-z0-9_-]", "_", spelt)


def _meant(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, list(known), n=1, cutoff=0.75)
    return f": did you mean `{near[0]}`?" if near else ""
