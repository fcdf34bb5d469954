"""Makes who takes part in a run, before anything goes wrong: tenants, their agents, holders' tokens."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, NamedTuple

import trio

from sexton_http.identity.tokens import TokenKind, digest, mint
from sexton_storage.postgres import open_postgres_storage
from sexton_storage.records.api_keys import ApiKey
from sexton_storage.records.tenants import PlanTier, Tenant
from sexton_storage.records.users import Role, User
from sexton_storage.records.workspaces import Workspace
from tests.nemesis.clients.task import CREDENTIAL, SECRET, SLOTS, Site
from tests.nemesis.schedule import MEMBERS, Group
from tests.nemesis.world import TAG
from tests.worlds.nodes import Node
from tests.worlds.samples import command_body, skill_md, trigger_md
from tests.worlds.storage import RICH, new_id

COMMAND_AGENTS: Final = 8
INSTALLED_TOGETHER: Final = 8
TRIGGER: Final = f"type: webhook\n    source: github\n    signature:\n      secret_ref: {CREDENTIAL}"
HELD_TAG: Final = "held"
SCRIPT: Final = "cat >/dev/null\nsexton-step step look\nsleep 0.2\necho done"
ASKING: Final = "cat >/dev/null\nsexton-step step ask\nsexton-step approve --action go --tool deploy || true"


class Cast(NamedTuple):
    """Who takes part."""

    sites: tuple[Site, ...]
    tokens: tuple[str, ...]
    """The holders'."""


async def set_up(node: Node, dsn: str, *, agents: int, tenants: int) -> Cast:
    """The node's own tenant, with agents of the real runners too, and others; the same part each."""
    each = agents // tenants
    sites = [await _furnish(node, node.server.ready["tenant_id"], each, COMMAND_AGENTS)]
    for tenant, other in await _others(node, dsn, tenants - 1):
        sites.append(await _furnish(other, tenant, each, 0))
    return Cast(tuple(sites), tuple(await _tokens(node)))


async def _others(node: Node, dsn: str, count: int) -> Sequence[tuple[str, Node]]:
    made = []
    async with open_postgres_storage(dsn, migrates=False) as storage:
        for number in range(count):
            at = storage.clock.now_ms()
            tenant = Tenant(new_id(), f"tenant-{number}", PlanTier.ENTERPRISE, RICH, None, at, at)
            workspace = Workspace(new_id(), tenant.id, "workspace", paused=False, created_at=at)
            user = User(
                new_id(), tenant.id, f"local:{new_id()}", Role.ADMIN, platform_admin=False, created_at=at
            )
            await storage.tenants.create(tenant, workspace, user)
            key = mint(TokenKind.API_KEY, lambda size: os.urandom(size).hex()[:size])
            row = ApiKey(new_id(), tenant.id, "nemesis", "", Role.ADMIN, digest(key), at)
            await storage.api_keys.create(row)
            made.append((str(tenant.id), node.seen_by(f"/v1/workspaces/{workspace.id}", key)))
    return made


async def _furnish(node: Node, tenant: str, held: int, commanded: int) -> Site:
    secret = {"name": CREDENTIAL, "data": {"webhook_secret": SECRET}}
    await node.call("POST", f"{node.workspace}/credentials", secret)
    agents: list[str] = []
    commands: list[str] = []
    room = trio.CapacityLimiter(INSTALLED_TOGETHER)

    async def install(name: str, tag: str, script: str, into: list[str]) -> None:
        async with room:
            files = {
                "source_markdown": skill_md(name, body=command_body(script), tags=tag),
                "trigger_markdown": trigger_md(name, "runtime: command", trigger=TRIGGER),
            }
            into.append((await node.call("POST", f"{node.workspace}/zombies", files))["zombie_id"])

    async with trio.open_nursery() as nursery:
        for number in range(held):
            nursery.start_soon(install, f"held-{number}", HELD_TAG, SCRIPT, agents)
        for number in range(commanded):
            nursery.start_soon(install, f"command-{number}", TAG, SCRIPT if number % 4 else ASKING, commands)
    return Site(tenant, node.workspace, node.api_key, tuple(agents), tuple(commands))


async def _tokens(node: Node) -> list[str]:
    tokens = []
    for number in range(MEMBERS[Group.CLIENT]):
        minted = await node.call("POST", "/v1/fleet/enrolment-tokens", {}, "admin_token")
        body = {
            "host_id": f"holder-{number}",
            "sandbox_tier": "bubblewrap",
            "labels": [HELD_TAG],
            "slots": SLOTS,
        }
        tokens.append((await node.call("POST", "/v1/runners", body, minted["token"]))["runner_token"])
    return tokens
