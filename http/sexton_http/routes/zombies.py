"""Agents: install, look at, steer, stop."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated
from uuid import UUID

import msgspec

from sexton_actors.loans import withheld
from sexton_actors.manifest.model import from_json
from sexton_actors.pins import pin_of
from sexton_actors.protocol.zombie import (
    Accepted,
    AlreadyAccepted,
    ChangeStatus,
    Configured,
    Install,
    Installed,
    Reconfigure,
    Remove,
    StatusChanged,
    Steer,
)
from sexton_actors.refusal import Refusal
from sexton_actors.zombie.versions import masked_paths
from sexton_actors.zombie.waits import WaitingFor, waiting_for
from sexton_http.answers import Problem
from sexton_http.bodies.cursors import Place, decode, encode, fingerprint
from sexton_http.bodies.shapes import Body, Cursor, Query, Shape
from sexton_http.gateway.audit_entries import ask
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import MAX_FILES_BYTES, Creates, NoBody, NoQuery, operation
from sexton_http.gateway.seeds import key_of
from sexton_http.identity.principals import check_role, may_grant
from sexton_http.routes.shared.agent_files import (
    NEW_FILES,
    ManifestWarning,
    NewUrls,
    bounded,
    urls,
    warnings_of,
    warnings_of_active,
)
from sexton_http.routes.shared.agent_views import (
    AgentPin,
    Spend,
    ZombiePage,
    ZombieRecord,
    budget_of,
    is_over,
    view_agent,
    view_pin,
    view_trial,
)
from sexton_http.routes.shared.message_files import FILE_CODES, MessageFiles, settle_files, wanted_files
from sexton_http.routes.shared.message_form import MESSAGE_BYTES, MESSAGE_FORM
from sexton_http.routes.shared.plan_limits import FULL, entitled_of
from sexton_http.routes.shared.runner_needs import unmet_needs
from sexton_storage.records.users import Role
from sexton_storage.records.zombies import ZombieStatus, summary_of

TAG = "Agents"
MARKDOWN_BYTES = 64 * 1024
MAX_MESSAGE_BODY_BYTES = 256 * 1024
"""A message with as many files as it may name, however long their names are."""
HELD = ("UZ-ZMB-009",)
VERSION_MAX = 2**31 - 1
VERSION_CODES = ("UZ-HARNESS-001", "UZ-HARNESS-002", "UZ-HARNESS-003")
"""What is told who asks for a version of an agent that cannot be run."""
ENTITLED = ("UZ-BILLING-005", "UZ-ENTL-001", "UZ-ENTL-003")
"""What is told who asks for a run that the tenant's plan or balance does not allow."""


class NewZombie(Body):
    """The two files of an agent, each 1 byte to 64 KiB."""

    source_markdown: Annotated[str, msgspec.Meta(min_length=1, max_length=MARKDOWN_BYTES)]
    trigger_markdown: Annotated[str, msgspec.Meta(min_length=1, max_length=MARKDOWN_BYTES)]


class ZombieInstalled(Shape):
    zombie_id: UUID
    name: str
    status: ZombieStatus
    config_version_id: UUID
    webhook_urls: Mapping[str, str]
    approval_token: str
    """Shown in this answer only."""
    warnings: list[ManifestWarning]
    """What is good, but will probably not do what its author wants."""


class ZombieQuery(Query):
    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 20
    cursor: Cursor | None = None
    status: ZombieStatus | None = None
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=128)] | None = None
    """A glob."""


class ZombieTarget(StrEnum):
    """``paused`` is set by the platform and cannot be asked for."""

    ACTIVE = "active"
    STOPPED = "stopped"
    KILLED = "killed"


class ZombiePatch(Body):
    """What is left out stays as it is; one of the three is needed."""

    status: ZombieTarget | None = None
    source_markdown: Annotated[str, msgspec.Meta(min_length=1, max_length=MARKDOWN_BYTES)] | None = None
    trigger_markdown: Annotated[str, msgspec.Meta(min_length=1, max_length=MARKDOWN_BYTES)] | None = None


class ZombieChanged(Shape):
    zombie_id: UUID
    status: ZombieStatus
    name: str
    config_version_id: UUID
    config_revision: int
    webhook_urls: NewUrls = msgspec.UNSET
    """When the files have changed: the addresses, without those whose secret was shown before."""
    warnings: list[ManifestWarning] | msgspec.UnsetType = msgspec.UNSET
    """When files were given: what is good, but will probably not do what its author wants."""
    pin: AgentPin | msgspec.UnsetType = msgspec.UNSET
    """When it is pinned: new files are kept as `held_version`, and the pinned version stays active."""


class NewMessage(Body):
    """1 to 8,192 bytes of UTF-8, and perhaps files that the run finds in `in` of its folder."""

    message: Annotated[str, msgspec.Meta(min_length=1, max_length=MESSAGE_BYTES)]
    files: MessageFiles = msgspec.field(default_factory=list)
    agent_version: Annotated[int, msgspec.Meta(ge=1, le=VERSION_MAX)] | None = None
    """The number of the agent's version that is to work on it, whichever is active then; for operators."""


class MessageAccepted(Shape):
    event_id: UUID
    status: str = "accepted"


@operation(
    "POST",
    "/v1/workspaces/{workspace_id}/zombies",
    tag=TAG,
    status=201,
    creates=Creates.ONCE,
    secret=True,
    starts_work=True,
    codes=(
        *NEW_FILES,
        "UZ-WORKSPACE-003",
        *FULL,
        "UZ-ENTL-004",
    ),
    max_body=MAX_FILES_BYTES,
)
async def install_zombie(call: Call[NewZombie, NoQuery]) -> ZombieInstalled | Refusal:
    """Install an agent from its two files."""
    ctx, body, workspace_id = call.ctx, call.body, call.id("workspace_id")
    bounded("source_markdown", body.source_markdown)
    bounded("trigger_markdown", body.trigger_markdown)
    await _leave_room(call, workspace_id)
    files = body.source_markdown, body.trigger_markdown
    member = call.member
    message = Install(workspace_id, member.tenant_id, *files, by=member.by, may_grant=may_grant(member))
    match await ask(ctx.system, "zombie", ctx.world.new_id(), message):
        case Refusal() as refusal:
            return refusal
        case Installed(zombie=zombie) as installed:
            return ZombieInstalled(
                zombie_id=zombie.id,
                name=zombie.name,
                status=zombie.status,
                config_version_id=zombie.config_version_id,
                webhook_urls=urls(ctx, installed.webhook_paths),
                approval_token=installed.approval_token,
                warnings=await warnings_of(ctx, zombie, body.source_markdown, body.trigger_markdown),
            )


@operation("GET", "/v1/workspaces/{workspace_id}/zombies", tag=TAG)
async def list_zombies(call: Call[NoBody, ZombieQuery]) -> ZombiePage:
    """List the workspace's agents, newest first."""
    query, zombies, workspace_id = call.query, call.ctx.world.storage.zombies, call.id("workspace_id")
    filters = fingerprint("zombies", workspace_id, query.status, query.name)
    place = None if query.cursor is None else decode(query.cursor, filters)
    rows = await zombies.summaries(
        workspace_id,
        limit=query.limit + 1,
        after=None if place is None else place.page,
        status=query.status,
        name_glob=query.name,
    )
    shown = rows[: query.limit]
    more = len(rows) > query.limit
    following = encode(Place(shown[-1].created_at, shown[-1].id, filters)) if more else None
    total = await zombies.count(workspace_id)
    return ZombiePage([view_agent(zombie) for zombie in shown], total, following, following)


@operation("GET", "/v1/workspaces/{workspace_id}/zombies/{zombie_id}", tag=TAG, codes=HELD)
async def get_zombie(call: Call[NoBody, NoQuery]) -> ZombieRecord:
    """Show one agent with its two files, its budget and what it has spent."""
    world, zombie_id = call.ctx.world, call.id("zombie_id")
    zombie = await world.storage.zombies.load(zombie_id)
    if zombie is None or zombie.workspace_id != call.id("workspace_id"):
        raise Problem("UZ-ZMB-009", f"the workspace has no agent {zombie_id}")
    config = await world.storage.zombies.load_config(zombie.config_version_id)
    day, month = await world.storage.zombies.spend(zombie_id, world.now_ms())
    budget = budget_of(zombie)
    workspace = await call.services.scopes.workspace(call.member, zombie.workspace_id)
    waits = waiting_for(
        zombie.status,
        await world.storage.events.waits(zombie_id),
        is_over_budget=is_over(budget, day, month),
        is_workspace_paused=workspace.paused,
        is_withheld=bool(withheld(zombie.lending, from_json(zombie.compiled))),
    )
    unmet = await unmet_needs(world.storage, zombie, world.now_ms()) if waits is WaitingFor.RUNNER else ()
    return ZombieRecord(
        **msgspec.structs.asdict(view_agent(summary_of(zombie))),
        workspace_id=zombie.workspace_id,
        source_markdown="" if config is None else config.source_markdown,
        trigger_markdown="" if config is None else config.trigger_markdown,
        config_version_id=zombie.config_version_id,
        config_revision=zombie.config_revision,
        budget=budget,
        spend=Spend(day, month),
        waiting_for=waits,
        unmet_needs=unmet,
        webhook_urls=urls(call.ctx, masked_paths(zombie.id, from_json(zombie.compiled))),
        pin=view_pin(pin_of(zombie.pin)),
        on_trial=view_trial(zombie),
    )


@operation(
    "PATCH",
    "/v1/workspaces/{workspace_id}/zombies/{zombie_id}",
    tag=TAG,
    role=Role.OPERATOR,
    codes=(*HELD, "UZ-ZMB-010", *NEW_FILES, *FULL, "UZ-ENTL-004"),
    max_body=MAX_FILES_BYTES,
)
async def change_zombie(call: Call[ZombiePatch, NoQuery]) -> ZombieChanged | Refusal:
    """Stop, wake or kill an agent, or give it other files.

    New files are a new configuration version, active at once; what runs goes on as it began. Of an agent
    that is pinned they are a version that waits, and `pin` says which. Triggers that stay keep their secrets;
    a new secret is shown in this answer only.
    """
    zombie_id, patch, by = call.id("zombie_id"), call.body, call.member.by
    await call.services.scopes.require_zombie(call.id("workspace_id"), zombie_id)
    status = None if patch.status is None else patch.status.value
    source, trigger = patch.source_markdown, patch.trigger_markdown
    if source is None and trigger is None:
        if status is None:
            raise Problem("UZ-REQ-001", "the body must have status, source_markdown or trigger_markdown")
        return await _changed(call, await ask(call.ctx.system, "zombie", zombie_id, ChangeStatus(status, by)))
    bounded("source_markdown", source)
    bounded("trigger_markdown", trigger)
    message = Reconfigure(source, trigger, by, status, may_grant=may_grant(call.member))
    return await _changed(call, await ask(call.ctx.system, "zombie", zombie_id, message))


async def _changed(
    call: Call[ZombiePatch, NoQuery], reply: StatusChanged | Configured | Refusal
) -> ZombieChanged | Refusal:
    if isinstance(reply, Refusal):
        return reply
    zombie = reply.zombie
    call.services.scopes.forget_zombie(zombie.id)
    paths = reply.webhook_paths if isinstance(reply, Configured) else None
    given = call.body.source_markdown is not None or call.body.trigger_markdown is not None
    return ZombieChanged(
        zombie_id=zombie.id,
        status=zombie.status,
        name=zombie.name,
        config_version_id=zombie.config_version_id,
        config_revision=zombie.config_revision,
        webhook_urls=msgspec.UNSET if paths is None else urls(call.ctx, paths),
        warnings=await warnings_of_active(call.ctx, zombie) if given else msgspec.UNSET,
        pin=view_pin(pin_of(zombie.pin)) or msgspec.UNSET,
    )


@operation(
    "DELETE",
    "/v1/workspaces/{workspace_id}/zombies/{zombie_id}",
    tag=TAG,
    role=Role.OPERATOR,
    status=204,
    codes=HELD,
)
async def delete_zombie(call: Call[NoBody, NoQuery]) -> Refusal | None:
    """Kill an agent, whatever its status, and purge it with all its history.

    What it has cost stays accounted for.
    """
    zombie_id = call.id("zombie_id")
    await call.services.scopes.require_zombie(call.id("workspace_id"), zombie_id)
    reply = await ask(call.ctx.system, "zombie", zombie_id, Remove(call.member.by))
    call.services.scopes.forget_zombie(zombie_id)
    return reply if isinstance(reply, Refusal) else None


@operation(
    "POST",
    "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/messages",
    tag=TAG,
    status=202,
    creates=Creates.EVENT,
    starts_work=True,
    codes=(
        *HELD,
        "UZ-AUTH-009",
        "UZ-ZMB-001",
        "UZ-ZMB-012",
        "UZ-EVENT-002",
        *ENTITLED,
        "UZ-ENTL-005",
        *VERSION_CODES,
        *FILE_CODES,
    ),
    max_body=MAX_MESSAGE_BODY_BYTES,
    intake=MESSAGE_FORM,
)
async def steer_zombie(call: Call[NewMessage, NoQuery]) -> MessageAccepted | Refusal:
    """Wake an agent with a person's message, and with files if it names or holds some.

    A message that is refused, for a file or for anything else, brings none. As `multipart/form-data` it holds
    its files: the field `message`, and each part with a file name is a file.
    """
    zombie_id = call.id("zombie_id")
    await call.services.scopes.require_zombie(call.id("workspace_id"), zombie_id)
    _bounded("message", call.body.message, MESSAGE_BYTES)
    if call.body.agent_version is not None:
        # An older version may have weaker gates.
        check_role(call.member, Role.OPERATOR)
    files, event_id, member = wanted_files(call.body.files), call.ctx.world.new_id(), call.member
    message = Steer(
        call.body.message,
        member.name,
        call.traceparent,
        key_of(call.seed),
        files=files,
        sender=member.by,
        event_id=event_id,
        asked_version=call.body.agent_version,
    )
    reply = await call.ctx.system.ask("zombie", zombie_id, message)
    if files:
        await settle_files(call, event_id, reply)
    match reply:
        case Refusal() as refusal:
            return refusal
        case Accepted(event_id=event_id) | AlreadyAccepted(event_id=event_id):
            return MessageAccepted(event_id)


async def _leave_room(call: Call[NewZombie, NoQuery], workspace_id: UUID) -> None:
    entitled = await entitled_of(call)
    limit, zombies = entitled.limits.agents_per_workspace, call.ctx.world.storage.zombies
    if limit is not None and await zombies.count(workspace_id) >= limit:
        raise Problem("UZ-WORKSPACE-003", f"the {entitled.tier} plan allows {limit} agents per workspace")


def _bounded(field: str, text: str, limit: int) -> None:
    """Bounds are in bytes; the declaration can only count characters."""
    if len(text.encode()) > limit:
        raise Problem("UZ-REQ-001", f"/{field}: over {limit} bytes", facts={"pointer": f"/{field}"})
