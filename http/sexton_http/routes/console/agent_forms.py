"""What the forms of an agent's pages do: steer it, go back to a version, decide proposals, forget."""

from typing import Any, Final, Literal
from uuid import UUID

import msgspec

from sexton_http.answers import Answer, Problem
from sexton_http.bodies.grant_shapes import GrantTarget
from sexton_http.bodies.shapes import Body
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery, Operation
from sexton_http.pages.console import console_form, frame_of, see_page
from sexton_http.pages.form_actions import FormDecoder
from sexton_http.routes.canaries import (
    VERSION_MAX,
    CanaryEnding,
    CanaryGuard,
    CanaryPromoted,
    NewCanary,
    promote_canary,
    start_canary,
    withdraw_canary,
)
from sexton_http.routes.console.agents import HERE, agent_page
from sexton_http.routes.grants import GrantPatch, change_grant
from sexton_http.routes.harness import VersionActivated, VersionWish, activate_harness
from sexton_http.routes.memories import MemoryKey, forget_memory
from sexton_http.routes.proposals import ProposalApproved, RejectionBody, approve_proposal, reject_proposal
from sexton_http.routes.shared.message_form import MESSAGE_BYTES
from sexton_http.routes.shared.told_acts import act_told
from sexton_http.routes.zombies import NewMessage, ZombiePatch, ZombieTarget, change_zombie, steer_zombie
from sexton_storage.records.improvement import ProposalStatus

DONE: Final = 200
DIGITS: Final = 10


class AgentWish(Body):
    """What the forms of an agent send: what is to be done, and the field that it needs."""

    verb: Literal[
        "steer",
        "start",
        "stop",
        "roll_back",
        "approve",
        "reject",
        "forget",
        "grant",
        "revoke",
        "try",
        "promote",
        "withdraw",
    ]
    message: str = ""
    """To the agent; why a proposal is rejected."""
    version: str = ""
    """The id of one to go back to, the number of one to try out."""
    share: str = ""
    failures: str = ""
    proposal: str = ""
    key: str = ""
    grant: str = ""


_WISH: Final = FormDecoder(AgentWish)
_TARGETS: Final = {"start": ZombieTarget.ACTIVE, "stop": ZombieTarget.STOPPED}
_GRANTS: Final = {"grant": GrantTarget.APPROVED, "revoke": GrantTarget.REVOKED}


@console_form(HERE + "/{zombie_id}", HERE, "Agent", agent_page, form=AgentWish, shows=(DONE,))
async def submit_agent(call: Call[NoBody, NoQuery]) -> Answer:
    """Do what a form of an agent's page asks for; then show what came of it.

    Where a version brings triggers with new secrets, the page shows their addresses this once.
    """
    wish, zombie_id = _WISH.decode(call), call.id("zombie_id")
    match wish.verb:
        case "steer":
            _check_message(wish.message)
            accepted = await _do(call, steer_zombie, body=NewMessage(wish.message))
            return see_page(call, "events", accepted.event_id)
        case "start" | "stop":
            await _do(call, change_zombie, body=ZombiePatch(status=_TARGETS[wish.verb]))
        case "forget":
            await _do(call, forget_memory, query=MemoryKey(wish.key))
        case "roll_back":
            body = VersionWish(_id(wish.version, "version"))
            active: VersionActivated = await _do(call, activate_harness, body=body)
            return await _configured(call, active)
        case "try":
            await _do(call, start_canary, body=_trial(wish))
        case "promote":
            promoted: CanaryPromoted = await _do(call, promote_canary)
            return await _configured(call, promoted)
        case "withdraw":
            await _do(call, withdraw_canary, body=CanaryEnding("Withdrawn in the console."))
        case "approve":
            applied: ProposalApproved = await _do(call, approve_proposal, proposal=wish.proposal)
            if applied.status is not ProposalStatus.APPLIED:
                detail = applied.rejection_reason or "the agent was changed after this was proposed"
                raise Problem("UZ-AGENT-002", f"the proposal is not applied: {detail}")
            return await _configured(call, applied)
        case "reject":
            why = RejectionBody(wish.message or "Rejected in the console.")
            await _do(call, reject_proposal, proposal=wish.proposal, body=why)
        case "grant" | "revoke":
            await _do(call, change_grant, grant=wish.grant, body=GrantPatch(_GRANTS[wish.verb]))
    return see_page(call, HERE, zombie_id)


async def _do(
    call: Call[Any, Any],
    route: Operation,
    *,
    body: msgspec.Struct | None = None,
    query: msgspec.Struct | None = None,
    proposal: str = "",
    grant: str = "",
) -> Any:
    """Do it as the route would, and have the audit log tell of the route."""
    params = {"agent_id": call.id("zombie_id")}
    if proposal:
        params["proposal_id"] = _id(proposal, "proposal")
    if grant:
        params["grant_id"] = _id(grant, "grant")
    return await act_told(call, call.signed_in, route, body=body, query=query, **params)


def _trial(wish: AgentWish) -> NewCanary:
    """What is tried out; a share of failures that is left out bounds nothing."""
    failures = None if not wish.failures else _number(wish.failures, "failures", (0, 100))
    guard = CanaryGuard(max_failure_percent=failures)
    share = _number(wish.share, "share", (1, 99))
    return NewCanary(_number(wish.version, "version", (1, VERSION_MAX)), share, guard)


def _number(text: str, field: str, bounds: tuple[int, int]) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= DIGITS else -1
    if not bounds[0] <= number <= bounds[1]:
        detail = f"{field}: a whole number from {bounds[0]} to {bounds[1]}"
        raise Problem("UZ-REQ-001", detail, facts={"parameter": field})
    return number


async def _configured(
    call: Call[Any, Any], done: VersionActivated | ProposalApproved | CanaryPromoted
) -> Answer:
    urls = {} if done.webhook_urls is msgspec.UNSET else dict(done.webhook_urls)
    if all(url.endswith("***") for url in urls.values()):
        return see_page(call, HERE, call.id("zombie_id"))
    frame = await frame_of(call, call.signed_in, HERE, "Agent")
    return await agent_page(call, frame, fresh_urls=urls)


def _check_message(message: str) -> None:
    if not message or len(message.encode()) > MESSAGE_BYTES:
        detail = f"a message has 1 to {MESSAGE_BYTES:,} bytes"
        raise Problem("UZ-REQ-001", detail, facts={"pointer": "/message"})


def _id(text: str, field: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise Problem("UZ-REQ-001", f"{field}: this is no id", facts={"parameter": field}) from None
