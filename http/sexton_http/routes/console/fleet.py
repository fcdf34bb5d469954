"""The page of the fleet: runners and what is done with them, the leases that they hold, and the queue."""

import shlex
from collections.abc import Sequence
from math import log
from typing import Annotated, Any, Final, Literal

import msgspec

from sexton_http.answers import Answer, Problem
from sexton_http.bodies.shapes import Body
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery
from sexton_http.pages.console import (
    Notice,
    console_form,
    console_operation,
    frame_of,
    query_of,
    refused_page,
    see_page,
    show_page,
)
from sexton_http.pages.form_actions import FormDecoder, act, may
from sexton_http.pages.side_by_side import Asked, side_by_side
from sexton_http.pages.templates.frame import Frame
from sexton_http.routes.fleet import (
    AdminWish,
    EnrolmentMade,
    FleetPage,
    LeaseList,
    LeaseQuery,
    NewEnrolment,
    RunnerPatch,
    RunnerQuery,
    change_runner,
    list_live_leases,
    list_runners,
    mint_enrolment_token,
)
from sexton_http.routes.fleet_queue import QueueState, TagDepth, view_queue
from sexton_http.routes.shared.told_acts import act_told

HERE: Final = "fleet"
TITLE: Final = "Fleet"
CREATED: Final = 201
OK: Final = 200
FULL_AGE_S: Final = 3600
STATE_DIR: Final = "~/.local/state/sexton-runner"
REFUSED: Final = (
    "The fleet serves every tenant, so only platform admins see it. "
    "What your own events wait for stands on the page of each event."
)
_STATES: Final = {
    "cordon": AdminWish.CORDONED,
    "activate": AdminWish.ACTIVE,
    "drain": AdminWish.DRAINING,
    "revoke": AdminWish.REVOKED,
}


class RunnerWish(Body):
    """What the buttons of a runner send."""

    verb: Literal["cordon", "activate", "drain", "revoke"]
    name: Annotated[str, msgspec.Meta(max_length=256)] = ""
    """The runner's host, typed by whoever revokes it."""


_WISH: Final = FormDecoder(RunnerWish)


def oldest_first(depths: Sequence[TagDepth]) -> list[TagDepth]:
    """Labels whose oldest event has waited longest come first."""
    return sorted(depths, key=lambda depth: (-(depth.oldest_age_ms or 0), depth.required_tags))


def share_of_age(age_ms: int | None) -> float:
    """How full the bar of an age is: by its logarithm, from a second to an hour.

    >>> [round(share_of_age(age), 2) for age in (None, 500, 60_000, 3_600_000, 10**9)]
    [0.0, 0.0, 0.5, 1.0, 1.0]
    """
    return 0.0 if not age_ms else min(1.0, max(0.0, log(age_ms / 1000, FULL_AGE_S)))


async def _page(
    call: Call[Any, Any],
    frame: Frame,
    notice: Notice | None = None,
    *,
    command: str = "",
    until: int | None = None,
) -> Answer:
    who = frame.signed_in
    if not may(who, list_runners):
        return refused_page(frame, REFUSED, status=403)
    async with side_by_side() as ask:
        runners: Asked[FleetPage] = ask(act, call, who, list_runners, query=query_of(call, RunnerQuery))
        leases: Asked[LeaseList] = ask(act, call, who, list_live_leases, query=LeaseQuery())
        queued: Asked[QueueState] = ask(act, call, who, view_queue)
    queue = queued.answer
    return show_page(
        call,
        frame,
        "fleet",
        notice,
        status=CREATED if command else OK,
        runners=runners.answer.items,
        total=runners.answer.total,
        leases=leases.answer.items,
        # Agents of other tenants have no page that this person may see.
        mine={workspace.id for workspace in frame.workspaces},
        queue=queue,
        by_age=[(depth, share_of_age(depth.oldest_age_ms)) for depth in oldest_first(queue.by_tags)],
        command=command,
        until=until,
    )


@console_operation(HERE, HERE, TITLE)
async def show_fleet(call: Call[NoBody, RunnerQuery], frame: Frame) -> Answer:
    """Show runners, live leases and the queue, to platform admins."""
    return await _page(call, frame)


@console_form(HERE, HERE, TITLE, _page, form=None, status=CREATED)
async def submit_enrolment(call: Call[NoBody, NoQuery]) -> Answer:
    """Mint an enrolment token, and show the command that starts a runner with it, this once."""
    made: EnrolmentMade = await act_told(call, call.signed_in, mint_enrolment_token, body=NewEnrolment())
    address = shlex.quote(call.ctx.settings.base_url)
    command = (
        f"SEXTON_ENROLMENT_TOKEN={made.token} sexton runner --base-url {address} --state-dir {STATE_DIR}"
    )
    frame = await frame_of(call, call.signed_in, HERE, TITLE)
    return await _page(call, frame, command=command, until=made.expires_at)


@console_form(HERE + "/{runner_id}", HERE, TITLE, _page, form=RunnerWish)
async def submit_runner(call: Call[NoBody, NoQuery]) -> Answer:
    """Cordon a runner, drain it, let it work again, or revoke it once its host was typed."""
    wish = _WISH.decode(call)
    state = _STATES[wish.verb]
    if state is AdminWish.REVOKED and may(call.signed_in, change_runner):
        runner = await call.ctx.world.storage.runners.load(call.id("runner_id"))
        if runner is not None and wish.name.strip() != runner.host_id:
            detail = f"name: to revoke the runner for good, type the name of its host, {runner.host_id}"
            raise Problem("UZ-REQ-001", detail, facts={"parameter": "name"})
    await act_told(call, call.signed_in, change_runner, body=RunnerPatch(state))
    return see_page(call, HERE)
