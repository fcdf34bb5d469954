"""Every code that a route declares is provoked by some test: here those that come with what it declares."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import jwt
import msgspec
import pytest
from msgspec.inspect import CollectionType, Metadata, StructType, UnionType, UUIDType, VarTupleType

from sexton_actors.refusal import Refusal
from sexton_engine import AskTimeout, EngineError
from sexton_http.answers import Answer, Problem, RequestHead
from sexton_http.ceilings import Ceiling, Full
from sexton_http.describe.documents import make_documents
from sexton_http.gateway.limits import Limiter, Quota, Verdict
from sexton_http.gateway.operations import Auth, NoBody, NoQuery, Operation, Wait
from sexton_http.gateway.pipeline import Mounted
from sexton_http.gateway.request_body import read_body
from sexton_http.gateway.services import Services, make_services
from sexton_http.identity.context import Claims
from sexton_http.pages.form_actions import FORM_TYPE, TAG
from sexton_http.problems import CODES
from sexton_http.routes.table import OPERATIONS
from sexton_storage.errors import StorageError, StorageUnavailable
from sexton_storage.records.tenants import PlanTier
from tests.http.conftest import declared_codes, is_whole, seen_codes
from tests.http.test_http_declarations import apart
from tests.worlds.answer_checks import SEEN
from tests.worlds.http import HttpWorld

UNKNOWN = UUID("019363b0-0000-7000-8000-00000000ffff")
TOO_LARGE = b" " * 32 * 1024
"""A body for which there is no room: larger than what is not counted."""
TOLD_ON_A_PAGE = re.compile(rb"(UZ-[A-Z0-9]+-\d{3}), request ")
"""How the page that a form is on says why it has come back."""
SAME_ORIGIN = (b"sec-fetch-site", b"same-origin")


class Refusing:
    """A limiter under which nobody may do anything."""

    def admit(self, key: object, rate: int) -> Verdict:
        return Verdict(allowed=False, burst=2 * rate, remaining=0, reset_s=2, wait_s=1)

    def spend(self, key: object, quota: Quota) -> Verdict:
        return self.admit(key, quota.count)


class UnreachableIssuer:
    """An identity provider whose keys cannot be had."""

    name = "https://down.example"

    async def verify(self, token: str, now_s: float) -> Claims:
        raise Problem("UZ-AUTH-004", "its keys cannot be fetched", wait_s=1)


async def without_room(mounted: Mounted, head: RequestHead, params: dict[str, str]) -> Any:
    """The answer to a body that comes in two parts, where all bodies together have no room left."""
    parts = iter((True, False))

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": TOO_LARGE, "more_body": next(parts)}

    ticket = await mounted.admit(head, params)
    if isinstance(ticket, Answer):
        return ticket
    try:
        await read_body(receive, ticket, 2 * len(TOO_LARGE))
    except Full as full:
        return await mounted.refuse_body(ticket, full)
    finally:
        ticket.leave()
    return None


class Stage:
    """The routes in process: a request is a call, and what is behind them can be set up to fail."""

    def __init__(self, world: HttpWorld, zombie: dict[str, Any], runner: str) -> None:
        self.world = world
        self.zombie = zombie
        self.runner = runner
        self.base = apart(world)
        self.services = make_services(self.base, make_documents(OPERATIONS, ""))
        self.cookie = b""

    async def sign_in(self) -> None:
        head = RequestHead("POST", "/", b"", {}, "")
        header = await self.services.browsers.sign_in(head, self.world.installation.user_id)
        assert header is not None
        self.cookie = header[1].partition(b";")[0]

    def other(self, limiter: Limiter | None = None, **changes: Any) -> Services:
        """Services on another context."""
        registry = apart(self.world).registry
        ctx = replace(self.base, registry=registry, **changes)
        return make_services(ctx, self.services.documents, limiter)

    def headers(self, operation: Operation) -> dict[bytes, bytes]:
        """Of a caller who may."""
        token = {
            Auth.MEMBER: self.world.admin_token(),
            Auth.PLATFORM: self.world.admin_token(),
            Auth.ENROLMENT: self.world.admin_token(),
            Auth.RUNNER: self.runner,
            Auth.APPROVAL: self.zombie["approval_token"],
        }.get(operation.auth)
        if token is not None:
            return {b"authorization": f"Bearer {token}".encode()}
        return dict([(b"cookie", self.cookie), SAME_ORIGIN]) if operation.auth is Auth.BROWSER else {}

    async def code(
        self,
        operation: Operation,
        *,
        services: Services | None = None,
        body: bytes | None = b"",
        query: bytes = b"",
        media: bytes = b"application/json",
        params: dict[str, str] | None = None,
        headers: dict[bytes, bytes] | None = None,
    ) -> str:
        """The code of the answer, if it is a problem."""
        chosen = services or self.services
        known = {
            "workspace_id": str(self.world.installation.workspace_id),
            "zombie_id": self.zombie["zombie_id"],
        }
        filled = {name: known.get(name, str(UNKNOWN)) for name in operation.params} | (params or {})
        path = re.sub(r"\{(\w+)\}", lambda part: filled[part[1]], operation.path)
        sent = {b"content-type": media, **(self.headers(operation) if headers is None else headers)}
        head = RequestHead(operation.method, path, query, sent, "127.0.0.1")
        mounted = Mounted(operation, chosen)
        answer = await (
            without_room(mounted, head, filled) if body is TOO_LARGE else mounted(head, filled, body)
        )
        if not isinstance(answer, Answer):
            return ""
        told = TOLD_ON_A_PAGE.search(answer.body)
        if b"application/problem+json" in dict(answer.headers).values():
            code: str = msgspec.json.decode(answer.body)["error_code"]
        elif told and answer.status in operation.extra_statuses:
            code = told[1].decode()
        else:
            return ""
        SEEN.add((operation.method, operation.path, code))
        return code


@pytest.fixture
async def stage(world: HttpWorld) -> Stage:
    zombie = await world.install()
    made = Stage(world, zombie, await world.enrol())
    await made.sign_in()
    return made


def failing(fault: Callable[[], Exception]) -> Any:
    async def handler(call: Any) -> None:
        """Fail."""
        raise fault()

    return handler


FAULTS: dict[str, Callable[[], Exception]] = {
    "UZ-INTERNAL-001": lambda: StorageUnavailable("away"),
    "UZ-INTERNAL-002": lambda: StorageError("refused"),
    "UZ-INTERNAL-003": lambda: EngineError("an actor failed"),
    "UZ-API-003": lambda: AskTimeout("late"),
}


@pytest.mark.parametrize("code", FAULTS)
async def test_a_fault_below_a_route_is_told_by_its_code(stage: Stage, code: str) -> None:
    for operation in OPERATIONS:
        if code in operation.all_codes():
            failed = replace(operation, handler=failing(FAULTS[code]), body=NoBody, query=NoQuery)
            assert await stage.code(failed) == code, operation.path
        else:
            assert operation.no_io, operation.path


async def test_at_its_ceiling_every_route_but_the_vital_ones_is_shed(stage: Stage) -> None:
    nothing = Ceiling(0)
    full = replace(stage.services, in_flight=nothing, long_polls=nothing, streams=nothing)
    vital = set()
    for operation in OPERATIONS:
        if operation.never_shed:
            vital.add(operation.path)
            assert await stage.code(operation, services=full) == "", operation.path
        else:
            code = "UZ-API-002" if operation.wait is Wait.STREAM else "UZ-API-001"
            assert await stage.code(operation, services=full) == code, operation.path

    assert vital == {"/healthz", "/readyz", "/metrics"}


async def test_over_its_rate_every_route_says_so_but_those_of_runners(stage: Stage) -> None:
    settings = replace(stage.base.settings, plan_rates=dict.fromkeys(PlanTier, 1), address_rate=1)
    services = stage.other(Refusing(), settings=settings)
    for operation in OPERATIONS:
        limited = not operation.never_shed and operation.auth is not Auth.RUNNER
        assert ("UZ-REQ-006" in operation.all_codes()) != operation.never_shed, operation.path
        if limited:
            assert await stage.code(operation, services=services) == "UZ-REQ-006", operation.path


async def test_over_the_rate_of_an_address_a_guess_at_a_runners_token_is_told_so(stage: Stage) -> None:
    services = stage.other(Refusing(), settings=replace(stage.base.settings, address_rate=1))
    for operation in OPERATIONS:
        if operation.auth is Auth.RUNNER:
            got = await stage.code(operation, services=services, headers={b"authorization": b"Bearer guess"})
            assert got == "UZ-REQ-006", operation.path


async def test_a_body_for_which_there_is_no_room_is_refused_by_every_route_that_reads_one(
    stage: Stage,
) -> None:
    full = replace(stage.services, bodies=Ceiling(0))
    for operation in OPERATIONS:
        assert ("UZ-API-004" in operation.all_codes()) == operation.reads_body, operation.path
        if operation.reads_body:
            assert await stage.code(operation, services=full, body=TOO_LARGE) == "UZ-API-004", operation.path


async def test_an_issuer_that_is_away_is_no_fault_of_the_token(stage: Stage) -> None:
    services = stage.other(other_issuers=(UnreachableIssuer(),))
    token = jwt.encode({"iss": UnreachableIssuer.name}, "s" * 32, "HS256")
    headers = {b"authorization": f"Bearer {token}".encode()}
    for operation in OPERATIONS:
        if operation.auth in {Auth.MEMBER, Auth.PLATFORM, Auth.ENROLMENT}:
            got = await stage.code(operation, services=services, headers=headers)
            assert got == "UZ-AUTH-004", operation.path


async def test_every_id_of_a_path_is_checked(stage: Stage) -> None:
    checked = 0
    for operation in OPERATIONS:
        for name in operation.ids:
            for wrong in ("x", "0" * 32, f"{{{UNKNOWN}}}", f"{UNKNOWN}0", "%00"):
                got = await stage.code(operation, params={name: wrong})
                assert got == "UZ-UUIDV7-009", (operation.path, name, wrong)
            checked += 1

    assert checked > len(OPERATIONS) // 2


async def test_every_body_is_checked(stage: Stage) -> None:
    for operation in OPERATIONS:
        if operation.has_body or operation.takes_nothing:
            assert await stage.code(operation, body=b"[]") == "UZ-REQ-001", operation.path
            assert await stage.code(operation, body=b'{"no such field":1}') == "UZ-REQ-001", operation.path
            assert await stage.code(operation, body=b"{}", media=b"text/plain") == "UZ-REQ-005", (
                operation.path
            )
            assert await stage.code(operation, body=b"{}", media=b"") == "UZ-REQ-005", operation.path
        if operation.reads_body:
            zipped = {**stage.headers(operation), b"content-encoding": b"gzip"}
            assert await stage.code(operation, body=b"{}", headers=zipped) == "UZ-REQ-005", operation.path
        if operation.reads_body:
            over = "UZ-WH-030" if operation.auth is Auth.WEBHOOK else "UZ-REQ-002"
            assert await stage.code(operation, body=None) == over, operation.path


async def test_every_query_is_checked(stage: Stage) -> None:
    checked = 0
    for operation in OPERATIONS:
        if operation.query is NoQuery:
            continue
        for field in msgspec.structs.fields(operation.query):
            name = field.encode_name.encode()
            got = await stage.code(operation, query=name + b"=1&" + name + b"=1")
            assert got == "UZ-REQ-001", (operation.path, name)
            checked += 1

    assert checked


def wrong_ids(info: msgspec.inspect.Type) -> Iterator[Any]:
    """Values with one wrong id in each place where one can be, in the order in which they are read."""
    match info:
        case UUIDType():
            yield "x"
        case StructType(fields=fields):
            for field in fields:
                for wrong in wrong_ids(field.type):
                    yield {field.encode_name: wrong}
        case CollectionType(item_type=item) | VarTupleType(item_type=item):
            for wrong in wrong_ids(item):
                yield [wrong]
        case UnionType(types=types):
            for one in types:
                yield from wrong_ids(one)
        case Metadata(type=inner):
            yield from wrong_ids(inner)
        case _:
            return


async def test_every_id_of_a_body_or_a_query_is_checked(stage: Stage) -> None:
    for operation in OPERATIONS:
        for wrong in wrong_ids(msgspec.inspect.type_info(operation.body)):
            if "UZ-UUIDV7-009" not in operation.all_codes():
                continue  # An item fails by itself there, with 200 for the whole.
            if operation.path == "/v1/runners/me/leases:renew":
                # The same, unless the whole is wrong too.
                wrong["surplus"] = 1
            got = await stage.code(operation, body=msgspec.json.encode(wrong))
            assert got == "UZ-UUIDV7-009", (operation.path, wrong)
        for wrong in wrong_ids(msgspec.inspect.type_info(operation.query)):
            [(name, value)] = wrong.items()
            got = await stage.code(operation, query=f"{name}={value}".encode())
            assert got == "UZ-UUIDV7-009", (operation.path, wrong)


async def test_a_form_is_taken_from_our_own_pages_only_and_from_who_is_signed_in(stage: Stage) -> None:
    for operation in OPERATIONS:
        if operation.auth is Auth.BROWSER:
            for headers, code in (({}, "UZ-AUTH-001"), (dict([SAME_ORIGIN]), "UZ-AUTH-002")):
                assert await stage.code(operation, headers=headers) == code, operation.path


async def test_a_form_with_a_field_sent_twice_is_refused(stage: Stage) -> None:
    for operation in OPERATIONS:
        if operation.form is not None:
            twice = f"{operation.form.__struct_encode_fields__[0]}=1".encode()
            got = await stage.code(operation, body=twice + b"&" + twice, media=FORM_TYPE.encode())
            assert got == "UZ-REQ-001", operation.path


async def test_a_page_or_form_of_an_unknown_workspace_is_refused(stage: Stage) -> None:
    elsewhere = {"workspace_id": str(UNKNOWN)}
    for operation in OPERATIONS:
        if operation.in_workspace and operation.tag == TAG:
            headers = dict([(b"cookie", stage.cookie), SAME_ORIGIN])
            got = await stage.code(operation, params=elsewhere, headers=headers)
            assert got == "UZ-WORKSPACE-001", operation.path


async def test_a_paused_workspace_starts_no_work(stage: Stage) -> None:
    workspace = await stage.world.storage.workspaces.load(stage.world.installation.workspace_id)
    assert workspace is not None
    assert await stage.world.storage.workspaces.save(msgspec.structs.replace(workspace, paused=True))

    services = stage.other()
    for operation in OPERATIONS:
        if operation.starts_work:
            assert await stage.code(operation, services=services) == "UZ-WORKSPACE-002", operation.path


async def test_an_approval_for_an_agent_that_is_not_there_says_so(stage: Stage) -> None:
    for operation in OPERATIONS:
        if operation.auth is Auth.APPROVAL:
            got = await stage.code(operation, params={"zombie_id": str(UNKNOWN)})
            assert got == "UZ-WH-001", operation.path


async def test_an_agent_that_cannot_be_paused_is_told_no(stage: Stage) -> None:
    """Only an actor that fails leads there; here in its place its word."""

    async def refused(call: Any) -> Refusal:
        """Refuse."""
        return Refusal("UZ-APPROVAL-004", "The agent could not be paused, so the answer is no.")

    for operation in OPERATIONS:
        if "UZ-APPROVAL-004" in operation.codes:
            failed = replace(operation, handler=refused, body=NoBody)
            assert await stage.code(failed) == "UZ-APPROVAL-004"


def test_every_declared_code_was_seen(request: pytest.FixtureRequest) -> None:
    """Stands last, after the fixture of every other test: see conftest.py."""
    if hasattr(request.config, "workeroutput"):
        pytest.skip("the processes tell the first one what they have seen, and it looks at the end")
    if not is_whole(request.session):
        pytest.skip("only after all tests of this folder")
    declared = declared_codes()
    assert {code.split()[-1] for code in declared} <= set(CODES)

    unseen = sorted(declared - seen_codes())
    assert not unseen, "\n".join(unseen)
