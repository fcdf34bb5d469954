"""A tenant has no more of anything than its plan allows: one table of what is bounded, and of the answer."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx2
import pytest

from sexton_actors.entitlements import FRESH_MS
from sexton_actors.plans import DEFAULT_PLANS, BillingTerms, PlanLimits
from sexton_storage.errors import StorageUnavailable
from sexton_storage.postgres import PostgresStorage
from sexton_storage.records.holdings import Holding
from sexton_storage.records.tenants import PlanTier
from tests.worlds.http import HttpWorld, open_http_world, open_http_world_on
from tests.worlds.samples import YEARLY, agent_files

FULL = PlanLimits(credentials=1, api_keys=1, agent_keys=1, proposals=1, drafts=1, queued_messages=1, crons=1)
NO_ROOM = BillingTerms({**DEFAULT_PLANS, PlanTier.ENTERPRISE: FULL})
TWICE_A_YEAR = f'{YEARLY}\n  - type: cron\n    schedule: "0 0 1 7 *"'


@dataclass
class Tenant:
    """A tenant that has one of everything, from before there were bounds."""

    world: HttpWorld
    zombie_id: str
    draft_id: str
    proposal_id: str

    @property
    def agent(self) -> str:
        return f"{self.world.ws}/zombies/{self.zombie_id}"


Ask = Callable[[Tenant], Awaitable[httpx2.Response]]


def files(name: str, *, trigger: str = YEARLY) -> dict[str, str]:
    return agent_files(name, trigger=trigger)


TABLE: dict[str, tuple[Holding, Ask]] = {
    "a credential": (
        Holding.CREDENTIALS,
        lambda t: t.world.post(f"{t.world.ws}/credentials", {"name": "two", "data": {"a": "b"}}),
    ),
    "an API key": (Holding.API_KEYS, lambda t: t.world.post("/v1/api-keys", {"key_name": "two"})),
    "an agent's key": (
        Holding.AGENT_KEYS,
        lambda t: t.world.post(f"{t.world.ws}/agent-keys", {"zombie_id": t.zombie_id, "name": "two"}),
    ),
    "a proposal": (
        Holding.PROPOSALS,
        lambda t: t.world.post(f"/v1/agents/{t.zombie_id}/proposals", proposal("other")),
    ),
    "a draft": (
        Holding.DRAFTS,
        lambda t: t.world.call(
            "PUT", f"{t.world.ws}/harness/source", json={"agent_id": t.zombie_id, **files("other")}
        ),
    ),
    "a message": (Holding.QUEUED_MESSAGES, lambda t: t.world.post(f"{t.agent}/messages", {"message": "go"})),
    "an agent with a schedule": (
        Holding.CRONS,
        lambda t: t.world.post(f"{t.world.ws}/zombies", files("other")),
    ),
    "files with another schedule": (
        Holding.CRONS,
        lambda t: t.world.call("PATCH", t.agent, json=files("one", trigger=TWICE_A_YEAR)),
    ),
    "a version with another schedule": (
        Holding.CRONS,
        lambda t: t.world.post(f"{t.world.ws}/harness/activate", {"config_version_id": t.draft_id}),
    ),
    "a proposal of another schedule": (
        Holding.CRONS,
        lambda t: t.world.post(f"/v1/agents/{t.zombie_id}/proposals/{t.proposal_id}:approve"),
    ),
}


def proposal(name: str, *, trigger: str = YEARLY) -> dict[str, str]:
    return {"title": "More", "rationale": "Because.", **files(name, trigger=trigger)}


async def of_everything(world: HttpWorld) -> Tenant:
    async def made(method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = await world.call(method, path, json=body)
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json()
        return found

    await made("POST", f"{world.ws}/credentials", {"name": "one", "data": {"a": "b"}})
    zombie_id = (await made("POST", f"{world.ws}/zombies", files("one")))["zombie_id"]
    await made("POST", f"{world.ws}/agent-keys", {"zombie_id": zombie_id, "name": "one"})
    more = files("one", trigger=TWICE_A_YEAR)
    draft = await made("PUT", f"{world.ws}/harness/source", {"agent_id": zombie_id, **more})
    version = {"config_version_id": draft["config_version_id"]}
    await made("POST", f"{world.ws}/harness/compile", version)
    path = f"/v1/agents/{zombie_id}/proposals"
    proposed = await made("POST", path, proposal("one", trigger=TWICE_A_YEAR))
    await made("POST", f"{world.ws}/zombies/{zombie_id}/messages", {"message": "wait"})
    return Tenant(world, zombie_id, draft["config_version_id"], proposed["proposal_id"])


async def counted(world: HttpWorld, tenant_id: UUID, at_most: int = 99) -> set[int]:
    holdings = world.storage.holdings
    return {await holdings.count(tenant_id, one, at_most=at_most) for one in Holding}


def bound(world: HttpWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on the plan allows nothing more."""
    monkeypatch.setattr(world.actors_world.entitlements, "_terms", NO_ROOM)
    world.actors_world.entitlements.forget(world.installation.tenant_id)


async def test_every_holding_is_bounded_with_one_code(
    postgres_storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_http_world_on(postgres_storage) as world:
        tenant = await of_everything(world)
        assert await counted(world, world.installation.tenant_id) == {1}
        assert await counted(world, UUID(int=1)) == {0}

        bound(world, monkeypatch)
        assert {holding for holding, _ in TABLE.values()} == {*Holding} - {Holding.WORKSPACES}

        for what, (holding, ask) in TABLE.items():
            answer = await ask(tenant)
            body = answer.json()
            assert (answer.status_code, body["error_code"]) == (402, "UZ-ENTL-005"), what
            assert (body["limit"], body["allowed"]) == (holding.value, 1), what

        # What is there stays, and may be replaced.
        replaced = await world.post(f"{world.ws}/credentials", {"name": "one", "data": {"a": "c"}})
        assert replaced.status_code == 201

        same = await world.call(
            "PATCH", tenant.agent, json=agent_files("one", trigger=YEARLY, body="Other.\n")
        )
        assert same.status_code == 200


async def test_nothing_is_made_while_the_plan_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    class Away:
        async def count(self, *_: Any, **__: Any) -> int:
            raise StorageUnavailable("nothing is counted now")

    async with open_http_world() as world:
        tenant = await of_everything(world)
        assert await counted(world, world.installation.tenant_id) == {1}
        assert await counted(world, UUID(int=1)) == {0}

        world.pass_ms(FRESH_MS * 20)
        monkeypatch.setattr(world.actors_world.entitlements, "_holdings", Away())

        for what, (_, ask) in TABLE.items():
            answer = await ask(tenant)
            assert (answer.status_code, answer.json()["error_code"]) == (503, "UZ-ENTL-001"), what


async def test_the_plan_tells_its_limits(world: HttpWorld) -> None:
    limits = (await world.get(f"{world.ws}/billing")).json()["limits"]

    for tier in PlanTier:
        assert all(DEFAULT_PLANS[tier].of(holding) for holding in Holding), f"{tier} bounds each holding"

    assert {one.value: limits[one.value] for one in Holding} == {
        one.value: DEFAULT_PLANS[PlanTier.ENTERPRISE].of(one) for one in Holding
    }
