"""A number of five thousand digits, which Python does not read, is its sender's mistake."""

import base64
from typing import Any

import msgspec
import pytest

from sexton_http.gateway.operations import NoBody, NoQuery, Operation
from sexton_http.routes.table import OPERATIONS
from sexton_storage.records.users import Role
from tests.http.test_http_provocation import Stage
from tests.worlds.http import HttpWorld
from tests.worlds.http_agents import at

HUGE = "9" * 5000
BELOW = 500
SPELLINGS = {
    "a number": f'{{"field": {HUGE}}}',
    "a negative number": f'{{"field": -{HUGE}}}',
    "a number beside a fraction": f'{{"field": 1.0, "other": {HUGE}}}',
    "a number beside a key that stands twice": f'{{"field": 1, "field": 1, "other": {HUGE}}}',
    "a number beside a NUL": f'{{"field": "\\u0000", "other": {HUGE}}}',
    "a number beside half a pair": f'{{"field": "\\ud800", "other": {HUGE}}}',
    "a number in depth": f'{{"field": [[{{"deep": {HUGE}}}]]}}',
    "a number alone": HUGE,
    "a fraction": f'{{"field": {HUGE}.5}}',
    "an exponent": '{"field": 1e99999}',
}


@pytest.fixture
async def stage(world: HttpWorld) -> Stage:
    zombie = await world.install()
    made = Stage(world, zombie, await world.enrol())
    await made.sign_in()
    return made


def fields_of(shape: Any) -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(shape)]


async def status(stage: Stage, operation: Operation, **sent: Any) -> str:
    code = await stage.code(operation, **sent)
    return code if code in {"UZ-INTERNAL-001", "UZ-INTERNAL-002", "UZ-INTERNAL-003"} else ""


async def test_in_the_body_of_every_route(stage: Stage) -> None:
    wrong = []
    for operation in OPERATIONS:
        if operation.body is NoBody:
            continue
        for field in fields_of(operation.body):
            for name, spelled in SPELLINGS.items():
                body = spelled.replace('"field"', f'"{field}"').encode()
                if told := await status(stage, operation, body=body):
                    wrong.append(f"{operation.method} {operation.path}: {field}, {name}: {told}")

    assert wrong == []


async def test_in_the_query_of_every_route(stage: Stage) -> None:
    values = (HUGE, f"-{HUGE}", f"{HUGE}s", f"{HUGE}d")
    wrong = {
        f"{operation.method} {operation.path}: {field}": told
        for operation in OPERATIONS
        if operation.query is not NoQuery
        for field in fields_of(operation.query)
        for value in values
        if (told := await status(stage, operation, query=f"{field}={value}".encode()))
    }

    assert wrong == {}


async def test_in_the_path_of_every_route(stage: Stage) -> None:
    wrong = {
        f"{operation.method} {operation.path}: {name}": told
        for operation in OPERATIONS
        for name in operation.params
        if (told := await status(stage, operation, params={name: HUGE}))
    }
    assert wrong == {}


def cursor(number: str) -> str:
    text = f'[{number},"019363b0-0000-7000-8000-00000000ffff","x"]'
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def token(claims: str) -> str:
    parts = (f'{{"alg":"EdDSA","kid":{HUGE}}}', claims, "x")
    return ".".join(base64.urlsafe_b64encode(part.encode()).rstrip(b"=").decode() for part in parts)


async def test_in_every_header_that_has_a_number_and_in_what_is_encoded(world: HttpWorld) -> None:
    """Over HTTP, by anybody who can reach the server."""
    zombie = await world.install()
    agent, hook = at(world, zombie), f"/v1/webhooks/{zombie['zombie_id']}"
    asked: dict[str, tuple[str, str, dict[str, Any]]] = {
        "Last-Event-ID": ("GET", f"{agent}/events/stream", {"headers": {"last-event-id": HUGE}}),
        "last_event_id": ("GET", f"{agent}/events/stream?last_event_id={HUGE}", {}),
        "cursor": ("GET", f"{agent}/events?cursor={cursor(HUGE)[:500]}", {}),
        "a cursor's number": ("GET", f"{agent}/events?cursor={cursor('9' * 300)}", {}),
        "iss": ("GET", "/v1/whoami", {"token": token(f'{{"iss":{HUGE}}}')}),
        "exp": ("GET", "/v1/whoami", {"token": token(f'{{"iss":"sexton","exp":{HUGE}}}')}),
        "a body nobody is asked for": ("POST", "/v1/auth/sessions", {"token": None, "content": HUGE}),
        "a cookie": ("GET", "/", {"headers": {"cookie": f"sexton={HUGE}"}}),
        "a webhook's time": (
            "POST",
            hook,
            {"headers": {"x-slack-request-timestamp": HUGE}, "content": b"{}"},
        ),
        "a webhook's body": ("POST", hook, {"content": f'{{"a": {HUGE}}}'}),
        "Accept": ("GET", "/auth/sign-in/x", {"headers": {"accept": f"text/html;q={HUGE}"}}),
        "Idempotency-Key": ("POST", "/v1/workspaces", {"headers": {"idempotency-key": HUGE}, "json": {}}),
        "traceparent": ("GET", "/healthz", {"headers": {"traceparent": f"00-{HUGE}"}}),
        "X-Forwarded-For": ("GET", "/healthz", {"headers": {"x-forwarded-for": HUGE}}),
    }
    seen = {}
    for name, (method, path, rest) in asked.items():
        headers = {"content-type": "application/json", **rest.pop("headers", {})}
        answer = await world.call(method, path, rest.pop("token", ""), headers=headers, **rest)
        seen[name] = answer.status_code

    assert {name: code for name, code in seen.items() if code >= BELOW} == {}
    assert (seen["Last-Event-ID"], seen["last_event_id"], seen["cursor"]) == (400, 400, 400)


async def test_in_the_files_of_an_agent(world: HttpWorld) -> None:
    for line in (f"priority: {HUGE}", f"budget: {{daily_dollars: {HUGE}}}", f"x: {HUGE}", f"x: 1e{HUGE}"):
        files = {
            "source_markdown": f"---\nname: n\n{line}\n---\nDo it.\n",
            "trigger_markdown": f"---\nname: n\ntriggers: []\n{line}\n---\n",
        }
        answer = await world.post(f"{world.ws}/zombies", files, world.user_token(Role.ADMIN))
        assert answer.status_code < BELOW, line[:20]
