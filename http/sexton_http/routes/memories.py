"""What agents remember: read by people and by the agent's own key, written by its runs."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar
from uuid import UUID

import msgspec

from sexton_http.answers import Problem
from sexton_http.bodies.memories import (
    CATEGORY_CHARS,
    KEY_CHARS,
    MemoryEntry,
    MemoryList,
    change_of,
    view_memory,
)
from sexton_http.bodies.shapes import Count, Query, Shape
from sexton_http.gateway.call import Call
from sexton_http.gateway.faults import STORAGE_WAIT_S
from sexton_http.gateway.operations import KIB, Auth, NoBody, NoQuery, operation
from sexton_http.routes.shared.held_lease import IN_SHADOW, check_effects, check_live
from sexton_storage.errors import StorageUnavailable
from sexton_storage.records.leases import Lease, LeaseToken
from sexton_storage.records.users import Role
from sexton_storage.terms import MEMORY_LIMIT

TAG = "Memories"
QUERY_CHARS = 1024
RUNNER_PATH = "/v1/runners/me/memory/{zombie_id}"
RUNNER_CODES = ("UZ-MEM-001", "UZ-MEM-002", "UZ-MEM-003", "UZ-RUN-005", "UZ-RUN-006")

R = TypeVar("R")


class MemoryQuery(Query):
    query: Annotated[str, msgspec.Meta(max_length=QUERY_CHARS)] = ""
    """Words; entries that hold any of them in key or content are found, those with more of them first."""
    category: Annotated[str, msgspec.Meta(max_length=CATEGORY_CHARS)] | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50


class MemoryKey(Query):
    key: Annotated[str, msgspec.Meta(max_length=KEY_CHARS)] = ""
    """The entry's; it is needed."""


class FencedMemoryQuery(MemoryQuery):
    lease_id: UUID | None = None
    """The lease that the runner reads for; without it the one that it holds of the agent."""
    fencing_token: Count | None = None


class FencedEntry(MemoryEntry, kw_only=True):
    lease_id: UUID | None = None
    """The lease that the runner writes for; without it the one that it holds of the agent."""
    fencing_token: Count | None = None


class MemoryKept(Shape):
    key: str
    updated_at: int


@operation(
    "GET",
    "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/memories",
    tag=TAG,
    role=Role.USER,
    codes=("UZ-MEM-002", "UZ-MEM-003"),
    agents="UZ-MEM-001",
)
async def list_memories(call: Call[NoBody, MemoryQuery]) -> MemoryList:
    """Show what an agent remembers, newest first, or what fits a query, best first."""
    zombie_id = call.id("zombie_id")

    async def read() -> MemoryList:
        scope = await call.services.scopes.zombie(zombie_id)
        if scope is None or scope.workspace_id != call.id("workspace_id"):
            raise Problem("UZ-MEM-002", f"the workspace has no agent {zombie_id}")
        return await _search(call, zombie_id, call.query)

    return await _reached(read)


@operation(
    "DELETE",
    "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/memories",
    tag=TAG,
    role=Role.OPERATOR,
    status=204,
    codes=("UZ-ZMB-009",),
)
async def forget_memory(call: Call[NoBody, MemoryKey]) -> None:
    """Forget an entry of what an agent remembers; where there is none, it is forgotten already.

    A run that has begun may still know it, and may keep it again.
    """
    zombie_id = call.id("zombie_id")
    await call.services.scopes.require_zombie(call.id("workspace_id"), zombie_id)
    if not call.query.key:
        raise Problem("UZ-REQ-001", "key: say which entry", facts={"parameter": "key"})
    await call.ctx.world.storage.memories.forget(zombie_id, call.query.key)


@operation("GET", RUNNER_PATH, tag=TAG, auth=Auth.RUNNER, codes=RUNNER_CODES)
async def recall_memories(call: Call[NoBody, FencedMemoryQuery]) -> MemoryList:
    """Look up what the agent of a live lease remembers."""
    zombie_id, query = call.id("zombie_id"), call.query

    async def read() -> MemoryList:
        await _holding(call, zombie_id, query.lease_id, query.fencing_token)
        return await _search(call, zombie_id, query)

    return await _reached(read)


@operation(
    "POST",
    RUNNER_PATH,
    tag=TAG,
    auth=Auth.RUNNER,
    codes=(*RUNNER_CODES, IN_SHADOW),
    max_body=128 * KIB,
)
async def keep_memory(call: Call[FencedEntry, NoQuery]) -> MemoryKept:
    """Keep an entry for the agent of a live lease, or forget one.

    At 1,000 entries the oldest that is not `core` makes room; where all are `core` there is none.
    """
    zombie_id, body, world = call.id("zombie_id"), call.body, call.ctx.world
    change = change_of(body, "")

    async def write() -> MemoryKept:
        lease, held = await _holding(call, zombie_id, body.lease_id, body.fencing_token)
        check_effects(lease)
        now = world.now_ms()
        kept = await world.storage.memories.keep(zombie_id, held, [change], now)
        if kept is None:
            raise Problem("UZ-RUN-005", f"lease {held.lease_id} does not hold the agent any more")
        if kept.refused:
            detail = f"/key: the agent has {MEMORY_LIMIT} core entries; forget one before you add another"
            raise Problem("UZ-REQ-001", detail, facts={"pointer": "/key"})
        return MemoryKept(body.key, now)

    return await _reached(write)


async def _reached(work: Callable[[], Awaitable[R]]) -> R:
    """Raises Problem UZ-MEM-003 when what agents remember cannot be reached."""
    try:
        return await work()
    except StorageUnavailable as away:
        raise Problem(
            "UZ-MEM-003", "what agents remember cannot be reached now", wait_s=STORAGE_WAIT_S
        ) from away


async def _search(call: Call[Any, Any], zombie_id: UUID, query: MemoryQuery) -> MemoryList:
    found, total = await call.ctx.world.storage.memories.search(
        zombie_id, query=query.query, category=query.category, limit=query.limit
    )
    return MemoryList([view_memory(memory) for memory in found], total)


async def _holding(
    call: Call[Any, Any], zombie_id: UUID, lease_id: UUID | None, token: int | None
) -> tuple[Lease, LeaseToken]:
    """The lease by which this runner may touch the agent's memory now."""
    leases, zombies = call.ctx.world.storage.leases, call.ctx.world.storage.zombies
    lease = await (leases.live_of_zombie(zombie_id) if lease_id is None else leases.load(lease_id))
    mine = lease is not None and lease.runner_id == call.host.runner.id
    if lease is not None and mine and lease.zombie_id == zombie_id:
        return lease, check_live(lease, token, call.ctx.world.now_ms())
    if await zombies.load(zombie_id) is None:
        raise Problem("UZ-MEM-002", f"no agent has the id {zombie_id}")
    if lease_id is not None and not mine:
        raise Problem("UZ-RUN-006", "the runner does not hold this lease")
    raise Problem("UZ-MEM-001", "the runner holds no lease of this agent")
