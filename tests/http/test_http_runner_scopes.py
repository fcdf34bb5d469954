"""Runners of one tenant or workspace, and labels that a runner carries only by leave."""

from typing import Any
from uuid import UUID

import httpx2
import pytest
import trio

from sexton_storage.postgres import PostgresStorage
from sexton_storage.records.users import Role
from tests.patience import PATIENCE_S
from tests.worlds.bearer_tokens import TENANT_B, WORKSPACE_B, settle_tenant_b
from tests.worlds.http import HttpWorld, open_http_world_on
from tests.worlds.samples import agent_files

UNKNOWN = "019363b0-0000-7000-8000-00000000ffff"


async def mint(world: HttpWorld, **body: Any) -> httpx2.Response:
    return await world.post("/v1/fleet/enrolment-tokens", body, world.admin_token())


async def enrol(world: HttpWorld, *carried: str, **scope: Any) -> str:
    minted = await mint(world, **scope)
    assert minted.status_code == 201, minted.text
    body = {"host_id": "h", "sandbox_tier": "bubblewrap", "labels": carried}
    enrolled = await world.post("/v1/runners", body, minted.json()["token"])
    assert enrolled.status_code == 201, enrolled.text
    token: str = enrolled.json()["runner_token"]
    return token


async def work(world: HttpWorld, workspace_id: UUID | str, tenant_id: UUID | None = None) -> str:
    """An event for a new agent of that workspace."""
    token = "" if tenant_id is None else world.user_token(Role.ADMIN, tenant_id=tenant_id)
    name = f"agent-{world.actors_world.new_id()}"[:40]
    files = agent_files(name)
    made = await world.post(f"/v1/workspaces/{workspace_id}/zombies", files, token)
    assert made.status_code == 201, made.text
    path = f"/v1/workspaces/{workspace_id}/zombies/{made.json()['zombie_id']}/messages"
    sent = await world.post(path, {"message": "hello"}, token)
    assert sent.status_code == 202, sent.text
    event_id: str = sent.json()["event_id"]
    return event_id


async def queue(world: HttpWorld) -> dict[str, Any]:
    state: dict[str, Any] = (await world.get("/v1/fleet/queue", world.admin_token())).json()
    return state


async def opened(world: HttpWorld, offers: int) -> None:
    with trio.fail_after(PATIENCE_S):
        while (await queue(world))["waiting_offers"] < offers:
            await trio.sleep(0.01)


@pytest.mark.parametrize("narrow", [False, True])
async def test_a_runner_of_one_tenant_is_never_handed_anothers_event(
    postgres_storage: PostgresStorage, narrow: bool
) -> None:
    async with open_http_world_on(postgres_storage) as world:
        await settle_tenant_b(world)
        ours = world.installation
        scope = {"workspace_id": str(ours.workspace_id)} if narrow else {"tenant_id": str(ours.tenant_id)}
        mine, anybodys = await enrol(world, **scope), await enrol(world)
        got: list[dict[str, Any]] = []

        async def poll_first() -> None:
            got.append(await world.lease(mine, 20_000))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(poll_first)
            await opened(world, 1)
            theirs = await work(world, WORKSPACE_B, TENANT_B)
            assert (await world.lease(anybodys))["event"]["event_id"] == theirs
            assert not got

            own = await work(world, ours.workspace_id)

        assert [lease["event"]["event_id"] for lease in got] == [own]


async def test_a_runner_that_comes_to_anothers_event_leaves_it_and_the_queue_says_so(
    postgres_storage: PostgresStorage,
) -> None:
    async with open_http_world_on(postgres_storage) as world:
        await settle_tenant_b(world)
        mine = await enrol(world, tenant_id=str(world.installation.tenant_id))
        theirs = await work(world, WORKSPACE_B, TENANT_B)
        with trio.fail_after(PATIENCE_S):
            while (await queue(world))["ready_agents"] == 0:
                await trio.sleep(0.01)
        own = await work(world, world.installation.workspace_id)
        assert (await world.lease(mine))["event"]["event_id"] == own, "the older one is another tenant's"
        assert [stuck["events"] for stuck in (await queue(world))["unsatisfiable"]] == [1]

        anybodys = await enrol(world)
        assert (await queue(world))["unsatisfiable"] == []
        assert (await world.lease(anybodys))["event"]["event_id"] == theirs


async def test_a_runner_and_the_fleet_list_tell_its_scope(world: HttpWorld) -> None:
    tenant_id, workspace_id = str(world.installation.tenant_id), str(world.installation.workspace_id)
    asked: list[dict[str, str]] = [
        {},
        {"tenant_id": tenant_id},
        {"workspace_id": workspace_id},
        {"tenant_id": tenant_id, "workspace_id": workspace_id},
    ]
    expected = [
        ("platform", None, None),
        ("tenant", tenant_id, None),
        ("workspace", tenant_id, workspace_id),
        ("workspace", tenant_id, workspace_id),
    ]
    told = [(await world.get("/v1/runners/me", await enrol(world, **scope))).json() for scope in asked]
    assert [(me["scope"], me["tenant_id"], me["workspace_id"]) for me in told] == expected

    listed = (await world.get("/v1/fleet/runners?sort=created_at", world.admin_token())).json()["items"]
    assert [(row["scope"], row["tenant_id"], row["workspace_id"]) for row in listed] == expected


async def test_a_scope_must_be_there_and_agree(world: HttpWorld) -> None:
    await settle_tenant_b(world)
    workspace_id = str(world.installation.workspace_id)
    refused = [
        await mint(world, tenant_id=UNKNOWN),
        await mint(world, workspace_id=UNKNOWN),
        await mint(world, tenant_id=str(TENANT_B), workspace_id=workspace_id),
        await mint(world, labels=[""]),
    ]

    assert [(answer.status_code, answer.json()["error_code"]) for answer in refused] == [
        (404, "UZ-TENANT-001"),
        (404, "UZ-WORKSPACE-001"),
        (400, "UZ-REQ-001"),
        (400, "UZ-REQ-001"),
    ]


async def test_a_reserved_label_needs_the_enrolment_tokens_leave(world: HttpWorld) -> None:
    body = {"host_id": "h", "sandbox_tier": "bubblewrap", "labels": ["gpu", "reserved:pci", "reserved:eu"]}
    plain = (await mint(world)).json()["token"]
    part = (await mint(world, labels=["reserved:eu"])).json()["token"]
    for token, labels in (
        (plain, ["reserved:pci", "reserved:eu"]),
        (part, ["reserved:pci"]),
        (world.admin_token(), ["reserved:pci", "reserved:eu"]),
    ):
        answer = await world.post("/v1/runners", body, token)
        assert (answer.status_code, answer.json()["error_code"]) == (403, "UZ-RUN-017")
        assert answer.json()["labels"] == labels
        assert "mint an enrolment token that names it" in answer.json()["detail"]
    allowed = await enrol(world, "gpu", "reserved:eu", labels=["reserved:eu", "reserved:pci"])
    assert (await world.get("/v1/runners/me", allowed)).json()["labels"] == ["gpu", "reserved:eu"]

    again = await world.post("/v1/runners", {**body, "labels": ["gpu"]}, plain)
    assert again.status_code == 201, "a refusal does not use the token up"


async def test_an_admin_without_a_token_makes_a_platform_runner(world: HttpWorld) -> None:
    body = {"host_id": "h", "sandbox_tier": "bubblewrap", "labels": ["gpu"]}
    made = (await world.post("/v1/runners", body, world.admin_token())).json()
    me = (await world.get("/v1/runners/me", made["runner_token"])).json()

    assert (me["scope"], me["tenant_id"], me["workspace_id"]) == ("platform", None, None)
