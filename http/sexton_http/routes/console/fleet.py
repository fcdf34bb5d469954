"""The page of the fleet: runners and what is done with them, the leases that they hold, and the queue."""

import shlex
from typing import Any, Final, Literal

from sexton_http.answers import Answer
from sexton_http.bodies.shapes import Body
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery
from sexton_http.pages.console import (
    Notice,
    console_form,
    console_operation,
    frame_of,
    refused_page,
)
from sexton_http.pages.form_actions import FormDecoder, act, may
from sexton_http.pages.layout import see
from sexton_http.pages.templates.frame import Frame, show
from sexton_http.routes.fleet import (
    AdminWish,
    EnrolmentMade,
    FleetPage,
    LeaseList,
    LeaseQuery,
    NewEnrolment,
    QueueState,
    RunnerPatch,
    RunnerQuery,
    change_runner,
    list_live_leases,
    list_runners,
    mint_enrolment_token,
    view_queue,
)
from sexton_http.routes.shared.told_acts import act_told

HERE: Final = "fleet"
TITLE: Final = "Fleet"
CREATED: Final = 201
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


_WISH: Final = FormDecoder(RunnerWish)


@console_operation(HERE, HERE, TITLE)
async def show_fleet(call: Call[NoBody, RunnerQuery], frame: Frame) -> Answer:
    """Show runners, live leases and the queue, to platform admins."""
    return await _page(call, frame, call.query)


async def _again(call: Call[Any, Any], frame: Frame, notice: Notice) -> Answer:
    return await _page(call, frame, RunnerQuery(), notice=notice)


@console_form(HERE, HERE, TITLE, _again, form=None, status=CREATED)
async def submit_enrolment(call: Call[NoBody, NoQuery]) -> Answer:
    """Mint an enrolment token, and show the command that starts a runner with it, this once."""
    made: EnrolmentMade = await act_told(call, call.signed_in, mint_enrolment_token, body=NewEnrolment())
    address = shlex.quote(call.ctx.settings.base_url)
    command = (
        f"SEXTON_ENROLMENT_TOKEN={made.token} sexton runner --base-url {address} --state-dir {STATE_DIR}"
    )
    frame = await frame_of(call, call.signed_in, HERE, TITLE)
    return await _page(call, frame, RunnerQuery(), command=command, until=made.expires_at)


@console_form(HERE + "/{runner_id}", HERE, TITLE, _again, form=RunnerWish)
async def submit_runner(call: Call[NoBody, NoQuery]) -> Answer:
    """Cordon a runner, drain it, let it work again, or revoke it."""
    state = _STATES[_WISH.decode(call).verb]
    await act_told(call, call.signed_in, change_runner, body=RunnerPatch(state))
    return see(f"/console/{call.id('workspace_id')}/{HERE}")


async def _page(
    call: Call[Any, Any],
    frame: Frame,
    query: RunnerQuery,
    *,
    notice: Notice | None = None,
    command: str = "",
    until: int | None = None,
) -> Answer:
    who = frame.signed_in
    if not may(who, list_runners):
        return refused_page(frame, REFUSED, status=403)
    runners: FleetPage = await act(call, who, list_runners, query=query)
    leases: LeaseList = await act(call, who, list_live_leases, query=LeaseQuery())
    queue: QueueState = await act(call, who, view_queue)
    status = CREATED if command else 200
    return show(
        frame,
        "fleet",
        status=status if notice is None else notice.status,
        runners=runners.items,
        total=runners.total,
        leases=leases.items,
        queue=queue,
        notice=notice,
        command=command,
        until=until,
        now=call.ctx.world.now_ms(),
    )
