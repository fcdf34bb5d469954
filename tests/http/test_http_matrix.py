"""Every route meets every kind of token, and gives the code that the contract says.

The ordinary run leaves out pairs that others stand for (see ``pairs``); `make test-thorough` tries them all.
"""

import re
from collections import defaultdict
from typing import Any
from uuid import UUID

import httpx2
import pytest

from sexton_http.gateway.operations import Auth, Operation
from sexton_http.routes.table import OPERATIONS
from sexton_storage.records.users import Rank, Role
from tests.thorough import PART, THOROUGH
from tests.worlds.bearer_tokens import KINDS, TENANT_B, WORKSPACE_B, Worth, settle_tenant_b
from tests.worlds.http import HttpWorld, open_http_world

UNKNOWN = UUID("019363b0-0000-7000-8000-00000000ffff")
REFUSALS = frozenset(
    {
        "UZ-AUTH-001",
        "UZ-AUTH-002",
        "UZ-AUTH-003",
        "UZ-AUTH-004",
        "UZ-AUTH-009",
        "UZ-AUTH-010",
        "UZ-AUTH-021",
        "UZ-APIKEY-004",
        "UZ-MEM-001",
        "UZ-RUN-001",
        "UZ-RUN-009",
        "UZ-RUN-015",
        "UZ-WORKSPACE-001",
    }
)
BODIES: dict[str, Any] = {
    # An enrolment token is looked at when it is used, and that is when the body has been read.
    "enrol_runner": {"host_id": "h", "sandbox_tier": "bubblewrap"},
    # What is another's is looked for when the body has been read, too.
    "change_zombie": {"status": "stopped"},
    "steer_zombie": {"message": "hello"},
    "start_canary": {"agent_version": 1, "share": 10},
    "pin_agent": {"agent_version": 1},
    "start_shadow": {"agent_version": 1, "budget_nanos": 1},
    "begin_erasure": {"path": "customer.email", "value": "ann@example.org"},
    "begin_workspace_upload": {"sha256": "0" * 64, "size": 1},
    "change_api_key": {"active": False},
    "verify_webhook": {"headers": {}, "body": ""},
    "request_integration": {"service": "slack", "reason": "to tell people"},
    "change_grant": {"status": "approved"},
    "change_credential_grant": {"status": "approved"},
    "create_proposal": {"title": "t", "rationale": "r", "source_markdown": "s"},
    "reject_proposal": {"rejection_reason": "no"},
    "replay_events": {"filter": "after:0"},
    "cancel_events": {"filter": "after:0"},
    "schedule_follow_up": {"call_id": "c", "message": "m", "delay_s": 60},
}
NOT_FOUND = {
    "erasure_id": "UZ-ERASURE-001",
    "zombie_id": "UZ-ZMB-009",
    "gate_id": "UZ-APPROVAL-002",
    "key_id": "UZ-APIKEY-003",
    "agent_id": "UZ-AGENT-001",
}
"""What a tenant has, by the parameter that names it, and how it reads to another tenant."""
NOT_FOUND_THERE = {"list_memories": "UZ-MEM-002"}
"""By the route, where it has a code of its own for that."""


def expected(operation: Operation, worth: Worth) -> str:
    """The code by the contract; nothing where the bearer is let in."""
    match operation.auth:
        case Auth.PUBLIC | Auth.WEBHOOK | Auth.SCRAPER:
            return ""
        case Auth.BROWSER:
            # Only a page of this server, in a browser that is signed in, is let in; no token helps.
            return "UZ-AUTH-001"
        case Auth.RUNNER:
            return worth.runner
        case Auth.APPROVAL:
            return worth.approver
        case Auth.PLATFORM:
            return worth.member or _to_platform(worth)
        case Auth.ENROLMENT:
            if worth.enroller is not None:
                return worth.enroller
            return worth.member or _to_platform(worth)
        case Auth.MEMBER if operation.agents and worth.agent:
            return "" if worth.agent == "own" else operation.agents
        case Auth.MEMBER:
            return worth.member or _within(operation, worth)


def _to_platform(worth: Worth) -> str:
    if not worth.platform:
        return "UZ-AUTH-021"
    return "UZ-AUTH-001" if worth.limited else ""


def _within(operation: Operation, worth: Worth) -> str:
    if not Rank(worth.role).reaches(operation.role or Role.VIEWER):
        return "UZ-AUTH-009"
    if operation.tenant_wide and worth.limited:
        return "UZ-AUTH-001"
    return worth.workspace if operation.in_workspace else ""


def address(operation: Operation, world: HttpWorld, zombie_id: str) -> str:
    """The route's path in the first workspace, with its agent and with no other thing that exists."""
    known = {"workspace_id": world.installation.workspace_id, "zombie_id": zombie_id}
    return re.sub(r"\{(\w+)\}", lambda part: str(known.get(part[1], UNKNOWN)), operation.path)


async def probe(world: HttpWorld, method: str, path: str, header: str | None, body: Any) -> httpx2.Response:
    """The answer, read to its end only where it says no: a stream has none."""
    headers = {} if header is None else {"authorization": header}
    async with world.http.stream(method, path, headers=headers, json=body) as answer:
        if not answer.is_success:
            await answer.aread()
    return answer


def code_of(answer: httpx2.Response) -> str:
    is_problem = answer.headers.get("content-type") == "application/problem+json"
    return answer.json()["error_code"] if is_problem else ""


def shape(operation: Operation) -> tuple[object, ...]:
    """What decides about a bearer; routes of one shape differ in nothing that is asked of a token."""
    return (
        *(operation.auth, operation.role, operation.hot, operation.in_workspace),
        *(operation.tenant_wide, operation.agents),
    )


def pairs() -> set[tuple[str, str]]:
    """Routes and kinds of tokens that meet in this run.

    Each route meets some of the kinds that get one code there, for each code. Each kind meets a route of each
    shape.
    """
    if THOROUGH:
        return {(operation.name, name) for operation in OPERATIONS for name in KINDS}
    chosen, shapes = set(), defaultdict[tuple[object, ...], list[Operation]](list)
    for turn, operation in enumerate(OPERATIONS):
        shapes[shape(operation)].append(operation)
        outcomes = defaultdict[str, list[str]](list)
        for name, kind in KINDS.items():
            outcomes[expected(operation, kind.worth)].append(name)
        for names in outcomes.values():
            first = turn % min(PART, len(names))
            chosen |= {(operation.name, name) for name in names[first::PART]}
    for turn, name in enumerate(KINDS):
        chosen |= {(alike[turn % len(alike)].name, name) for alike in shapes.values()}
    return chosen


PAIRS = pairs()


async def meet(world: HttpWorld, name: str, operations: list[Operation]) -> list[str]:
    """What is not as it should be, a line each."""
    kind = KINDS[name]
    zombie = await world.install()
    header = await kind.make(world)
    wrong = []
    for operation in operations:
        if (operation.name, name) not in PAIRS:
            continue
        path = address(operation, world, zombie["zombie_id"])
        answer = await probe(world, operation.method, path, header, BODIES.get(operation.name, {}))
        got, want = code_of(answer), expected(operation, kind.worth)
        if got != want and (want or got in REFUSALS - set(operation.codes)):
            wrong.append(f"{operation.method} {operation.path}: {got or answer.status_code}, not {want}")
        if got in {"UZ-AUTH-002", "UZ-RUN-001"} and operation.auth is not Auth.PUBLIC:
            assert answer.headers["www-authenticate"].startswith("Bearer"), path
    return wrong


@pytest.mark.parametrize("name", KINDS)
async def test_every_route_gives_this_kind_of_token_its_due(name: str) -> None:
    async with open_http_world(address_rate=None) as world:
        assert await meet(world, name, list(OPERATIONS)) == []


@pytest.mark.parametrize("name", KINDS)
async def test_the_other_mount_of_a_hot_route_is_no_way_round(name: str) -> None:
    hot = [operation for operation in OPERATIONS if operation.hot]
    async with open_http_world(fast=False, address_rate=None) as world:
        assert await meet(world, name, hot) == []


async def test_head_is_let_in_where_get_is_and_nowhere_else() -> None:
    async with open_http_world(address_rate=None) as world:
        await _hold_head_against_get(world)


async def _hold_head_against_get(world: HttpWorld) -> None:
    zombie = await world.install()
    gets = [operation for operation in OPERATIONS if operation.method == "GET"]
    for header in (None, f"Bearer {world.api_key}", f"Bearer {world.admin_token()}"):
        for operation in gets:
            path = address(operation, world, zombie["zombie_id"])
            looked = await probe(world, "GET", path, header, None)
            asked = await probe(world, "HEAD", path, header, None)
            assert asked.status_code == looked.status_code, path
            assert asked.headers["content-type"] == looked.headers["content-type"], path
            assert asked.is_success or asked.content == b"", path


async def test_what_a_tenant_has_is_not_there_for_another(world: HttpWorld) -> None:
    """Under the other's own workspace, with a token that is good for it."""
    zombie, token, lease = await world.working()
    ask = {"action_id": "a1", "tool_name": "http", "action_name": "POST"}
    gate = (await world.post(f"/v1/runners/me/leases/{lease['lease_id']}/gates", ask, token)).json()
    key = (await world.post("/v1/api-keys", {"key_name": "k"})).json()
    await settle_tenant_b(world)
    header = f"Bearer {world.user_token(Role.ADMIN, tenant_id=TENANT_B)}"
    ids = {
        "workspace_id": str(WORKSPACE_B),
        "zombie_id": zombie["zombie_id"],
        "gate_id": gate["gate_id"],
        "key_id": key["id"],
        "agent_id": zombie["zombie_id"],
    }
    tried = 0
    for operation in OPERATIONS:
        owned = [name for name in operation.params if name in NOT_FOUND]
        if operation.auth is not Auth.MEMBER or not owned:
            continue
        path = re.sub(r"\{(\w+)\}", lambda part: ids.get(part[1], str(UNKNOWN)), operation.path)
        answer = await probe(world, operation.method, path, header, BODIES.get(operation.name, {}))
        want = NOT_FOUND_THERE.get(operation.name, NOT_FOUND[owned[0]])
        assert (code_of(answer), answer.status_code) == (want, 404), operation.path
        tried += 1
    assert tried >= len(NOT_FOUND)

    shown = (await world.get(f"{world.ws}/zombies/{zombie['zombie_id']}")).json()
    assert shown["status"] == "active"


def test_a_limited_token_changes_nothing_of_the_whole_tenant() -> None:
    """What is of no workspace and no agent, and is not the caller's own, is declared to be the tenant's."""
    own = {
        *("abort_auth_sessions", "abort_auth_session", "complete_auth_session", "approve_auth_session"),
        # What a tool changes is changed by the route that it asks.
        *("end_sign_in", "serve_assistant"),
    }
    for operation in OPERATIONS:
        changes = operation.auth is Auth.MEMBER and operation.method not in {"GET", "HEAD"}
        placed = {"workspace_id", "zombie_id", "agent_id"} & {*operation.params}
        if changes and not placed and operation.name not in own:
            assert operation.tenant_wide, operation.name


def test_the_matrix_leaves_no_route_and_no_kind_of_route_out() -> None:
    for operation in OPERATIONS:
        met = {expected(operation, KINDS[name].worth) for route, name in PAIRS if route == operation.name}
        assert met == {expected(operation, kind.worth) for kind in KINDS.values()}, operation.name
    shapes = {operation.name: shape(operation) for operation in OPERATIONS}
    for name in KINDS:
        assert {shapes[route] for route, kind in PAIRS if kind == name} == {*shapes.values()}, name

    for auth in {operation.auth for operation in OPERATIONS} - {Auth.PUBLIC, Auth.WEBHOOK, Auth.SCRAPER}:
        outcomes = {
            expected(operation, kind.worth)
            for operation in OPERATIONS
            if operation.auth is auth
            for kind in KINDS.values()
        }
        assert len(outcomes) > 1 or outcomes == {"UZ-AUTH-001"} or auth is Auth.APPROVAL, auth
