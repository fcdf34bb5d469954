"""Who decides on what agents propose: rejects most of it, each for a reason of its own, and approves some.

Now and then two people decide at once, and not alike: then the second one is told what the first has decided.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import httpx2
import trio

from tests.simulation.product.people import Caller, ToldOfProposal

REJECTED: Final = 0.7
"""The share of proposals that are turned down."""
LEFT: Final = 0.2
"""The share of those seen that are left for another time."""
BY_TWO: Final = 0.25
"""The share of decisions that two people take at once."""
APART_S: Final = (0.0, 0.006)
"""A request takes some 8 ms to be answered, so that either may be the first."""
DECIDED_ALREADY: Final = 409


class ProposalReviewer:
    """The people who look through proposals, as one program."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def run(self) -> None:
        """Look at one agent after the other, and decide on most of what waits."""
        caller, rng = self._caller, self._caller.rng
        span = caller.habits.proposals
        assert span is not None
        async with caller.open() as http:
            while True:
                await trio.sleep(rng.uniform(*span))
                path = f"/v1/agents/{rng.choice(caller.promises.agents)}/proposals"
                page = await caller.ask(http, "GET", f"{path}?status=PENDING")
                assert page.status_code == 200, page.text
                for one in page.json()["items"]:
                    if rng.random() >= LEFT:
                        await self._decide(http, f"{path}/{one['proposal_id']}")

    async def _decide(self, http: httpx2.AsyncClient, path: str) -> None:
        rng = self._caller.rng
        word = "reject" if rng.random() < REJECTED else "approve"
        by_two, after_s = rng.random() < BY_TWO, rng.uniform(*APART_S)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._say, http, path, word, 0.0)
            if by_two:
                other = "approve" if word == "reject" else "reject"
                nursery.start_soon(self._say, http, path, other, after_s)

    async def _say(self, http: httpx2.AsyncClient, path: str, word: str, after_s: float) -> None:
        await trio.sleep(after_s)
        proposal_id = UUID(path.rpartition("/")[2])
        reason = reason_of(proposal_id) if word == "reject" else None
        body = {} if reason is None else {"json": {"rejection_reason": reason}}
        answer = await self._caller.ask(http, "POST", f"{path}:{word}", **body)
        assert answer.status_code in (200, DECIDED_ALREADY), answer.text
        self._caller.promises.proposals.append(_told(proposal_id, answer.status_code, answer.json()))


def reason_of(proposal_id: UUID) -> str:
    """No two are alike."""
    return f"Case {proposal_id} needs no mention."


def _told(proposal_id: UUID, status_code: int, said: dict[str, Any]) -> ToldOfProposal:
    if status_code == DECIDED_ALREADY:
        return ToldOfProposal(proposal_id, said["outcome"])
    return ToldOfProposal(
        proposal_id, said["status"], said["rejection_reason"], said.get("config_version_id")
    )
