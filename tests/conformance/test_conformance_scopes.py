"""A runner that is limited to a tenant or a workspace gets no other's events, whoever claims for it."""

from functools import partial
from typing import Any

import pytest
import trio

from sexton_storage.refusals import NOT_FOR_RUNNER, OUT_OF_SCOPE
from sexton_storage.writes import Claimed, NothingToClaim
from tests.conformance.house import House


async def claim_by(house: House, **scope: Any) -> object:
    """What a runner of that scope gets of an agent of the house's that has an event."""
    runner = house.runner_record(**scope)
    assert await house.storage.runners.enrol(runner, enrolment_hash=None)
    agent = await house.agent()
    await house.append(agent)
    answer = await house.storage.journal.write(house.claim_of(agent, runner_id=runner.id))
    waits = await house.storage.events.waits(agent.id)
    assert waits.received is not isinstance(answer, Claimed), "what was not given out waits as before"
    return answer


async def test_a_runner_claims_what_is_in_its_scope(house: House) -> None:
    scopes: list[dict[str, Any]] = [
        {},
        {"tenant_id": house.tenant_id},
        {"tenant_id": house.tenant_id, "workspace_id": house.workspace_id},
    ]
    for scope in scopes:
        assert isinstance(await claim_by(house, **scope), Claimed), scope


@pytest.mark.parametrize("narrow", [False, True])
async def test_a_runner_of_another_tenant_or_workspace_claims_nothing(house: House, narrow: bool) -> None:
    other = await house.beside()
    owner = other.workspace_id if narrow else None
    refused = NothingToClaim(OUT_OF_SCOPE)
    assert await claim_by(house, tenant_id=other.tenant_id, workspace_id=owner) == refused
    assert await claim_by(house, tenant_id=house.tenant_id, workspace_id=other.workspace_id) == refused
    assert {OUT_OF_SCOPE} <= NOT_FOR_RUNNER


async def test_in_one_batch_each_runner_gets_its_own_tenants(house: House) -> None:
    other = await house.beside()
    runner = house.runner_record(tenant_id=house.tenant_id)
    assert await house.storage.runners.enrol(runner, enrolment_hash=None)
    claims, answers = [], dict[int, object]()
    for owner in (house, other, house, other):
        agent = await owner.agent()
        await owner.append(agent)
        claims.append(owner.claim_of(agent, runner_id=runner.id))
    for number, claim in enumerate(claims):
        house.storage.journal.submit(claim, partial(answers.__setitem__, number))
    with trio.fail_after(30):
        while len(answers) < len(claims):
            await trio.sleep(0.002)
    assert [isinstance(answers[number], Claimed) for number in range(4)] == [True, False, True, False]
