"""A runner that is limited to a tenant or a workspace gets no other's events, whoever claims for it."""

from functools import partial
from typing import Any

import pytest
import trio

from sexton_storage.refusals import NOT_FOR_RUNNER, OUT_OF_SCOPE
from sexton_storage.writes import Claimed, NothingToClaim
from tests.patience import PATIENCE_S
from tests.worlds.storage import StorageWorld


async def claim_by(world: StorageWorld, **scope: Any) -> object:
    """What a runner of that scope gets of an agent of this tenant that has an event."""
    runner = world.runner_record(**scope)
    assert await world.storage.runners.enrol(runner, enrolment_hash=None)
    agent = await world.agent()
    await world.append(agent)
    answer = await world.storage.journal.write(world.claim_of(agent, runner_id=runner.id))
    waits = await world.storage.events.waits(agent.id)
    assert waits.received is not isinstance(answer, Claimed), "what was not given out waits as before"
    return answer


async def test_a_runner_claims_what_is_in_its_scope(world: StorageWorld) -> None:
    scopes: list[dict[str, Any]] = [
        {},
        {"tenant_id": world.tenant_id},
        {"tenant_id": world.tenant_id, "workspace_id": world.workspace_id},
    ]
    for scope in scopes:
        assert isinstance(await claim_by(world, **scope), Claimed), scope


@pytest.mark.parametrize("narrow", [False, True])
async def test_a_runner_of_another_tenant_or_workspace_claims_nothing(
    world: StorageWorld, narrow: bool
) -> None:
    other = await world.beside()
    owner = other.workspace_id if narrow else None
    refused = NothingToClaim(OUT_OF_SCOPE)

    assert await claim_by(world, tenant_id=other.tenant_id, workspace_id=owner) == refused
    assert await claim_by(world, tenant_id=world.tenant_id, workspace_id=other.workspace_id) == refused
    assert {OUT_OF_SCOPE} <= NOT_FOR_RUNNER


async def test_in_one_batch_each_runner_gets_its_own_tenants(world: StorageWorld) -> None:
    other = await world.beside()
    runner = world.runner_record(tenant_id=world.tenant_id)
    assert await world.storage.runners.enrol(runner, enrolment_hash=None)

    claims, answers = [], dict[int, object]()
    for owner in (world, other, world, other):
        agent = await owner.agent()
        await owner.append(agent)
        claims.append(owner.claim_of(agent, runner_id=runner.id))
    for number, claim in enumerate(claims):
        world.storage.journal.submit(claim, partial(answers.__setitem__, number))
    with trio.fail_after(PATIENCE_S):
        while len(answers) < len(claims):
            await trio.sleep(0.002)
    assert [isinstance(answers[number], Claimed) for number in range(4)] == [True, False, True, False]
