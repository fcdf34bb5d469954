"""A whole server on loopback: real actors, real HTTP, storage in memory."""

import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Any
from uuid import UUID

import httpx2
import trio
from prometheus_client import CollectorRegistry

from sexton_actors.catalogue import Catalogue
from sexton_actors.exposition import OperatorsCollector
from sexton_actors.file_bounds import FileBounds
from sexton_actors.periodic.sweeper import Prune
from sexton_actors.plans import DEFAULT_TERMS, BillingTerms
from sexton_actors.protocol.hub import FramesWritten
from sexton_actors.secrets import Secrets
from sexton_actors.signals import hear
from sexton_actors.tree import tree
from sexton_actors.world import World
from sexton_engine import ActorSystem, open_system
from sexton_http.app import create_app
from sexton_http.gateway.node_questions import NodeQuestions
from sexton_http.identity.bootstrap import Installation, bootstrap
from sexton_http.identity.context import VERSION, HttpContext, HttpSettings, Issuer, Provider, ServerOption
from sexton_http.outbound.previews import Previewer
from sexton_http.outbound.slack import Slack
from sexton_http.routes.shared.actor_asks import answer_node
from sexton_http.routes.shared.actor_looks import Here
from sexton_http.wire.loop_turns import LoopTurns
from sexton_http.wire.open_connections import OpenConnections
from sexton_http.wire.server import open_doors, serve
from sexton_http.wire.stop_signal import Stop
from sexton_storage.archives.batches import Archiver
from sexton_storage.memory import MemoryStorage, open_memory_storage
from sexton_storage.objects.store import ObjectStore
from sexton_storage.records.auth_sessions import SessionBounds
from sexton_storage.records.nodes import NodeRecord
from sexton_storage.records.plans import first_plan
from sexton_storage.records.tenants import PlanTier
from sexton_storage.records.users import Role
from sexton_storage.stores import Storage
from sexton_storage.vault import Vault
from tests.worlds.answer_checks import check_answer, counted, note_problems
from tests.worlds.samples import SECRET, START_MS, Ids, PlainSealer, agent_files
from tests.worlds.trust import TRUST

NODE_ID = UUID("019346de-6400-7000-8000-000000000a01")
MAX_STREAMS_OPTION = ServerOption(
    name="--max-streams",
    variable="SEXTON_MAX_STREAMS",
    value="2048",
    source="default",
    says="Streams of server-sent events at once.",
)
"""What the server was started with."""


@dataclass
class HttpWorld:
    """One server and the people around it."""

    storage: Storage
    system: ActorSystem
    actors_world: World
    ctx: HttpContext
    installation: Installation
    base_url: str
    http: httpx2.AsyncClient
    registry: CollectorRegistry
    stop: Stop
    runners: dict[str, str] = field(default_factory=dict)
    deliveries: int = 0
    skew_ms: list[int] = field(default_factory=lambda: [0])
    """How far the database's clock was put forward."""

    def pass_ms(self, span: int) -> None:
        """Put the database's clock forward; the timers of this process do not notice."""
        self.skew_ms[0] += span

    @property
    def memory(self) -> MemoryStorage:
        """The storage, for a test that looks behind it."""
        assert isinstance(self.storage, MemoryStorage)
        return self.storage

    @property
    def ws(self) -> str:
        return f"/v1/workspaces/{self.installation.workspace_id}"

    @property
    def api_key(self) -> str:
        assert self.installation.api_key is not None
        return self.installation.api_key

    def admin_token(self) -> str:
        return self.installation.admin_token(self.actors_world.now_ms())

    def user_token(self, role: Role = Role.USER, **claims: Any) -> str:
        issuer = self.installation.issuer
        now_s = self.actors_world.now_ms() / 1000
        tenant_id = claims.pop("tenant_id", self.installation.tenant_id)
        return issuer.mint(subject="u1", tenant_id=tenant_id, role=role, now_s=now_s, **claims)

    async def call(self, method: str, path: str, token: str | None = "", **rest: Any) -> httpx2.Response:
        """A request as the admin key, or as whoever's token is given; None for nobody's."""
        headers = dict(rest.pop("headers", {}))
        if token is not None:
            headers["authorization"] = f"Bearer {token or self.api_key}"
        return await self.http.request(method, path, headers=headers, **rest)

    async def get(self, path: str, token: str | None = "", **rest: Any) -> httpx2.Response:
        return await self.call("GET", path, token, **rest)

    async def post(self, path: str, body: Any = None, token: str | None = "", **rest: Any) -> httpx2.Response:
        return await self.call("POST", path, token, json={} if body is None else body, **rest)

    async def install(self, name: str = "doctor", config: str = "", tags: str = "") -> dict[str, Any]:
        body = agent_files(name, config, tags=tags)
        answer = await self.post(f"{self.ws}/zombies", body)
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json()
        return made

    async def keep_secret(self) -> None:
        body = {"name": "github-hook", "data": {"webhook_secret": SECRET}}
        answer = await self.post(f"{self.ws}/credentials", body)
        assert answer.status_code == 201, answer.text

    async def deliver(self, url: str, payload: Any = None, **changes: str) -> httpx2.Response:
        self.deliveries += 1
        body = json.dumps(payload or {"action": "completed", "workflow_run": {"id": 1}}).encode()
        signature = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
        headers = {
            "x-github-event": "workflow_run",
            "x-github-delivery": f"delivery-{self.deliveries}",
            "x-hub-signature-256": f"sha256={signature}",
            "content-type": "application/json",
            **changes,
        }
        return await self.http.post(url, content=body, headers=headers)

    async def enrol(self, host: str = "h1", **more: Any) -> str:
        minted = await self.post("/v1/fleet/enrolment-tokens", token=self.admin_token())
        assert minted.status_code == 201, minted.text
        body = {"host_id": host, "sandbox_tier": "bubblewrap", "labels": [], **more}
        enrolled = await self.post("/v1/runners", body, minted.json()["token"])
        assert enrolled.status_code == 201, enrolled.text
        token: str = enrolled.json()["runner_token"]
        return token

    async def lease(self, token: str, wait_ms: int = 5000) -> dict[str, Any]:
        answer = await self.post("/v1/runners/me/leases", {"wait_ms": wait_ms}, token)
        assert answer.status_code == 200, answer.text
        lease: dict[str, Any] = answer.json()["lease"]
        assert lease is not None
        return lease

    async def working(self, config: str = "") -> tuple[dict[str, Any], str, dict[str, Any]]:
        """An agent, a runner's token, and the lease that it holds on the agent's first event."""
        await self.keep_secret()
        zombie = await self.install(config=config)
        delivered = await self.deliver(zombie["webhook_urls"]["github"])
        assert delivered.status_code == 202, delivered.text
        token = await self.enrol()
        return zombie, token, await self.lease(token)

    async def sweep(self) -> None:
        """Have the round come now that is due each minute, and wait for its end."""
        await self.system.ask("sweeper", "", Prune())

    def set_plan(self, plan: PlanTier) -> None:
        tenants = self.memory.tables.tenants
        tenant_id = self.installation.tenant_id
        old = tenants[tenant_id]
        tenants[tenant_id] = type(old)(
            old.id, old.name, plan, old.balance_nanos, old.exhausted_at, old.created_at, old.updated_at
        )
        self.memory.tables.plans[tenant_id] = first_plan(tenants[tenant_id])
        self.actors_world.entitlements.forget(tenant_id)


@asynccontextmanager
async def open_http_world(*, fast: bool = True, **settings: Any) -> AsyncIterator[HttpWorld]:
    """A server on storage in memory."""
    started, skew_ms = trio.current_time(), [0]

    def now_ms() -> int:
        return START_MS + skew_ms[0] + round((trio.current_time() - started) * 1000)

    async with (
        open_memory_storage(clock=now_ms) as memory,
        open_http_world_on(memory, fast=fast, **settings) as world,
    ):
        world.skew_ms = skew_ms
        yield world


@asynccontextmanager
async def open_http_world_on(
    storage: Storage,
    *,
    fast: bool = True,
    other_issuers: tuple[Issuer, ...] = (),
    providers: tuple[Provider, ...] = (),
    slack: Slack | None = None,
    previewer: Previewer | None = None,
    catalogue: Catalogue | None = None,
    terms: BillingTerms = DEFAULT_TERMS,
    vault: Vault | None = None,
    turns: LoopTurns | None = None,
    connections: OpenConnections | None = None,
    device_logins: SessionBounds | None = None,
    files: FileBounds | None = None,
    objects: ObjectStore | None = None,
    archive: Archiver | None = None,
    provokes: bool = True,
    **settings: Any,
) -> AsyncIterator[HttpWorld]:
    """A server on a storage that is open already.

    ``provokes``: the codes it answers with count as seen; false where chance decides which they are.
    """
    rng, new_id = Random(7), Ids()
    sealer, registry, stop = vault or PlainSealer(), CollectorRegistry(), Stop()
    secrets = Secrets(storage.credentials, sealer, storage.clock)
    world = World(
        storage=storage,
        secrets=secrets,
        catalogue=catalogue or Catalogue("2026-01-01", []),
        new_id=new_id,
        new_token=lambda size: rng.randbytes(size).hex(),
        chat=slack,
        terms=terms,
        vault=vault,
        device_logins=device_logins or SessionBounds(),
        files=files or FileBounds(),
        objects=objects,
        archive=archive,
    )
    installation = await bootstrap(storage, sealer, new_id=new_id, new_token=world.new_token)
    doors = await open_doors("127.0.0.1", 0)
    async with open_system(tree(world), rng=rng) as system:
        registry.register(system.collector())
        registry.register(OperatorsCollector(world, VERSION))
        storage.signals.listen(partial(hear, world, system.tell))
        storage.on_frames(lambda heads: system.tell("hub", "", FramesWritten(tuple(heads))))
        here = Here(NODE_ID, VERSION, None)
        nodes = NodeQuestions(
            storage,
            NodeRecord(here.node, "this", VERSION, START_MS, START_MS),
            partial(answer_node, system, None, here),
            new_id=new_id,
        )
        ctx = HttpContext(
            system=system,
            world=world,
            issuer=installation.issuer,
            registry=registry,
            settings=replace(HttpSettings(doors.base_url), **settings),
            stop=stop,
            keys=installation.keys,
            nodes=nodes,
            other_issuers=other_issuers,
            providers=providers,
            slack=slack,
            turns=turns,
            previewer=previewer,
            catalogue_key=installation.catalogue_key,
            connections=connections or OpenConnections(),
            options=(MAX_STREAMS_OPTION,),
        )
        app = create_app(ctx, fast=fast)
        async with trio.open_nursery() as nursery:

            async def run(task_status: trio.TaskStatus[None]) -> None:
                await serve(
                    app,
                    doors,
                    stop=stop,
                    connections=ctx.connections,
                    grace_s=1.0,
                    task_status=task_status,
                )

            await nursery.start(run)
            timeout = httpx2.Timeout(15.0)
            hooks = {"response": [check_answer]}
            async with httpx2.AsyncClient(
                base_url=doors.base_url, timeout=timeout, event_hooks=hooks, verify=TRUST
            ) as http:
                yield HttpWorld(
                    storage, system, world, ctx, installation, doors.base_url, http, registry, stop
                )
            stop.set()
    if provokes:
        note_problems(registry)
    assert undeclared(registry) == [], "answers had codes that their routes do not declare"


def undeclared(registry: CollectorRegistry) -> list[dict[str, str]]:
    return [labels for labels, _ in counted(registry, "sexton_http_undeclared_codes_total")]
