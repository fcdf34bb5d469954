"""A whole server on a simulated machine: its HTTP, its actors, its journal."""

from __future__ import annotations

from contextlib import AsyncExitStack
from functools import partial
from random import Random
from typing import Final
from uuid import UUID

import trio
from prometheus_client import CollectorRegistry

from sexton_actors.catalogue import Catalogue
from sexton_actors.plans import STARTER_CREDIT_NANOS
from sexton_actors.protocol.hub import FramesWritten
from sexton_actors.retention_terms import RetentionTerms
from sexton_actors.secrets import Secrets
from sexton_actors.signals import hear
from sexton_actors.terms import LOOK_EVERY_S
from sexton_actors.tree import tree
from sexton_actors.world import World as Actors
from sexton_engine import open_system
from sexton_http.app import create_app
from sexton_http.gateway.node_questions import NodeQuestions
from sexton_http.gateway.operations import Operation
from sexton_http.identity.bootstrap import Installation, bootstrap
from sexton_http.identity.context import VERSION, HttpContext, HttpSettings
from sexton_http.identity.tokens import TokenKind, digest, mint
from sexton_http.routes.shared.actor_asks import answer_node
from sexton_http.routes.shared.actor_looks import Here
from sexton_http.routes.table import OPERATIONS
from sexton_http.wire.server import open_doors, serve
from sexton_http.wire.stop_signal import Stop
from sexton_storage.background import in_background
from sexton_storage.errors import StorageUnavailable
from sexton_storage.records.api_keys import ApiKey
from sexton_storage.records.nodes import NodeRecord
from sexton_storage.records.tenants import PlanTier, Tenant
from sexton_storage.records.users import Role, User
from sexton_storage.records.workspaces import Workspace
from tests.simulation.product import rare_looks
from tests.simulation.product.busy_agents import MODEL
from tests.simulation.product.database import Database, NodeStorage
from tests.simulation.world.processes import PROCESS, Machine
from tests.worlds.samples import PlainSealer

PORT = 8080
RESTART_S = 5.0
"""As in ``systemd/sexton.service``."""
NAME = "sexton"
"""Under which all nodes are found."""


def _routes(paths: tuple[str, ...], nouns: tuple[str, ...]) -> tuple[Operation, ...]:
    return tuple(
        operation
        for operation in OPERATIONS
        if operation.path.startswith(paths)
        or operation.path.split("{workspace_id}/")[-1].split("/")[0] in nouns
    )


_PATHS: Final = ("/v1/runners", "/v1/webhooks", "/v1/fleet")
_NOUNS: Final = ("approvals", "credentials", "zombies")
_IN_BULK: Final = ("events:replay", "events:cancel", "jobs", "erasures")
_ALONE: Final = (
    "/v1/tenants/me/billing",
    "/v1/admin/tenants/{tenant_id}/credit",
    "/v1/workspaces/{workspace_id}/events/{event_id}/replay",
)
_PROPOSALS: Final = "/v1/agents/{agent_id}/proposals"
_DECISIONS: Final = tuple(f"{_PROPOSALS}/{{proposal_id}}:{word}" for word in ("approve", "reject"))
ROUTES: Final = {
    False: (
        *_routes(_PATHS, _NOUNS),
        *(one for one in _routes((), _IN_BULK) if one.method == "POST"),
        *(one for one in OPERATIONS if one.path in (*_ALONE, *_DECISIONS)),
        *(one for one in OPERATIONS if (one.method, one.path) == ("GET", _PROPOSALS)),
    ),
    True: _routes((*_PATHS, "/v1/api-keys"), (*_NOUNS, "retention")),
}
"""Those that a simulation asks, by whether it is at the slow pace.

To mount them all takes a node longer than a minute of its life does.
"""


class NodeIds:
    """UUIDv7 by the calendar of a machine."""

    def __init__(self, machine: Machine, rng: Random) -> None:
        self._machine = machine
        self._rng = rng

    def __call__(self) -> UUID:
        now_ms = round(self._machine.calendar_s() * 1000)
        return UUID(int=now_ms << 80 | 7 << 76 | 2 << 62 | self._rng.getrandbits(62))


def make_world(storage: NodeStorage, machine: Machine, rng: Random, *, is_rare: bool = False) -> Actors:
    return Actors(
        storage=storage,
        secrets=Secrets(storage.credentials, PlainSealer(), storage.clock),
        catalogue=Catalogue("2026-01-01", [MODEL]),
        new_id=NodeIds(machine, rng),
        new_token=lambda size: rng.randbytes(size).hex(),
        look_every_s=rare_looks.LOOK_EVERY_S if is_rare else LOOK_EVERY_S,
        retention=rare_looks.RETENTION if is_rare else RetentionTerms(),
    )


async def first_start(
    database: Database, machine: Machine, rng: Random, credit_nanos: int = STARTER_CREDIT_NANOS
) -> tuple[Installation, str]:
    """Make the tenant, the workspace and the key that everybody uses; give another tenant's key too."""
    storage = database.open(machine)
    async with in_background(storage.journal.run):
        await storage.link.pass_time()
        world = make_world(storage, machine, rng)
        made = await bootstrap(
            storage,
            PlainSealer(),
            new_id=world.new_id,
            new_token=world.new_token,
            credit_nanos=credit_nanos,
        )
        return made, await _add_stranger(world)


async def _add_stranger(world: Actors) -> str:
    storage, now, tenant_id, user_id = world.storage, world.now_ms(), world.new_id(), world.new_id()
    tenant = Tenant(
        id=tenant_id,
        name="stranger",
        plan_tier=PlanTier.ENTERPRISE,
        balance_nanos=STARTER_CREDIT_NANOS,
        exhausted_at=None,
        created_at=now,
        updated_at=now,
    )
    workspace = Workspace(world.new_id(), tenant_id, "default", paused=False, created_at=now)
    user = User(user_id, tenant_id, "stranger", Role.ADMIN, platform_admin=False, created_at=now)
    await storage.tenants.create(tenant, workspace, user)
    token, key_id = mint(TokenKind.API_KEY, world.new_token), world.new_id()
    key = ApiKey(
        id=key_id,
        tenant_id=tenant_id,
        key_name="stranger",
        description="",
        role=Role.ADMIN,
        token_hash=digest(token),
        created_at=now,
        owner_id=user_id,
    )
    await storage.api_keys.create(key)
    return token


async def _installation(storage: NodeStorage, sealer: PlainSealer, world: Actors) -> Installation:
    while True:
        while not await storage.healthy():
            await trio.sleep(1)
        try:
            return await bootstrap(storage, sealer, new_id=world.new_id, new_token=world.new_token)
        except StorageUnavailable:
            # The database went away meanwhile. A real server ends, and its service manager starts it again.
            await trio.sleep(RESTART_S)


async def run_node(database: Database, machine: Machine, seed: int, *, is_rare: bool = False) -> None:
    """Serve until killed, or until ``database.stops`` is told to stop."""
    rng = Random(seed)
    storage, sealer, registry, stop = database.open(machine), PlainSealer(), CollectorRegistry(), Stop()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(in_background(storage.journal.run))
        world = make_world(storage, machine, rng, is_rare=is_rare)
        installation = await _installation(storage, sealer, world)
        doors = await open_doors("0.0.0.0", PORT)
        system = await stack.enter_async_context(open_system(tree(world), rng=rng))
        if (process := PROCESS.get()) is not None:
            database.systems[process], database.stops[process] = system, stop
        storage.signals.listen(partial(hear, world, system.tell))
        storage.on_frames(lambda heads: system.tell("hub", "", FramesWritten(tuple(heads))))
        here = Here(world.new_id(), VERSION, None)
        nodes = NodeQuestions(
            storage,
            NodeRecord(here.node, machine.name, VERSION, world.now_ms(), world.now_ms()),
            partial(answer_node, system, None, here),
            new_id=world.new_id,
        )
        context = HttpContext(
            system=system,
            world=world,
            issuer=installation.issuer,
            registry=registry,
            settings=HttpSettings(f"http://{NAME}:{PORT}"),
            stop=stop,
            keys=installation.keys,
            nodes=nodes,
            catalogue_key=installation.catalogue_key,
        )
        nursery = await stack.enter_async_context(trio.open_nursery())
        nursery.start_soon(storage.inbox.run)
        nursery.start_soon(nodes.run)
        await serve(create_app(context, operations=ROUTES[is_rare]), doors, stop=stop)
        await nodes.leave()
        nursery.cancel_scope.cancel()
