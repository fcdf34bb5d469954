"""Keys of agents: minted, shown once, deleted."""

from typing import Annotated
from uuid import UUID

import msgspec

from sexton_http.answers import Problem
from sexton_http.bodies.names import fitting
from sexton_http.bodies.shapes import MAX_PAGE, Body, Positive, Query, Shape
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Creates, NoBody, NoQuery, operation
from sexton_http.identity.tokens import TokenKind, digest, mint
from sexton_http.routes.shared.plan_limits import FULL, leave_room
from sexton_storage.errors import NameTaken
from sexton_storage.records.agent_keys import AgentKey
from sexton_storage.records.holdings import Holding
from sexton_storage.records.users import Role

TAG = "Agent keys"
PATH = "/v1/workspaces/{workspace_id}/agent-keys"
NAME = r"^[A-Za-z0-9_-]{1,64}$"


class NewAgentKey(Body):
    zombie_id: UUID
    name: Annotated[str, fitting(NAME)]
    description: Annotated[str, msgspec.Meta(max_length=256)] = ""


class AgentKeyMade(Shape):
    agent_id: UUID
    """The id of the key, and so of the program outside that uses it."""
    workspace_id: UUID
    zombie_id: UUID
    name: str
    key: str
    """Shown in this answer only."""
    created_at: int


class AgentKeyItem(Shape):
    agent_id: UUID
    workspace_id: UUID
    zombie_id: UUID
    name: str
    description: str
    created_at: int
    last_used_at: int | None


class AgentKeyList(Shape):
    items: list[AgentKeyItem]
    total: int


class AgentKeyQuery(Query):
    zombie_id: UUID | None = None
    page: Positive = 1
    page_size: Annotated[int, msgspec.Meta(ge=1, le=100)] = 100


@operation(
    "POST",
    PATH,
    tag=TAG,
    role=Role.OPERATOR,
    status=201,
    creates=Creates.AGAIN,
    secret=True,
    codes=("UZ-APIKEY-005", "UZ-ZMB-009", *FULL),
)
async def create_agent_key(call: Call[NewAgentKey, NoQuery]) -> AgentKeyMade:
    """Mint a key with which a program outside acts for one agent, and for no other."""
    body, world, workspace_id = call.body, call.ctx.world, call.id("workspace_id")
    await call.services.scopes.require_zombie(workspace_id, body.zombie_id)
    await leave_room(call, Holding.AGENT_KEYS)
    token = mint(TokenKind.AGENT, call.new_token)
    key = AgentKey(
        id=call.new_id(),
        tenant_id=call.member.tenant_id,
        workspace_id=workspace_id,
        zombie_id=body.zombie_id,
        name=body.name,
        description=body.description,
        token_hash=digest(token),
        created_at=world.now_ms(),
        owner_id=call.member.person,
    )
    try:
        made = await world.storage.agent_keys.create(key)
    except NameTaken as taken:
        before = await world.storage.agent_keys.load(workspace_id, key.id)
        if before is None or before.token_hash != key.token_hash:
            raise Problem("UZ-APIKEY-005", f"the agent has a key named {body.name!r}") from taken
        key = before  # Made before its server died.
    else:
        if not made:
            raise Problem("UZ-ZMB-009", f"the workspace has no agent {body.zombie_id}")
    return AgentKeyMade(key.id, workspace_id, key.zombie_id, key.name, token, key.created_at)


@operation("GET", PATH, tag=TAG)
async def list_agent_keys(call: Call[NoBody, AgentKeyQuery]) -> AgentKeyList:
    """List the keys of the workspace's agents, newest first; their values are never shown."""
    query = call.query
    rows, total = await call.ctx.world.storage.agent_keys.list(
        call.id("workspace_id"),
        zombie_id=query.zombie_id,
        page=min(query.page, MAX_PAGE),
        page_size=query.page_size,
    )
    return AgentKeyList([_item(key) for key in rows], total)


@operation("DELETE", PATH + "/{key_id}", tag=TAG, role=Role.OPERATOR, status=204, codes=("UZ-APIKEY-003",))
async def delete_agent_key(call: Call[NoBody, NoQuery]) -> None:
    """Delete a key; from then on its bearer is nobody."""
    keys, workspace_id = call.ctx.world.storage.agent_keys, call.id("workspace_id")
    key_id = call.id("key_id")
    key = await keys.load(workspace_id, key_id)
    if key is None or not await keys.delete(workspace_id, key_id):
        raise Problem("UZ-APIKEY-003", f"the workspace has no agent key {key_id}")
    call.services.access.tell(key.id)


def _item(key: AgentKey) -> AgentKeyItem:
    return AgentKeyItem(
        agent_id=key.id,
        workspace_id=key.workspace_id,
        zombie_id=key.zombie_id,
        name=key.name,
        description=key.description,
        created_at=key.created_at,
        last_used_at=key.last_used_at,
    )
