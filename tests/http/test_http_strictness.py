"""What a request must be to the letter: ids, names, numbers, cursors, tokens; and how a refusal is said."""

import base64
import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any
from uuid import UUID

import httpx2
import pytest
from hypothesis import Phase, find, settings, strategies

from sexton_http.describe.openapi import make_document
from sexton_http.gateway.operations import Auth, Operation
from sexton_http.routes.table import OPERATIONS
from sexton_storage.records.users import Role
from tests.worlds.bearer_tokens import encoded, private, signed
from tests.worlds.http import HttpWorld, open_http_world

UNKNOWN = UUID("019363b0-0000-7000-8000-00000000ffff")
DEEP = "[" * 3000 + "]" * 3000


def token_of(head: str, claims: str) -> str:
    return f"{encoded(head.encode())}.{encoded(claims.encode())}.AAAA"


def said(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error_code"]


# --- deep nesting -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "token",
    [
        token_of("{}", '{"iss":"sexton","x":' + DEEP + "}"),
        token_of('{"kid":' + DEEP + "}", '{"iss":"sexton"}'),
        token_of(DEEP, DEEP),
        token_of('{"alg":"EdDSA","kid":"x"}', '{"iss":' + DEEP + "}"),
    ],
)
async def test_a_token_that_is_nested_deeply_is_a_bad_token_like_any_other(token: str) -> None:
    async with open_http_world(address_rate=1) as world:
        answers = [await world.get("/v1/api-keys", token) for _ in range(4)]

    assert [said(answer) for answer in answers[:2]] == [(401, "UZ-AUTH-002")] * 2
    assert said(answers[-1]) == (429, "UZ-REQ-006")


def path_of(world: HttpWorld, operation: Operation, zombie_id: str) -> str:
    known = {"workspace_id": str(world.installation.workspace_id), "zombie_id": zombie_id}
    return re.sub(r"\{(\w+)\}", lambda part: known.get(part[1], str(UNKNOWN)), operation.path)


async def bearers(world: HttpWorld, approval_token: str) -> dict[Auth, str]:
    """The token with which each kind of route lets one in."""
    admin = world.admin_token()
    runner = await world.enrol()
    kinds = {Auth.RUNNER: runner, Auth.APPROVAL: approval_token}
    return {auth: kinds.get(auth, admin) for auth in Auth}


async def test_no_body_is_so_deep_that_it_fails_its_route(world: HttpWorld) -> None:
    zombie = await world.install()
    tokens = await bearers(world, zombie["approval_token"])
    document = make_document(OPERATIONS, "")
    for operation in OPERATIONS:
        fields = [name for name, _ in body_fields(document, operation)]
        if operation.auth is Auth.WEBHOOK:
            fields = ["data"]
        for name in [*fields, "no_such_field"] if fields else ():
            body = f'{{"{name}":{DEEP}}}'
            path = path_of(world, operation, zombie["zombie_id"])
            answer = await world.call(
                operation.method,
                path,
                tokens[operation.auth],
                content=body.encode(),
                headers={"content-type": "application/json"},
            )
            assert answer.status_code in {400, 401, 403, 410}, (operation.path, name, answer.text)


async def test_no_form_cookie_or_cursor_is_so_deep_that_it_fails_its_route(world: HttpWorld) -> None:
    zombie = await world.install()
    form = {"payload": DEEP}
    press = await world.http.post(f"/v1/webhooks/{zombie['zombie_id']}/approval", data=form)
    assert press.status_code == 401

    for value in (DEEP, encoded(DEEP.encode()), token_of("{}", DEEP)):
        page = await world.http.get("/", headers={"cookie": f"sexton={value}"})
        assert page.status_code < 500
    for cursor in (
        encoded(b"[" * 380),
        encoded(b'[1,"' + str(UNKNOWN).encode() + b'","",null,' + b"[" * 300),
    ):
        answer = await world.get(f"{world.ws}/zombies", params={"cursor": cursor})
        assert said(answer) == (400, "UZ-REQ-001")


# --- patterns -----------------------------------------------------------------------------------------------

OWN_CODES = {
    "subscription_id": "UZ-BILLING-001",
    "public_key": "UZ-AUTH-016",
    "dashboard_public_key": "UZ-AUTH-016",
    "ciphertext": "UZ-AUTH-019",
    "nonce": "UZ-AUTH-020",
    "verification_code": "UZ-AUTH-018",
}
"""Fields that are checked by their route, which has a code of its own for each."""
SPKI = (
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpZP40Li_hp_m47n60p8D54WK84z"
    "V2sxXs7LtkBoN79R9Q"
)
GOOD = {
    "public_key": SPKI,
    "dashboard_public_key": SPKI,
    "ciphertext": "A" * 40,
    "nonce": "A" * 16,
    "verification_code": "123456",
}
"""What is longer than a search of the pattern would find."""
WHOLE: dict[str, dict[str, Any]] = {
    "approve_auth_session": {name: value for name, value in GOOD.items() if name != "public_key"},
    "begin_erasure": {"path": "customer.email"},
    "begin_upload": {"size": 1},
}
"""The rest of the bodies in which such fields are."""


def resolved(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def body_fields(document: dict[str, Any], operation: Operation) -> Iterator[tuple[str, dict[str, Any]]]:
    """The fields of a JSON body, with what each may be."""
    described = document["paths"][operation.path][operation.method.lower()].get("requestBody", {})
    schema = described.get("content", {}).get("application/json", {}).get("schema")
    if schema is None:
        return
    for name, field in resolved(document, schema).get("properties", {}).items():
        options = field.get("anyOf", [field])
        yield name, {key: value for option in options for key, value in resolved(document, option).items()}


def test_the_patterns_below_are_all_that_are_asked_of_a_request() -> None:
    """A list of objects with patterns of their own would need more than the fields at the top."""
    document = make_document(OPERATIONS, "")
    shapes = {
        schema["schema"].get("$ref", "").rpartition("/")[2]
        for row in OPERATIONS
        for schema in document["paths"][row.path][row.method.lower()]
        .get("requestBody", {})
        .get("content", {})
        .values()
    }
    inner = {
        name
        for name, schema in document["components"]["schemas"].items()
        if '"pattern"' in json.dumps(schema) and name not in shapes
    }

    assert inner == {"AppliedItem", "PreviewTool", "Problem", "Use"}


@cache
def sample_of(pattern: str) -> str:
    """A text of a pattern, the first that is tried: to look for the shortest would take seconds for some."""
    first = settings(phases=[Phase.generate], derandomize=True)
    return find(strategies.from_regex(pattern, fullmatch=True), bool, settings=first)


async def test_a_name_ends_where_its_pattern_does(world: HttpWorld) -> None:
    zombie = await world.install()
    tokens = await bearers(world, zombie["approval_token"])
    document = make_document(OPERATIONS, "")
    tried = set()
    for operation in OPERATIONS:
        for name, field in body_fields(document, operation):
            if "pattern" not in field:
                continue
            good = GOOD.get(name) or sample_of(field["pattern"])
            body = {**WHOLE.get(operation.name, {}), name: good.rstrip("\n") + "\n"}
            path = path_of(world, operation, zombie["zombie_id"])
            answer = await world.call(operation.method, path, tokens[operation.auth], json=body)
            assert said(answer) == (400, OWN_CODES.get(name, "UZ-REQ-001")), (operation.path, name)
            if name not in OWN_CODES:
                assert answer.json()["pointer"] == f"/{name}", operation.path
            tried.add((operation.name, name))
    assert len(tried) > 10

    tool = {"name": "a\n", "description": "", "input_schema": {}}
    answer = await world.post(
        f"{world.ws}/spec/preview", {"messages": [{"role": "user", "content": "x"}], "tools": [tool]}
    )
    assert (said(answer), answer.json()["pointer"]) == ((400, "UZ-REQ-001"), "/tools/0/name")

    for key, folder, name in (("a/b\n", "a", "f"), ("a/b", "a\n", "f"), ("a/b", "a", "f\n")):
        item = {"folder": folder, "fields": {name: "v"}}
        wish = {"phase": "begin", "revision": 0, "holder": "h", "items": {key: item}}
        answer = await world.call("PUT", f"{world.ws}/applied", json=wish)
        assert (said(answer), answer.json()["pointer"][:6]) == ((400, "UZ-REQ-001"), "/items"), item

    use = {"in": "header", "name": "authorization\n"}
    answer = await world.post(f"{world.ws}/credentials", {"name": "a", "data": {"a": "b"}, "use": [use]})
    assert (said(answer), answer.json()["pointer"]) == ((400, "UZ-REQ-001"), "/use/0/name")


@pytest.mark.parametrize("name", [" a", "a ", "a\n", "\ta", "a\u0007b", "\u202ea", "\u00a0a", " "])
async def test_a_workspace_has_a_name_that_can_be_seen(world: HttpWorld, name: str) -> None:
    made = await world.post("/v1/workspaces", {"name": name})
    assert (said(made), made.json()["pointer"]) == ((400, "UZ-REQ-001"), "/name")

    renamed = await world.call("PATCH", world.ws, json={"name": name})
    assert (said(renamed), renamed.json()["pointer"]) == ((400, "UZ-REQ-001"), "/name")


# --- ids, numbers, cursors ----------------------------------------------------------------------------------


async def test_an_id_has_its_dashes_in_bodies_and_queries_as_in_paths(world: HttpWorld) -> None:
    zombie_id = (await world.install())["zombie_id"]
    bare = zombie_id.replace("-", "")
    for path in (f"{world.ws}/zombies/{bare}", f"{world.ws}/events?zombie_id={bare}"):
        assert said(await world.get(path)) == (400, "UZ-UUIDV7-009")
    made = await world.post(f"{world.ws}/agent-keys", {"zombie_id": bare, "name": "k"})
    assert (said(made), made.json()["pointer"]) == ((400, "UZ-UUIDV7-009"), "/zombie_id")

    # Where any text may stand, one that looks like such an id is as good as another.
    named = await world.post(f"{world.ws}/agent-keys", {"zombie_id": zombie_id.upper(), "name": bare})
    assert named.status_code == 201


async def test_a_page_beyond_the_last_is_empty(world: HttpWorld) -> None:
    for path, token in (
        ("/v1/api-keys", ""),
        (f"{world.ws}/agent-keys", ""),
        ("/v1/fleet/runners", world.admin_token()),
    ):
        for page in (1_000_000, 1_000_001, 2**53 - 1):
            answer = await world.get(path, token, params={"page": str(page)})
            assert (answer.status_code, answer.json()["items"]) == (200, []), (path, page)
        for wrong in ("0", "1e1", "1.0", "-1", "+1", "", "0x1"):
            answer = await world.get(path, token, params={"page": wrong})
            assert said(answer) == (400, "UZ-REQ-001"), (path, wrong)


async def test_a_cursor_is_taken_as_it_was_given_and_in_no_other_spelling(world: HttpWorld) -> None:
    for name in ("one", "two"):
        await world.install(name)
    path = f"{world.ws}/zombies"
    cursor = (await world.get(path, params={"limit": "1"})).json()["next_cursor"]
    assert (await world.get(path, params={"limit": "1", "cursor": cursor})).status_code == 200

    plain = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    others = [
        cursor + "=" * (-len(cursor) % 4 or 4),
        cursor + "A",
        cursor + "AAAA",
        encoded(plain + b" "),
        encoded(plain[:-1] + b",1]"),
    ]
    for other in others:
        answer = await world.get(path, params={"limit": "1", "cursor": other})
        assert said(answer) == (400, "UZ-REQ-001"), other


# --- tokens -------------------------------------------------------------------------------------------------


async def test_a_user_token_says_whose_it_is(world: HttpWorld) -> None:
    assert said(await world.get("/v1/api-keys", signed(world, private(world).sign, sub=""))) == (
        401,
        "UZ-AUTH-002",
    )


async def test_every_401_says_how_to_come(world: HttpWorld) -> None:
    zombie = await world.install()
    for operation in OPERATIONS:
        path = path_of(world, operation, zombie["zombie_id"])
        async with world.http.stream(operation.method, path) as answer:
            if answer.status_code == 401:
                assert answer.headers["www-authenticate"] == 'Bearer realm="sexton"', path


async def test_a_token_that_was_good_once_is_said_to_be_so_no_more(world: HttpWorld) -> None:
    made = (await world.post("/v1/api-keys", {"key_name": "k"})).json()
    await world.call("PATCH", f"/v1/api-keys/{made['id']}", json={"active": False})
    past = signed(world, private(world).sign, exp=world.actors_world.now_ms() // 1000 - 100)
    for token, code in ((made["key"], "UZ-APIKEY-004"), (past, "UZ-AUTH-003")):
        answer = await world.get("/v1/api-keys", token)
        assert said(answer) == (401, code)
        assert answer.headers["www-authenticate"] == 'Bearer realm="sexton", error="invalid_token"'


async def test_who_guesses_at_tokens_is_told_how_long_to_wait() -> None:
    async with open_http_world(address_rate=1) as world:
        answers = [await world.get("/v1/api-keys", f"zmb_t_{n:064}") for n in range(3)]
    assert [said(answer) for answer in answers] == [(401, "UZ-AUTH-002")] * 2 + [(429, "UZ-REQ-006")]

    for answer in answers:
        assert answer.headers["ratelimit-policy"] == '"default";q=2;w=2'
        assert answer.headers["ratelimit"].startswith('"default";r=')
    assert "retry-after" in answers[-1].headers


async def test_a_limited_token_mints_no_key_that_is_not(world: HttpWorld) -> None:
    limited = world.user_token(Role.ADMIN, workspace_id=world.installation.workspace_id)

    assert said(await world.post("/v1/api-keys", {"key_name": "k"}, limited)) == (403, "UZ-AUTH-001")
    assert (await world.get(world.ws, limited)).status_code == 200


# --- bodies -------------------------------------------------------------------------------------------------


async def test_where_no_body_is_needed_only_an_empty_one_is_taken(world: HttpWorld) -> None:
    json_type = {"content-type": "application/json"}
    made = [(await world.post("/v1/api-keys", {"key_name": f"k{n}"})).json()["id"] for n in range(3)]
    for key_id in made:
        await world.call("PATCH", f"/v1/api-keys/{key_id}", json={"active": False})
    path = f"/v1/api-keys/{made[0]}"
    for content, headers, code in (
        (b"{", json_type, (400, "UZ-REQ-001")),
        (b"[]", json_type, (400, "UZ-REQ-001")),
        (b'{"force":true}', json_type, (400, "UZ-REQ-001")),
        (b"{}", {"content-type": "text/plain"}, (415, "UZ-REQ-005")),
        (b"{}", {**json_type, "content-encoding": "gzip"}, (415, "UZ-REQ-005")),
    ):
        answer = await world.call("DELETE", path, content=content, headers=headers)
        assert said(answer) == code, content
    for key_id, content in zip(made, (b"", b"{}", b" { } "), strict=True):
        answer = await world.call("DELETE", f"/v1/api-keys/{key_id}", content=content, headers=json_type)
        assert answer.status_code == 204, content


async def test_a_body_comes_as_it_is(world: HttpWorld) -> None:
    body = b'{"key_name":"k"}'
    for encoding, status in (("gzip", 415), ("br", 415), ("identity, gzip", 415), ("Identity", 201)):
        headers = {"content-type": "application/json", "content-encoding": encoding}
        answer = await world.call("POST", "/v1/api-keys", content=body, headers=headers)
        assert answer.status_code == status, encoding


@pytest.mark.parametrize("coding", ["gzip", "br", "identity, gzip", "x" * 300])
async def test_a_body_that_is_compressed_is_refused_by_the_name_of_its_coding(
    world: HttpWorld, coding: str
) -> None:
    zombie = await world.install()
    json_type = {"content-type": "application/json", "content-encoding": coding}
    answers = [
        await world.http.post(zombie["webhook_urls"]["github"], content=b"\x1f\x8b", headers=json_type),
        await world.http.post(f"/v1/webhooks/{UNKNOWN}", content=b"{}", headers=json_type),
        await world.call("POST", "/v1/workspaces", content=b"{}", headers=json_type),
        await world.http.post(
            f"/v1/webhooks/{zombie['zombie_id']}/approval",
            content=b"payload=x",
            headers={"content-type": "application/x-www-form-urlencoded", "content-encoding": coding},
        ),
    ]
    for answer in answers:
        assert said(answer) == (415, "UZ-REQ-005"), answer.url
        assert repr(coding[:64]) in answer.json()["detail"]
        assert answer.headers["accept-encoding"] == "identity"


async def test_half_of_a_surrogate_pair_is_called_by_its_name(world: HttpWorld) -> None:
    json_type = {"content-type": "application/json"}
    for body, pointer, half in (
        (b'{"key_name":"\\ud800"}', "/key_name", "\\ud800"),
        (b'{"key_name":"a\\udC00b"}', "/key_name", "\\udC00"),
        (b'{"description":"\\ud83d\\ude00","key_name":"\\ud83dx"}', "/key_name", "half"),
        (b'{"\\ud800":1}', "/\\ud800", "\\ud800"),
    ):
        answer = await world.call("POST", "/v1/api-keys", content=body, headers=json_type)
        assert said(answer) == (400, "UZ-REQ-001"), body
        problem = answer.json()
        assert "half of a surrogate pair" in problem["detail"], body
        assert "not JSON" not in problem["detail"]
        assert (problem["pointer"], half in problem["detail"]) == (pointer, True)
    for broken in (b'{"key_name":"\\ud800', b'{"key_name":', b"\xed\xa0\x80"):
        answer = await world.call("POST", "/v1/api-keys", content=broken, headers=json_type)
        assert "the body is not JSON" in answer.json()["detail"], broken


async def test_an_enrolment_token_is_judged_before_the_body(world: HttpWorld) -> None:
    minted = (await world.post("/v1/fleet/enrolment-tokens", token=world.admin_token())).json()["token"]
    nonsense = {"host_id": 7}
    assert said(await world.post("/v1/runners", nonsense, f"zre_{'0' * 64}")) == (401, "UZ-RUN-015")
    assert said(await world.post("/v1/runners", nonsense, minted)) == (400, "UZ-REQ-001")

    good = {"host_id": "h", "sandbox_tier": "bubblewrap"}
    key = {"idempotency-key": "k"}
    first = await world.post("/v1/runners", good, minted, headers=key)
    assert first.status_code == 201
    assert said(await world.post("/v1/runners", nonsense, minted)) == (401, "UZ-RUN-015")

    again = await world.post("/v1/runners", good, minted, headers=key)
    assert again.content == first.content


async def test_a_limited_platform_admin_ends_no_session_of_others(world: HttpWorld) -> None:
    begun = (await world.post("/v1/auth/sessions", {}, None)).json()["session_id"]
    limited = world.user_token(Role.ADMIN, workspace_id=world.installation.workspace_id, platform_admin=True)
    for token, count in ((limited, 0), (world.admin_token(), 1)):
        ended = await world.call("DELETE", "/v1/auth/sessions/all", token)
        assert (ended.status_code, ended.json()["aborted_count"]) == (200, count), begun
