"""Device login over HTTP: every call in every state, hostile input, limits, and the exchange itself."""

from typing import Any
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP384R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from msgspec.structs import replace

from sexton_actors.protocol.auth_session import Open
from sexton_http.retry_after import SPREAD_MIN_S
from sexton_http.wire.forwarded import read_networks
from sexton_storage.memory import open_memory_storage
from sexton_storage.postgres import PostgresStorage
from sexton_storage.records.auth_sessions import AuthSession, SessionBounds
from tests.fakes.login_terminal import Party, raw, text
from tests.worlds.http import HttpWorld, open_http_world_on
from tests.worlds.samples import START_MS

SESSIONS = "/v1/auth/sessions"
UNKNOWN = "019363b0-0000-7000-8000-00000000ffff"
CODE = {"verification_code": "042137"}
WRONG = {"verification_code": "999999"}
STATES = ("pending", "verification_pending", "complete", "consumed", "expired", "aborted", "unknown")


def approval(key: str = "", **changes: str) -> dict[str, str]:
    browser = Party()
    ciphertext, nonce = browser.encrypt("a.token.here", key or Party().public_key)
    body = {"dashboard_public_key": browser.public_key, "ciphertext": ciphertext, "nonce": nonce, **CODE}
    return {**body, **changes}


async def begin(world: HttpWorld, public_key: str | None = None, name: str | None = None) -> str:
    """Made behind the route, which lets ten a minute through."""
    key = Party().public_key if public_key is None else public_key
    made = await world.system.ask("session", world.actors_world.new_id(), Open(key, name))
    assert isinstance(made, AuthSession)
    return str(made.id)


async def in_state(world: HttpWorld, state: str) -> str:
    if state == "unknown":
        return UNKNOWN
    session_id = await begin(world)
    at = f"{SESSIONS}/{session_id}"
    if state in {"verification_pending", "consumed"}:
        assert (await world.call("PATCH", f"{at}/approve", json=approval())).status_code == 200
    if state == "consumed":
        assert (await world.post(f"{at}/verify", CODE, None)).status_code == 200
    if state == "complete":
        assert (await world.call("PATCH", at, json={"token": "t"})).status_code == 200
    if state == "aborted":
        assert (await world.call("DELETE", at, None)).status_code == 204
    if state == "expired":
        rows = world.memory.tables.auth_sessions
        old = rows[UUID(session_id)]
        expired = replace(old, id=world.actors_world.new_id(), created_at=1, expires_at=2)
        rows[expired.id] = expired
        return str(expired.id)
    return session_id


async def code(world: HttpWorld, method: str, path: str, body: Any = None, token: str | None = "") -> str:
    rest = {} if body is None else {"json": body}
    answer = await world.call(method, path, token, **rest)
    return str(answer.status_code) if answer.is_success else answer.json()["error_code"]


CALLS: dict[str, tuple[str, str, Any, tuple[str, ...]]] = {
    # In the order of STATES.
    "complete": (
        "PATCH",
        "",
        {"token": "x", "status": "complete"},
        ("200", "UZ-AUTH-015", "UZ-AUTH-007", "UZ-AUTH-007", "UZ-AUTH-006", "UZ-AUTH-013", "UZ-AUTH-005"),
    ),
    "approve": (
        "PATCH",
        "/approve",
        approval(),
        ("200", "UZ-AUTH-015", "UZ-AUTH-007", "UZ-AUTH-012", "UZ-AUTH-006", "UZ-AUTH-013", "UZ-AUTH-005"),
    ),
    "verify": (
        "POST",
        "/verify",
        CODE,
        ("UZ-AUTH-014", "200", "UZ-AUTH-007", "200", "UZ-AUTH-006", "UZ-AUTH-013", "UZ-AUTH-005"),
    ),
    "verify wrongly": (
        "POST",
        "/verify",
        WRONG,
        (
            "UZ-AUTH-014",
            "UZ-AUTH-011",
            "UZ-AUTH-007",
            "UZ-AUTH-012",
            "UZ-AUTH-006",
            "UZ-AUTH-013",
            "UZ-AUTH-005",
        ),
    ),
    "read": ("GET", "", None, ("200", "200", "200", "200", "200", "200", "UZ-AUTH-005")),
    "abort": ("DELETE", "", None, ("204", "204", "204", "204", "204", "204", "UZ-AUTH-005")),
}


@pytest.mark.parametrize("state", STATES)
async def test_every_call_has_its_answer_in_every_state(world: HttpWorld, state: str) -> None:
    for method, path, body, expected in CALLS.values():
        session_id = await in_state(world, state)
        answer = await code(world, method, f"{SESSIONS}/{session_id}{path}", body)
        assert answer == expected[STATES.index(state)], (method, path, state)


@pytest.mark.parametrize("state", STATES[:-1])
async def test_a_session_says_what_it_is(world: HttpWorld, state: str) -> None:
    seen = (await world.get(f"{SESSIONS}/{await in_state(world, state)}", None)).json()

    assert seen["status"] == state
    assert seen.keys() - {"token"} == {
        "session_id",
        "status",
        "cli_public_key",
        "token_name",
        "expires_at_ms",
        "request_id",
    }
    assert ("token" in seen) == (state == "complete")


async def test_a_token_goes_over_without_the_server_reading_it(world: HttpWorld) -> None:
    terminal, browser, token = Party(), Party(), world.user_token()
    made = await world.post(SESSIONS, {"public_key": terminal.public_key, "token_name": "laptop"}, None)
    assert made.status_code == 201

    session = made.json()
    assert session["login_url"] == f"{world.base_url}/auth/device/{session['session_id']}"
    assert session["expires_at_ms"] - world.actors_world.now_ms() > 290_000

    at = f"{SESSIONS}/{session['session_id']}"
    seen = (await world.get(at, None)).json()
    assert (seen["cli_public_key"], seen["token_name"]) == (terminal.public_key, "laptop")

    ciphertext, nonce = browser.encrypt(token, seen["cli_public_key"])
    sent = {
        "dashboard_public_key": browser.public_key,
        "ciphertext": ciphertext,
        "nonce": nonce,
        **CODE,
    }
    approved = await world.call("PATCH", f"{at}/approve", world.user_token(), json=sent)
    assert (approved.status_code, approved.json()["status"]) == (200, "verification_pending")

    given = (await world.post(f"{at}/verify", CODE, None)).json()
    opened = terminal.decrypt(given["ciphertext"], given["nonce"], given["dashboard_public_key"])
    assert opened == token
    assert (await world.get("/v1/tenants/me/workspaces", opened)).status_code == 200

    again = await world.post(f"{at}/verify", CODE, None)
    assert again.json()["ciphertext"] == ciphertext

    row = world.memory.tables.auth_sessions[UUID(session["session_id"])]
    assert b"042137" not in bytes(row.code_mac or b"")
    assert token not in repr(row)


async def test_a_session_goes_on_after_a_restart_of_the_server() -> None:
    terminal, browser = Party(), Party()
    async with open_memory_storage(clock=lambda: START_MS) as storage:
        async with open_http_world_on(storage) as world:
            made = (await world.post(SESSIONS, {"public_key": terminal.public_key}, None)).json()
            at = f"{SESSIONS}/{made['session_id']}"
            ciphertext, nonce = browser.encrypt("a.token.here", terminal.public_key)
            body = approval(dashboard_public_key=browser.public_key, ciphertext=ciphertext, nonce=nonce)
            assert (await world.call("PATCH", f"{at}/approve", json=body)).status_code == 200

            for _ in range(2):
                assert await code(world, "POST", f"{at}/verify", WRONG, None) == "UZ-AUTH-011"
        async with open_http_world_on(storage) as world:
            wrong = (await world.post(f"{at}/verify", WRONG, None)).json()
            assert wrong["attempts_left"] == 2

            given = (await world.post(f"{at}/verify", CODE, None)).json()
            opened = terminal.decrypt(given["ciphertext"], given["nonce"], given["dashboard_public_key"])
            assert opened == "a.token.here"


async def test_a_token_in_plain_text_is_given_out_once_and_kept_sealed(world: HttpWorld) -> None:
    at = f"{SESSIONS}/{await begin(world)}"
    done = await world.call("PATCH", at, json={"token": "the.token"})
    assert {**done.json(), "request_id": ""} == {"status": "complete", "token": "the.token", "request_id": ""}

    row = world.memory.tables.auth_sessions[UUID(at.rsplit("/", 1)[1])]
    assert b"the.token" not in (row.sealed_token or b"")
    assert (await world.call("HEAD", at, None)).status_code == 200

    first, second = (await world.get(at, None)).json(), (await world.get(at, None)).json()
    assert (first["status"], first["token"]) == ("complete", "the.token")
    assert (second["status"], "token" in second) == ("consumed", False)


async def test_the_fifth_wrong_code_ends_the_session(world: HttpWorld) -> None:
    at = f"{SESSIONS}/{await in_state(world, 'verification_pending')}"
    codes = [await code(world, "POST", f"{at}/verify", WRONG, None) for _ in range(6)]

    assert codes == ["UZ-AUTH-011"] * 4 + ["UZ-AUTH-013"] * 2
    assert await code(world, "POST", f"{at}/verify", CODE, None) == "UZ-AUTH-013"


def other_curve() -> str:
    key = generate_private_key(SECP384R1()).public_key()
    return text(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))


def off_the_curve() -> str:
    good = bytearray(raw(Party().public_key))
    good[-1] ^= 1
    return text(bytes(good))


def compressed() -> str:
    point = Party().key.public_key().public_bytes(Encoding.X962, PublicFormat.CompressedPoint)
    return text(point)


def no_such_kind() -> str:
    key = Ed25519PrivateKey.generate().public_key()
    return text(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))


BAD_KEYS = {
    "empty": "",
    "zeros": "AAAA",
    "other alphabet": "!",
    "right length": "a" * 122,
    "far too long": "A" * 16_000,
    "other curve": other_curve(),
    "off the curve": off_the_curve(),
    "compressed": compressed(),
    "no such kind": no_such_kind(),
}


@pytest.mark.parametrize("key", BAD_KEYS.values(), ids=BAD_KEYS)
async def test_a_key_that_is_no_point_of_the_curve_is_refused(world: HttpWorld, key: str) -> None:
    assert await code(world, "POST", SESSIONS, {"public_key": key}, None) == "UZ-AUTH-016"

    at = f"{SESSIONS}/{await begin(world)}/approve"
    assert await code(world, "PATCH", at, approval(dashboard_public_key=key)) == "UZ-AUTH-016"


@pytest.mark.parametrize("name", ["", " ", "x" * 65, "a\nb", "\u202eevil", "tab\there", " lead", "\x7f"])
async def test_a_name_that_cannot_be_shown_is_refused(world: HttpWorld, name: str) -> None:
    assert await code(world, "POST", SESSIONS, {"token_name": name}, None) == "UZ-AUTH-017"


@pytest.mark.parametrize("name", ["x" * 64, "René's laptop", "<script>alert(1)</script>", "🔑"])
async def test_a_name_is_kept_as_it_was_given(world: HttpWorld, name: str) -> None:
    made = (await world.post(SESSIONS, {"token_name": name}, None)).json()
    seen = (await world.get(f"{SESSIONS}/{made['session_id']}", None)).json()

    assert (seen["token_name"], seen["cli_public_key"]) == (name, None)


@pytest.mark.parametrize(
    "digits",
    [
        "",
        "12345",
        "1234567",
        "12345a",
        "\uff11\uff12\uff13\uff14\uff15\uff16",
        "12 456",
        "-12345",
        "123456\n",
    ],
)
async def test_a_code_that_is_not_six_digits_costs_no_guess(world: HttpWorld, digits: str) -> None:
    at = f"{SESSIONS}/{await in_state(world, 'verification_pending')}"
    for _ in range(6):
        body = {"verification_code": digits}
        assert await code(world, "POST", f"{at}/verify", body, None) == "UZ-AUTH-018"
    assert await code(world, "POST", f"{at}/verify", CODE, None) == "200"

    fresh = f"{SESSIONS}/{await begin(world)}/approve"
    assert await code(world, "PATCH", fresh, approval(verification_code=digits)) == "UZ-AUTH-018"


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("ciphertext", "", "UZ-AUTH-019"),
        ("ciphertext", "a b", "UZ-AUTH-019"),
        ("ciphertext", text(b"x" * 16), "UZ-AUTH-019"),
        ("ciphertext", "A" * 16_388, "UZ-AUTH-019"),
        ("ciphertext", "A" * 25, "UZ-AUTH-019"),
        ("nonce", "", "UZ-AUTH-020"),
        ("nonce", text(b"x" * 11), "UZ-AUTH-020"),
        ("nonce", text(b"x" * 13), "UZ-AUTH-020"),
        ("nonce", "+" * 16, "UZ-AUTH-020"),
        ("nonce", 12, "UZ-REQ-001"),
        ("more", "x", "UZ-REQ-001"),
    ],
)
async def test_an_approval_is_checked_to_the_last_byte(
    world: HttpWorld, field: str, value: Any, expected: str
) -> None:
    at = f"{SESSIONS}/{await begin(world)}/approve"
    assert await code(world, "PATCH", at, approval(**{field: value})) == expected


async def test_a_session_without_a_key_cannot_be_approved_but_completed(world: HttpWorld) -> None:
    made = (await world.post(SESSIONS, None, None)).json()
    at = f"{SESSIONS}/{made['session_id']}"

    assert await code(world, "PATCH", f"{at}/approve", approval()) == "UZ-AUTH-016"
    assert await code(world, "PATCH", at, {"token": "t"}) == "200"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"token": ""},
        {"token": "a b"},
        {"token": "x" * 8193},
        {"token": "t", "status": "pending"},
        {"token": 1},
    ],
)
async def test_a_completion_is_checked(world: HttpWorld, body: Any) -> None:
    assert await code(world, "PATCH", f"{SESSIONS}/{await begin(world)}", body) == "UZ-REQ-001"


async def test_only_who_has_a_token_can_attach_one(world: HttpWorld) -> None:
    at = f"{SESSIONS}/{await begin(world)}"
    for token in (None, "x", await world.enrol()):
        assert await code(world, "PATCH", at, {"token": "t"}, token) == "UZ-AUTH-002"
        assert await code(world, "PATCH", f"{at}/approve", approval(), token) == "UZ-AUTH-002"
        assert await code(world, "DELETE", f"{SESSIONS}/all", None, token) == "UZ-AUTH-002"
    for method, path, body in (("GET", "", None), ("POST", "/verify", CODE), ("DELETE", "", None)):
        assert await code(world, method, f"{SESSIONS}/nonsense{path}", body, None) == "UZ-UUIDV7-009"


async def test_a_caller_ends_what_he_approved_and_a_platform_admin_all(world: HttpWorld) -> None:
    mine, others, nobodys = [f"{SESSIONS}/{await begin(world)}" for _ in range(3)]
    user = world.user_token()
    assert await code(world, "PATCH", f"{mine}/approve", approval(), user) == "200"
    assert await code(world, "PATCH", f"{others}/approve", approval()) == "200"

    ended = await world.call("DELETE", f"{SESSIONS}/all", user)
    assert (ended.status_code, ended.json()["aborted_count"]) == (200, 1)

    statuses = [(await world.get(at, None)).json()["status"] for at in (mine, others, nobodys)]
    assert statuses == ["aborted", "verification_pending", "pending"]

    ended = await world.call("DELETE", f"{SESSIONS}/all", world.admin_token())
    assert ended.json()["aborted_count"] == 2
    assert (await world.call("DELETE", f"{SESSIONS}/all", world.admin_token())).json()["aborted_count"] == 0


async def test_an_address_begins_ten_a_minute(world: HttpWorld) -> None:
    answers = [await world.post(SESSIONS, None, None) for _ in range(11)]

    assert [answer.status_code for answer in answers] == [201] * 10 + [429]
    assert answers[-1].json()["error_code"] == "UZ-REQ-006"
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 6 + SPREAD_MIN_S
    assert answers[0].headers["ratelimit-policy"] == '"default";q=10;w=60'
    assert (await world.get(f"{SESSIONS}/{answers[0].json()['session_id']}", None)).status_code == 200


async def test_a_server_that_is_full_says_so(world: HttpWorld) -> None:
    first = await begin(world)
    rows = world.memory.tables.auth_sessions
    for _ in range(SessionBounds().all - 1):
        other = world.actors_world.new_id()
        rows[other] = rows[UUID(first)]
    full = await world.post(SESSIONS, None, None)

    assert (full.status_code, full.json()["error_code"]) == (503, "UZ-AUTH-008")
    assert "retry-after" in full.headers


async def test_however_few_addresses_begin_device_logins_another_is_still_served(
    postgres_storage: PostgresStorage,
) -> None:
    bounds = SessionBounds(all=16, address=3)
    proxy = read_networks(["127.0.0.1"])
    async with open_http_world_on(postgres_storage, device_logins=bounds, trusted_proxies=proxy) as world:

        async def begun(address: str, times: int) -> list[int]:
            """Counted by the address that the proxy names, whatever its port of it."""
            headers = {"x-forwarded-for": address}
            answers = [await world.post(SESSIONS, None, None, headers=headers) for _ in range(times)]
            assert {a.json()["error_code"] for a in answers if a.is_error} <= {"UZ-AUTH-008"}
            assert all("retry-after" in a.headers for a in answers if a.is_error)
            return [answer.status_code for answer in answers]

        one = await begun("192.0.2.1", 6)
        same_network = [*await begun("2001:db8::1", 3), *await begun("2001:db8::2", 3)]
        few = [await begun(f"192.0.2.{host}", 6) for host in range(2, 6)]
        others = [await begun(f"198.51.100.{host}", 1) for host in range(1, 8)]
        waiting = await postgres_storage.auth_sessions.list_open(approved_by=None, limit=99)

    assert one == [201] * 3 + [503] * 3, "one address"
    assert same_network == [201] * 3 + [503] * 3, "one network of IPv6"
    assert few == [[201] * 3 + [503] * 3] * 2 + [[201] + [503] * 5] * 2, "the last quarter is for others"
    assert others == [[201]] * 6 + [[503]], "and others displace the full range until it is no fuller"
    assert len(waiting) == bounds.all
