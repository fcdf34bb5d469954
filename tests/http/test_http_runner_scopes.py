"""Runners of one tenant or workspace, and labels that a runner carries only by leave."""

from typing import Any
from uuid import UUID

import httpx2
import pytest
import trio

from sexton_storage.postgres import PostgresStorage
from sexton_storage.records.users import Role
from tests.http.bearers import TENANT_B, WORKSPACE_B, settle_tenant_b
from tests.http.house import SKILL, TRIGGER, House, open_house_on

UNKNOWN = "019363b0-0000-7000-8000-00000000ffff"


async def mint(house: House, **body: Any) -> httpx2.Response:
    return await house.post("/v1/fleet/enrolment-tokens", body, house.admin_token())


async def enrol(house: House, *carried: str, **scope: Any) -> str:
    minted = await mint(house, **scope)
    assert minted.status_code == 201, minted.text
    body = {"host_id": "h", "sandbox_tier": "bubblewrap", "labels": carried}
    enrolled = await house.post("/v1/runners", body, minted.json()["token"])
    assert enrolled.status_code == 201, enrolled.text
    token: str = enrolled.json()["runner_token"]
    return token


async def work(house: House, workspace_id: UUID | str, tenant_id: UUID | None = None) -> str:
    """An event for a new agent of that workspace."""
    token = "" if tenant_id is None else house.user_token(Role.ADMIN, tenant_id=tenant_id)
    name = f"agent-{house.world.new_id()}"[:40]
    files = {
        "source_markdown": SKILL.format(name=name, tags=""),
        "trigger_markdown": TRIGGER.format(name=name, config=""),
    }
    made = await house.post(f"/v1/workspaces/{workspace_id}/zombies", files, token)
    assert made.status_code == 201, made.text
    path = f"/v1/workspaces/{workspace_id}/zombies/{made.json()['zombie_id']}/messages"
    sent = await house.post(path, {"message": "hello"}, token)
    assert sent.status_code == 202, sent.text
    event_id: str = sent.json()["event_id"]
    return event_id


async def queue(house: House) -> dict[str, Any]:
    state: dict[str, Any] = (await house.get("/v1/fleet/queue", house.admin_token())).json()
    return state


async def opened(house: House, offers: int) -> None:
    with trio.fail_after(20):
        while (await queue(house))["waiting_offers"] < offers:
            await trio.sleep(0.01)


@pytest.mark.parametrize("narrow", [False, True])
async def test_a_runner_of_one_tenant_is_never_handed_anothers_event(
    postgres_storage: PostgresStorage, narrow: bool
) -> None:
    async with open_house_on(postgres_storage) as house:
        await settle_tenant_b(house)
        ours = house.installation
        scope = {"workspace_id": str(ours.workspace_id)} if narrow else {"tenant_id": str(ours.tenant_id)}
        mine, anybodys = await enrol(house, **scope), await enrol(house)
        got: list[dict[str, Any]] = []

        async def poll_first() -> None:
            got.append(await house.lease(mine, 20_000))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(poll_first)
            await opened(house, 1)
            theirs = await work(house, WORKSPACE_B, TENANT_B)
            assert (await house.lease(anybodys))["event"]["event_id"] == theirs
            assert not got
            own = await work(house, ours.workspace_id)
        assert [lease["event"]["event_id"] for lease in got] == [own]


async def test_a_runner_that_comes_to_anothers_event_leaves_it_and_the_queue_says_so(
    postgres_storage: PostgresStorage,
) -> None:
    async with open_house_on(postgres_storage) as house:
        await settle_tenant_b(house)
        mine = await enrol(house, tenant_id=str(house.installation.tenant_id))
        theirs = await work(house, WORKSPACE_B, TENANT_B)
        with trio.fail_after(20):
            while (await queue(house))["ready_agents"] == 0:
                await trio.sleep(0.01)
        own = await work(house, house.installation.workspace_id)
        assert (await house.lease(mine))["event"]["event_id"] == own, "the older one is another tenant's"
        assert [stuck["events"] for stuck in (await queue(house))["unsatisfiable"]] == [1]
        anybodys = await enrol(house)
        assert (await queue(house))["unsatisfiable"] == []
        assert (await house.lease(anybodys))["event"]["event_id"] == theirs


async def test_a_runner_and_the_fleet_list_tell_its_scope(house: House) -> None:
    tenant_id, workspace_id = str(house.installation.tenant_id), str(house.installation.workspace_id)
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
    told = [(await house.get("/v1/runners/me", await enrol(house, **scope))).json() for scope in asked]
    assert [(me["scope"], me["tenant_id"], me["workspace_id"]) for me in told] == expected
    listed = (await house.get("/v1/fleet/runners?sort=created_at", house.admin_token())).json()["items"]
    assert [(row["scope"], row["tenant_id"], row["workspace_id"]) for row in listed] == expected


async def test_a_scope_must_be_there_and_agree(house: House) -> None:
    await settle_tenant_b(house)
    workspace_id = str(house.installation.workspace_id)
    refused = [
        await mint(house, tenant_id=UNKNOWN),
        await mint(house, workspace_id=UNKNOWN),
        await mint(house, tenant_id=str(TENANT_B), workspace_id=workspace_id),
        await mint(house, labels=[""]),
    ]
    assert [(answer.status_code, answer.json()["error_code"]) for answer in refused] == [
        (404, "UZ-TENANT-001"),
        (404, "UZ-WORKSPACE-001"),
        (400, "UZ-REQ-001"),
        (400, "UZ-REQ-001"),
    ]


async def test_a_reserved_label_needs_the_enrolment_tokens_leave(house: House) -> None:
    body = {"host_id": "h", "sandbox_tier": "bubblewrap", "labels": ["gpu", "reserved:pci", "reserved:eu"]}
    plain = (await mint(house)).json()["token"]
    part = (await mint(house, labels=["reserved:eu"])).json()["token"]
    for token, labels in (
        (plain, ["reserved:pci", "reserved:eu"]),
        (part, ["reserved:pci"]),
        (house.admin_token(), ["reserved:pci", "reserved:eu"]),
    ):
        answer = await house.post("/v1/runners", body, token)
        assert (answer.status_code, answer.json()["error_code"]) == (403, "UZ-RUN-017")
        assert answer.json()["labels"] == labels
        assert "mint an enrolment token that names it" in answer.json()["detail"]
    allowed = await enrol(house, "gpu", "reserved:eu", labels=["reserved:eu", "reserved:pci"])
    assert (await house.get("/v1/runners/me", allowed)).json()["labels"] == ["gpu", "reserved:eu"]
    again = await house.post("/v1/runners", {**body, "labels": ["gpu"]}, plain)
    assert again.status_code == 201, "a refusal does not use the token up"


async def test_an_admin_without_a_token_makes_a_platform_runner(house: House) -> None:
    body = {"host_id": "h", "sandbox_tier": "bubblewrap", "labels": ["gpu"]}
    made = (await house.post("/v1/runners", body, house.admin_token())).json()
    me = (await house.get("/v1/runners/me", made["runner_token"])).json()
    assert (me["scope"], me["tenant_id"], me["workspace_id"]) == ("platform", None, None)
