"""The renewal: on the mock clock, against a control plane that answers, refuses, hangs or is away."""

import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import httpx2
import msgspec
import pytest
import trio
from trio.testing import MockClock

from sexton_runner.client import ControlPlane, Outage
from sexton_runner.errors import Refused, TokenRejected, Unavailable
from sexton_runner.lease import Halt, LiveLease
from sexton_runner.renewal import Renewer
from sexton_runner.timing import Timing
from sexton_runner.wire import Lease, Renewal
from tests.fakes.control_plane import make_lease

TIMING = Timing()
Call = tuple[float, list[str]]


@dataclass
class Script:
    """What the plane does when it is asked, and what it was asked."""

    calls: list[Call] = field(default_factory=list)
    answer: Callable[[str], Renewal] = lambda lease_id: Renewal(lease_id=lease_id)
    hang: bool = False


class ScriptedPlane(ControlPlane):
    def __init__(self, http: httpx2.AsyncClient, script: Script) -> None:
        super().__init__(http, Outage(trio.current_time))
        self._script = script

    async def renew(self, lease_id: str, usage: Any) -> Renewal:
        (answer,) = await self._ask_script([lease_id])
        return answer

    async def renew_many(self, renewals: Sequence[Any]) -> list[Renewal]:
        return await self._ask_script([renewal["lease_id"] for renewal in renewals])

    async def _ask_script(self, lease_ids: list[str]) -> list[Renewal]:
        self._script.calls.append((trio.current_time(), lease_ids))
        if self._script.hang:
            await trio.sleep_forever()
        return [self._script.answer(lease_id) for lease_id in lease_ids]


def live_lease(granted: float | None = None) -> LiveLease:
    lease = msgspec.convert(make_lease("```sh\ntrue\n```"), Lease)
    return LiveLease(lease, trio.current_time, TIMING.lease_term_s, granted=granted)


@asynccontextmanager
async def renewing(script: Script, seed: int = 1) -> AsyncIterator[Renewer]:
    async with httpx2.AsyncClient(trust_env=False) as http:
        renewer = Renewer(ScriptedPlane(http, script), TIMING, random.Random(seed), trio.current_time)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(renewer.run)
            yield renewer
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize("seed", range(20))
async def test_a_lease_is_renewed_about_every_ten_seconds(seed: int, autojump_clock: MockClock) -> None:
    script, live = Script(), live_lease()
    async with renewing(script, seed) as renewer:
        renewer.add(live)
        await trio.sleep(600)
    times = [0.0, *(at for at, _ in script.calls)]
    gaps = [later - earlier for earlier, later in pairwise(times)]

    assert all(9.0 <= gap <= 11.0 for gap in gaps)
    assert len({round(gap, 3) for gap in gaps}) > 10, "there is jitter"
    assert live.halted is None


async def test_leases_that_are_due_together_share_a_call(autojump_clock: MockClock) -> None:
    script = Script()
    lives = [live_lease() for _ in range(50)]
    async with renewing(script) as renewer:
        for live in lives:
            renewer.add(live)
        await trio.sleep(30)

    assert len(script.calls) <= 3 * 3, "150 renewals in a handful of calls"
    assert not any(live.halted for live in lives)


async def test_a_call_carries_at_most_1024_leases(autojump_clock: MockClock) -> None:
    script = Script()
    timing_window = [live_lease() for _ in range(1500)]
    async with renewing(script) as renewer:
        for live in timing_window:
            renewer.add(live)
        await trio.sleep(12)

    assert max(len(lease_ids) for _, lease_ids in script.calls) <= 1024
    assert sum(len(lease_ids) for _, lease_ids in script.calls) >= 1500


async def test_an_outage_is_tried_again_each_second_and_survived(autojump_clock: MockClock) -> None:
    def away(_: str) -> Renewal:
        raise Unavailable("503 UZ-INTERNAL-001")

    script, live = Script(answer=away), live_lease()
    async with renewing(script) as renewer:
        renewer.add(live)
        await trio.sleep(25)
        tries = len(script.calls)
        script.answer = lambda lease_id: Renewal(lease_id=lease_id)
        await trio.sleep(60)

    assert tries >= 10
    assert live.halted is None


async def test_a_lease_that_cannot_be_renewed_within_its_term_is_given_up_in_time(
    autojump_clock: MockClock,
) -> None:
    def away(_: str) -> Renewal:
        raise Unavailable("ConnectError")

    script, live = Script(answer=away), live_lease()
    async with renewing(script) as renewer:
        renewer.add(live)
        await trio.sleep(29.9)
        before = live.halted
        await trio.sleep(0.2)
        assert (before, live.halted) == (None, Halt.LOST)

        calls = len(script.calls)
        await trio.sleep(60)

    assert len(script.calls) == calls, "a lost lease is not asked for any more"


async def test_the_term_is_counted_from_before_the_call_was_sent(autojump_clock: MockClock) -> None:
    script, live = Script(), live_lease()
    async with renewing(script) as renewer:
        renewer.add(live)
        await trio.sleep(11.5)
    sent = script.calls[0][0]

    assert live.deadline == pytest.approx(sent + 29.0)


async def test_a_lease_whose_answer_was_long_on_its_way_is_renewed_within_what_is_left(
    autojump_clock: MockClock,
) -> None:
    script, live = Script(), live_lease(granted=trio.current_time() - 25)
    began = trio.current_time()
    async with renewing(script) as renewer:
        renewer.add(live)
        await trio.sleep(3.9)

    assert script.calls[0][0] - began == pytest.approx(2.0)
    assert live.halted is None


async def test_a_call_that_hangs_is_given_up_and_made_again(autojump_clock: MockClock) -> None:
    script, live = Script(hang=True), live_lease()
    async with renewing(script) as renewer:
        renewer.add(live)
        await trio.sleep(20)
        script.hang = False
        await trio.sleep(30)

    assert len(script.calls) >= 3
    assert live.halted is None


async def test_a_call_that_hangs_does_not_hold_up_another_lease(autojump_clock: MockClock) -> None:
    script, first, second = Script(hang=True), live_lease(), live_lease()
    async with renewing(script) as renewer:
        renewer.add(first)
        await trio.sleep(3)
        renewer.add(second)
        await trio.sleep(11)
    asked = {lease_id: at for at, lease_ids in reversed(script.calls) for lease_id in lease_ids}

    assert asked[second.lease.lease_id] <= 3 + 11


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("UZ-RUN-011", Halt.LOST),
        ("UZ-RUN-006", Halt.LOST),
        ("UZ-RUN-012", Halt.BALANCE_EXHAUSTED),
        ("UZ-RUN-010", Halt.CEILING),
        ("UZ-ZMB-001", Halt.BUDGET_EXCEEDED),
        ("UZ-NEW-999", Halt.LOST),
    ],
)
@pytest.mark.parametrize("alone", [True, False])
async def test_a_refused_renewal_ends_its_run_and_no_other(
    code: str, why: Halt, alone: bool, autojump_clock: MockClock
) -> None:
    doomed, other = live_lease(), live_lease()

    def refuse(lease_id: str) -> Renewal:
        if lease_id != doomed.lease.lease_id:
            return Renewal(lease_id=lease_id)
        if alone:
            raise Refused(409, code, "scripted")
        return Renewal(lease_id=lease_id, ok=False, error_code=code, status=409)

    async with renewing(Script(answer=refuse)) as renewer:
        renewer.add(doomed)
        if not alone:
            renewer.add(other)
        await trio.sleep(60)

    assert doomed.halted is why
    assert other.halted is None


async def test_a_row_of_a_batch_with_a_server_fault_is_asked_for_again(autojump_clock: MockClock) -> None:
    lives = [live_lease(), live_lease()]
    script = Script(
        answer=lambda lease_id: Renewal(lease_id=lease_id, ok=False, status=503, error_code="UZ-INTERNAL-001")
    )
    async with renewing(script) as renewer:
        for live in lives:
            renewer.add(live)
        await trio.sleep(15)
        script.answer = lambda lease_id: Renewal(lease_id=lease_id)
        await trio.sleep(60)

    assert not any(live.halted for live in lives)


async def test_a_row_that_is_missing_from_a_batch_is_asked_for_again(autojump_clock: MockClock) -> None:
    lives = [live_lease(), live_lease()]
    script = Script(answer=lambda _: Renewal(lease_id="another"))
    async with renewing(script) as renewer:
        for live in lives:
            renewer.add(live)
        await trio.sleep(15)
        script.answer = lambda lease_id: Renewal(lease_id=lease_id)
        await trio.sleep(60)

    assert not any(live.halted for live in lives)


async def test_cancelling_is_heard_at_the_next_renewal(autojump_clock: MockClock) -> None:
    live = live_lease()
    async with renewing(
        Script(answer=lambda lease_id: Renewal(lease_id=lease_id, state="cancelling"))
    ) as renewer:
        renewer.add(live)
        await trio.sleep(12)

    assert live.halted is Halt.CANCELLED


async def test_a_lease_that_was_removed_is_left_alone_even_by_an_answer_on_its_way(
    autojump_clock: MockClock,
) -> None:
    live, script = live_lease(), Script(hang=True)
    async with renewing(script) as renewer:
        renewer.add(live)
        await trio.sleep(12)
        renewer.remove(live)
        await trio.sleep(60)

    assert live.halted is None
    assert len(script.calls) == 1


async def test_a_rejected_token_is_not_mistaken_for_a_lost_lease(autojump_clock: MockClock) -> None:
    def revoked(_: str) -> Renewal:
        raise TokenRejected(401, "UZ-RUN-009", "revoked")

    live = live_lease()
    with pytest.RaisesGroup(pytest.RaisesExc(TokenRejected), flatten_subgroups=True):
        async with renewing(Script(answer=revoked)) as renewer:
            renewer.add(live)
            await trio.sleep(60)

    assert live.halted is None


async def test_time_at_a_gate_is_not_run_time(autojump_clock: MockClock) -> None:
    live = live_lease()
    live.usage.go()
    await trio.sleep(2)
    live.usage.rest()
    await trio.sleep(100)
    live.usage.go()
    await trio.sleep(1)

    assert live.renewal() == {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0, "run_ms": 3000}
