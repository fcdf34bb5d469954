"""The page of the fleet: runners, the leases that they hold, and the queue."""

from typing import Any, Final

from sexton_http.answers import Answer
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody
from sexton_http.pages.console import console_operation, refused_page
from sexton_http.pages.form_actions import act, may
from sexton_http.pages.templates.frame import Frame, show
from sexton_http.routes.fleet import (
    FleetPage,
    LeaseList,
    LeaseQuery,
    QueueState,
    RunnerQuery,
    list_live_leases,
    list_runners,
    view_queue,
)

HERE: Final = "fleet"
REFUSED: Final = (
    "The fleet serves every tenant, so only platform admins see it. "
    "What your own events wait for stands on the page of each event."
)


@console_operation(HERE, HERE, "Fleet")
async def show_fleet(call: Call[NoBody, RunnerQuery], frame: Frame) -> Answer:
    """Show runners, live leases and the queue, to platform admins."""
    who = frame.signed_in
    if not may(who, list_runners):
        return refused_page(frame, REFUSED, status=403)
    runners: FleetPage = await act(call, who, list_runners, query=call.query)
    leases: LeaseList = await act(call, who, list_live_leases, query=LeaseQuery())
    queue: QueueState = await act(call, who, view_queue)
    values: dict[str, Any] = {"runners": runners.items, "total": runners.total, "leases": leases.items}
    return show(frame, "fleet", queue=queue, now=call.ctx.world.now_ms(), **values)
