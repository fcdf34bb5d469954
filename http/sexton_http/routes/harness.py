"""An agent's configuration, step by step: drafted, compiled, activated."""

from collections.abc import Mapping
from typing import Annotated, Any
from uuid import UUID

import msgspec

from sexton_actors.proposal.diff import diff_files
from sexton_actors.protocol.zombie import ActivateVersion, CompileVersion, Configured, DraftVersion
from sexton_actors.refusal import Refusal
from sexton_http.answers import Problem
from sexton_http.bodies.cursors import Place, decode, encode, fingerprint
from sexton_http.bodies.shapes import Body, Cursor, Query, Shape
from sexton_http.gateway.audit_entries import ask
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import MAX_FILES_BYTES, NoBody, NoQuery, operation
from sexton_http.identity.principals import may_grant
from sexton_http.routes.shared.agent_files import (
    MARKDOWN_CHARS,
    ManifestWarning,
    NewUrls,
    bounded,
    new_urls,
    warnings_of,
)
from sexton_http.routes.shared.plan_limits import FULL, leave_room
from sexton_storage.records.configs import ConfigStatus, ConfigVersion
from sexton_storage.records.holdings import Holding
from sexton_storage.records.users import Role

TAG = "Harness"
HARNESS = "/v1/workspaces/{workspace_id}/harness"
UNKNOWN_VERSION = "UZ-HARNESS-001"
Markdown = Annotated[str, msgspec.Meta(min_length=1, max_length=MARKDOWN_CHARS)]


class HarnessSource(Body):
    """The two files of an agent, each 1 byte to 64 KiB."""

    agent_id: UUID
    source_markdown: Markdown
    trigger_markdown: Markdown


class VersionWish(Body):
    config_version_id: UUID


class Finding(Shape):
    """One thing that is wrong with a version."""

    file: str
    line: int
    key: str
    message: str
    code: str


class VersionState(Shape):
    agent_id: UUID
    config_version_id: UUID
    version: int
    status: ConfigStatus


class VersionJudged(VersionState):
    errors: list[Finding]


class VersionCompiled(VersionJudged):
    warnings: list[ManifestWarning]
    """What will probably not do what the author wants; only for a version that makes an agent."""


class VersionItem(VersionJudged):
    created_at: int


class VersionPage(Shape):
    items: list[VersionItem]
    next_cursor: str | None


class VersionQuery(Query):
    agent_id: UUID
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50
    cursor: Cursor | None = None


class VersionText(VersionItem):
    """One version whole, and how it differs from another."""

    author: str
    """Who wrote its files, as `user:<id>` or `api:<id>`; empty where nobody noted it."""
    source_markdown: str
    trigger_markdown: str
    against_config_version_id: UUID | None
    """What it was compared with."""
    diff: str
    """Unified, from the files of that version to those of this one; empty where they are the same."""


class VersionCompared(Query):
    against: UUID | None = None
    """Another version of the same agent; left out: the active one."""


class VersionActivated(Shape):
    workspace_id: UUID
    agent_id: UUID
    config_version_id: UUID
    status: ConfigStatus
    webhook_urls: NewUrls = msgspec.UNSET


@operation(
    "PUT",
    HARNESS + "/source",
    tag=TAG,
    role=Role.OPERATOR,
    codes=("UZ-ZMB-009", "UZ-ZMB-010", *FULL),
    max_body=MAX_FILES_BYTES,
)
async def put_harness_source(call: Call[HarnessSource, NoQuery]) -> VersionState | Refusal:
    """Keep two files as an agent's next version, a draft.

    The same files as the newest draft's are that draft.
    """
    body = call.body
    bounded("source_markdown", body.source_markdown)
    bounded("trigger_markdown", body.trigger_markdown)
    await call.services.scopes.require_zombie(call.id("workspace_id"), body.agent_id)
    await leave_room(call, Holding.DRAFTS)
    message = DraftVersion(body.source_markdown, body.trigger_markdown, call.member.by)
    match await ask(call.ctx.system, "zombie", body.agent_id, message):
        case Refusal() as refusal:
            return refusal
        case ConfigVersion() as config:
            return VersionState(config.zombie_id, config.id, config.revision, config.status)


@operation(
    "POST",
    HARNESS + "/compile",
    tag=TAG,
    role=Role.OPERATOR,
    codes=(UNKNOWN_VERSION, "UZ-ZMB-010"),
)
async def compile_harness(call: Call[VersionWish, NoQuery]) -> VersionCompiled | Refusal:
    """Say whether a draft makes an agent, and if not, why.

    One that was compiled before comes back as it is.
    """
    config = await _version(call, call.body.config_version_id)
    match await ask(call.ctx.system, "zombie", config.zombie_id, CompileVersion(config.id)):
        case Refusal() as refusal:
            return refusal
        case ConfigVersion() as judged:
            zombie = await call.ctx.world.storage.zombies.load(judged.zombie_id)
            files = judged.source_markdown, judged.trigger_markdown
            return VersionCompiled(
                judged.zombie_id,
                judged.id,
                judged.revision,
                judged.status,
                _errors(judged.findings),
                [] if zombie is None else await warnings_of(call.ctx, zombie, *files),
            )


@operation(
    "POST",
    HARNESS + "/activate",
    tag=TAG,
    role=Role.OPERATOR,
    codes=(
        UNKNOWN_VERSION,
        "UZ-HARNESS-002",
        "UZ-HARNESS-004",
        "UZ-ZMB-006",
        "UZ-ZMB-010",
        *FULL,
        "UZ-ENTL-004",
    ),
)
async def activate_harness(call: Call[VersionWish, NoQuery]) -> VersionActivated | Refusal:
    """Make a compiled version the active one, or go back to one that was active before.

    It holds from the agent's next lease on. `webhook_urls` is there when the version has triggers with new
    secrets: they are shown in this answer only.
    """
    config = await _version(call, call.body.config_version_id)
    message = ActivateVersion(config.id, call.member.by, may_grant(call.member))
    match await ask(call.ctx.system, "zombie", config.zombie_id, message):
        case Refusal() as refusal:
            return refusal
        case Configured(zombie=zombie) as configured:
            return VersionActivated(
                workspace_id=zombie.workspace_id,
                agent_id=zombie.id,
                config_version_id=zombie.config_version_id,
                status=ConfigStatus.ACTIVE,
                webhook_urls=new_urls(call.ctx, configured),
            )


@operation("GET", HARNESS + "/versions", tag=TAG, codes=("UZ-ZMB-009",))
async def list_harness_versions(call: Call[NoBody, VersionQuery]) -> VersionPage:
    """List the versions of an agent's configuration, newest first."""
    query = call.query
    await call.services.scopes.require_zombie(call.id("workspace_id"), query.agent_id)
    filters = fingerprint("versions", query.agent_id)
    place = None if query.cursor is None else decode(query.cursor, filters)
    rows = await call.ctx.world.storage.zombies.list_configs(
        query.agent_id, limit=query.limit + 1, before=None if place is None else place.page
    )
    shown = rows[: query.limit]
    more = len(rows) > query.limit
    following = encode(Place(shown[-1].created_at, shown[-1].id, filters)) if more else None
    return VersionPage([_item(config) for config in shown], following)


@operation("GET", HARNESS + "/versions/{config_version_id}", tag=TAG, codes=(UNKNOWN_VERSION,))
async def get_harness_version(call: Call[NoBody, VersionCompared]) -> VersionText:
    """Show one version with its two files, and what it would change of the active one.

    `POST …/harness/activate` goes back to a version that was active before.
    """
    config = await _version(call, call.id("config_version_id"))
    other = await _compared_with(call, config)
    before = ("", "") if other is None else (other.source_markdown, other.trigger_markdown)
    return VersionText(
        **msgspec.structs.asdict(_item(config)),
        author=config.author,
        source_markdown=config.source_markdown,
        trigger_markdown=config.trigger_markdown,
        against_config_version_id=None if other is None else other.id,
        diff=diff_files(before, (config.source_markdown, config.trigger_markdown)),
    )


async def _compared_with(call: Call[NoBody, VersionCompared], config: ConfigVersion) -> ConfigVersion | None:
    zombies = call.ctx.world.storage.zombies
    if call.query.against is None:
        zombie = await zombies.load(config.zombie_id)
        return None if zombie is None else await zombies.load_config(zombie.config_version_id)
    other = await _version(call, call.query.against)
    if other.zombie_id != config.zombie_id:
        raise Problem(UNKNOWN_VERSION, f"{other.id} is a version of another agent")
    return other


async def _version(call: Call[Any, Any], wanted: UUID) -> ConfigVersion:
    config = await call.ctx.world.storage.zombies.load_config(wanted)
    scope = None if config is None else await call.services.scopes.zombie(config.zombie_id)
    if config is None or scope is None or scope.workspace_id != call.id("workspace_id"):
        raise Problem(UNKNOWN_VERSION, f"the workspace has no configuration version {wanted}")
    return config


def _item(config: ConfigVersion) -> VersionItem:
    return VersionItem(
        agent_id=config.zombie_id,
        config_version_id=config.id,
        version=config.revision,
        status=config.status,
        errors=_errors(config.findings),
        created_at=config.created_at,
    )


def _errors(findings: Mapping[str, Any]) -> list[Finding]:
    return msgspec.convert(findings.get("errors", []), list[Finding])
