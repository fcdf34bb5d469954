"""Reads an agent's two files into a manifest, or says what to fix and where."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from sexton_actors.manifest.advice import Need, Warned, advise, needs, undeclared
from sexton_actors.manifest.command_block import NoCommand, find_command
from sexton_actors.manifest.fields import Fields
from sexton_actors.manifest.free_form import free_json
from sexton_actors.manifest.front_matter import Front, split
from sexton_actors.manifest.gate_fields import read_gates
from sexton_actors.manifest.known_names import CONTEXT, Surroundings
from sexton_actors.manifest.mcp_fields import read_mcp_servers
from sexton_actors.manifest.model import Budget, Command, Manifest, ModelWish, Runtime, WorkspaceKind
from sexton_actors.manifest.model_fields import read_models, read_provider
from sexton_actors.manifest.model_options import option_faults
from sexton_actors.manifest.network_fields import read_env, read_network
from sexton_actors.manifest.nodes import MAX_VALUES, NotYaml, Table, read_yaml
from sexton_actors.manifest.problems import (
    INVALID_GATES,
    INVALID_REQUEST,
    NAMES_DIFFER,
    SKILL_FILE,
    TRIGGER_FILE,
    ManifestRejected,
    Problems,
    rejected,
)
from sexton_actors.manifest.resources import read_resources
from sexton_actors.manifest.trigger_fields import CREDENTIAL_NAME, SINGULAR, read_triggers

__all__ = ["ManifestRejected", "Reading", "parse", "read"]

MAX_TAGS = 32
MAX_TAG_CHARS = 64
MAX_NAMES = 64
"""Tools, credentials, integrations and hosts, each."""
MAX_DESCRIPTION_CHARS = 1_024
MAX_SKILL_VALUES = 512
"""Keys and values of SKILL.md, of which few are read."""
MAX_DAILY_DOLLARS = 1_000
MAX_MONTHLY_DOLLARS = 100_000

_NESTED = "x-usezombie"
_CONFIG = frozenset(
    {
        "triggers",
        "tools",
        "credentials",
        "integrations",
        "network",
        "env",
        "budget",
        "gates",
        "context",
        "runtime",
        "workspace",
        "model",
        "models",
        "provider",
        "allow_unsandboxed",
        "resources",
        "image",
        "mcp_servers",
    }
)
_NAME = re.compile("[a-z0-9][a-z0-9-]{0,63}")
_VERSION = re.compile(r"(?:0|[1-9][0-9]{0,8})(?:\.(?:0|[1-9][0-9]{0,8})){2}")
_TAG = re.compile(r"[^\t\n]*")
_TOOL = re.compile("[A-Za-z0-9][A-Za-z0-9_.:/-]*")
_SERVICE = re.compile("[a-z0-9_-]{1,64}")
_IMAGE = re.compile("[a-z0-9][a-z0-9._-]{0,63}(?:@sha256:[0-9a-f]{64})?")


class Reading(msgspec.Struct, frozen=True):
    """Two good files, what of them will probably not do what is wanted, and the credentials they name."""

    manifest: Manifest
    warnings: tuple[Warned, ...]
    needs: tuple[Need, ...]
    undeclared: tuple[tuple[str, Warned], ...] = ()
    """Each MCP server that the workspace has to declare, with what is to be said where it does not."""


NOTHING_KNOWN = Surroundings()


def parse(source_markdown: str, trigger_markdown: str) -> Manifest | ManifestRejected:
    """Read SKILL.md and TRIGGER.md. Total: any two texts give a manifest or what is wrong with them."""
    found = _parts(source_markdown, trigger_markdown)
    return found if isinstance(found, ManifestRejected) else found[0]


def read(
    source_markdown: str, trigger_markdown: str, around: Surroundings = NOTHING_KNOWN
) -> Reading | ManifestRejected:
    """As ``parse``, with what an author should know of files that are good."""
    found = _parts(source_markdown, trigger_markdown)
    if isinstance(found, ManifestRejected):
        return found
    manifest, config = found
    servers = tuple((name, undeclared(name, config)) for name in manifest.mcp_servers)
    return Reading(manifest, advise(manifest, config, around), needs(manifest, config), servers)


def _parts(source_markdown: str, trigger_markdown: str) -> tuple[Manifest, Fields] | ManifestRejected:
    of_skill, of_trigger = Problems(SKILL_FILE), Problems(TRIGGER_FILE)
    skill = _file(split(source_markdown, of_skill), of_skill)
    trigger = _file(split(trigger_markdown, of_trigger, fence_optional=True), of_trigger)
    found = _manifest(skill, trigger)
    errors = (*of_skill.found, *of_trigger.found)
    return rejected(errors) if errors else found


class _File(msgspec.Struct, frozen=True):
    front: Front
    fields: Fields
    problems: Problems


def _file(front: Front | None, problems: Problems) -> _File:
    most = MAX_SKILL_VALUES if problems.file == SKILL_FILE else MAX_VALUES
    node = read_yaml(front.yaml, front.yaml_line, most) if front is not None else None
    if front is not None and isinstance(node, Table):
        return _File(front, Fields(node, "", problems), problems)
    if isinstance(node, NotYaml):
        problems.add(node.line, "", node.message)
    elif node is not None:
        problems.add(node.line, "", "the front matter must be a mapping, one `key: value` a line")
    # One problem says it all: what an empty file would lack goes unheard, and the other file is still read.
    unheard = Problems(problems.file)
    return _File(Front("", 1, "", 1), Fields(Table((), 1), "", unheard), unheard)


def _manifest(skill: _File, trigger: _File) -> tuple[Manifest, Fields]:
    """Only as good as its parts: those that had a problem hold stand-ins. With where the configuration is."""
    front = skill.fields
    name = front.text("name", most=64, pattern=_NAME)
    config = _config(trigger, name)
    runtime = config.choice("runtime", Runtime, Runtime.AGENT)
    network = read_network(config.table("network"), most=MAX_NAMES)
    models = read_models(config, front)
    tools = config.texts("tools", most=MAX_NAMES, chars=64, pattern=_TOOL)
    manifest = Manifest(
        name=name,
        description=front.text("description", most=MAX_DESCRIPTION_CHARS),
        version=front.text("version", most=32, pattern=_VERSION),
        instructions=skill.front.body.strip("\n"),
        triggers=read_triggers(config),
        required_tags=_tags(front),
        resources=read_resources(config.table("resources")),
        image=config.optional_text("image", most=160, pattern=_IMAGE),
        tools=tools,
        credentials=config.texts("credentials", most=MAX_NAMES, chars=64, pattern=CREDENTIAL_NAME),
        integrations=config.texts("integrations", most=MAX_NAMES, chars=64, pattern=_SERVICE),
        network_allow=network.hosts,
        network_rules=network.rules,
        env=read_env(config),
        budget=_budget(config),
        gates=read_gates(config.table("gates", code=INVALID_GATES)),
        context=_context(config.table("context"), runtime, models, read_provider(config)),
        runtime=runtime,
        command=_command(skill) if runtime is Runtime.COMMAND else None,
        model=models[0].model if models else None,
        provider=models[0].provider if models else read_provider(config),
        workspace=config.choice("workspace", WorkspaceKind, WorkspaceKind.FRESH),
        allow_unsandboxed=config.flag("allow_unsandboxed"),
        fallbacks=models[1:],
        mcp_servers=read_mcp_servers(config, runtime, tools),
    )
    return manifest, config


def _context(
    fields: Fields | None, runtime: Runtime, models: Sequence[ModelWish], provider: str | None
) -> dict[str, Any]:
    """The author's own keys as they are; those that the loop of a model reads must make sense to it."""
    found = free_json(fields)
    for key, value in found.items() if fields is not None and runtime is Runtime.AGENT else ():
        bound = CONTEXT.get(key)
        if fields is not None and bound is not None and not bound.admits(value):
            fields.wrong(key, f"must be {bound}")
    if fields is not None and runtime is Runtime.AGENT:
        for key, message in option_faults(found, [wish.provider for wish in models] or [provider]):
            fields.wrong(key, message)
    return found


def _tags(skill: Fields) -> tuple[str, ...]:
    return skill.coded(INVALID_REQUEST).texts("tags", most=MAX_TAGS, chars=MAX_TAG_CHARS, pattern=_TAG)


def _config(trigger: _File, skill_name: str) -> Fields:
    """Where the configuration stands: at the top level or under ``x-usezombie``."""
    fields = trigger.fields
    name = fields.text("name", most=64, pattern=_NAME)
    if name and skill_name and name != skill_name:
        message = f"`{name}` is not the name in {SKILL_FILE}, `{skill_name}`; write the same in both"
        fields.wrong("name", message, code=NAMES_DIFFER)
    _refuse_singular(fields)
    if _NESTED not in fields:
        fields.only(_CONFIG | {"name"}, told=frozenset({SINGULAR}))
        return fields
    for key in sorted(_CONFIG):
        if key in fields:
            fields.wrong(key, f"stands beside `{_NESTED}`; move it below that key")
    nested = fields.table(_NESTED)
    if nested is None:
        return Fields(Table((), 1), "", Problems(TRIGGER_FILE))
    _refuse_singular(nested)
    nested.only(_CONFIG, told=frozenset({SINGULAR}))
    return nested


def _refuse_singular(fields: Fields) -> None:
    if SINGULAR in fields:
        fields.wrong(SINGULAR, "write `triggers:` and a list of triggers below it, one `- type: …` each")


def _budget(config: Fields) -> Budget | None:
    fields = config.table("budget")
    if fields is None:
        return None
    fields.only(frozenset({"daily_dollars", "monthly_dollars"}))
    daily = fields.dollars("daily_dollars", most=MAX_DAILY_DOLLARS, required=True)
    monthly = fields.dollars("monthly_dollars", most=MAX_MONTHLY_DOLLARS, required=False)
    return Budget(daily or 0, monthly)


def _command(skill: _File) -> Command | None:
    found = find_command(skill.front.body, skill.front.body_line)
    if isinstance(found, NoCommand):
        skill.problems.add(found.line, "", found.message)
        return None
    return found
