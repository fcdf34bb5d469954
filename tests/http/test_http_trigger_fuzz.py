"""Whatever is posted to an agent's door, or put into a cursor: only declared codes come out."""

import base64
from urllib.parse import urlencode
from uuid import UUID

import msgspec
import orjson
import pytest
from hypothesis import given, settings, strategies as st

from sexton_http.answers import Answer, Problem, RequestHead
from sexton_http.bodies.cursors import Place, decode, encode, fingerprint
from sexton_http.describe.documents import make_documents
from sexton_http.gateway.pipeline import Mounted
from sexton_http.gateway.services import make_services
from sexton_http.routes import approvals, chat, webhooks
from sexton_http.routes.table import OPERATIONS
from tests.http.test_http_declarations import apart
from tests.thorough import examples
from tests.worlds.http import HttpWorld

FILTERS = fingerprint("gates", None)
NAMES = st.sampled_from(
    [
        b"x-hub-signature-256",
        b"x-github-event",
        b"x-github-delivery",
        b"x-slack-signature",
        b"content-type",
        b"x-slack-request-timestamp",
        b"svix-id",
        b"svix-timestamp",
        b"svix-signature",
        b"authorization",
        b"idempotency-key",
        b"traceparent",
        b"x-request-id",
        b"content-length",
    ]
)
VALUES = st.binary(max_size=40) | st.sampled_from(
    [
        b"sha256=" + b"a" * 64,
        b"v0=" + b"a" * 64,
        b"1700000000",
        b"v1,AAAA",
        b"Bearer zap_" + b"0" * 64,
        b"application/x-www-form-urlencoded",
        b"application/json",
        b"\xff\xfe",
        b"\x00",
    ]
)
DEEP = [b"[" * 100_000, b'{"a":' * 5_000 + b"1" + b"}" * 5_000, b"payload=" + b"%5B" * 30_000]
BODIES = (
    st.binary(max_size=200)
    | st.sampled_from([*DEEP, b"", b"null", b'{"a":"\xff"}', b"\xef\xbb\xbf{}", b"{" + b" " * 1024 * 1024])
    | st.text(max_size=50).map(lambda text: urlencode({"payload": text}, errors="replace").encode())
)


@given(
    st.text(max_size=120) | st.binary(max_size=120).map(lambda raw: base64.urlsafe_b64encode(raw).decode())
)
@settings(deadline=None, max_examples=examples(400))
def test_a_cursor_of_somebody_s_own_is_a_bad_request(text: str) -> None:
    with pytest.raises(Problem) as refused:
        decode(text, FILTERS)
    assert refused.value.code == "UZ-REQ-001"


@given(st.integers(-(2**80), 2**80), st.integers(0, 2**128 - 1), st.booleans())
@settings(deadline=None, max_examples=examples(400))
def test_a_cursor_reaches_no_further_than_a_column_holds(at: int, number: int, with_since: bool) -> None:
    raw = msgspec.json.encode([at, str(UUID(int=number)), FILTERS, at if with_since else None])
    text = base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
    if 0 <= at < 2**63:
        assert decode(text, FILTERS) == Place(at, UUID(int=number), FILTERS, at if with_since else None)
        assert encode(decode(text, FILTERS)) == text
    else:
        with pytest.raises(Problem):
            decode(text, FILTERS)


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**128 - 1))
@settings(deadline=None)
def test_a_cut_cursor_is_none(at: int, number: int) -> None:
    text = encode(Place(at, UUID(int=number), FILTERS))
    for end in range(0, len(text), 7):
        with pytest.raises(Problem):
            decode(text[:end], FILTERS)


async def test_whatever_is_posted_at_an_agent_s_door_has_a_declared_answer(world: HttpWorld) -> None:
    await world.keep_secret()
    zombie = await world.install()
    services = make_services(apart(world), make_documents(OPERATIONS, ""))
    doors = [
        (webhooks.deliver, {}),
        (webhooks.deliver_to_source, {"segment": "github"}),
        (webhooks.deliver_to_source, {"segment": "zwh_" + "a" * 43}),
        (webhooks.deliver_multisig, {}),
        (webhooks.decide_by_webhook, {}),
        (chat.press_in_chat, {}),
        (approvals.list_approvals, {"workspace_id": str(world.installation.workspace_id)}),
    ]
    seen: set[str] = set()
    cases: list[tuple[dict[bytes, bytes], bytes]] = []

    @given(st.dictionaries(NAMES, VALUES, max_size=6), BODIES)
    @settings(deadline=None, max_examples=examples(60), database=None)
    def collect(headers: dict[bytes, bytes], body: bytes) -> None:
        cases.append((headers, body))

    collect()
    for headers, body in cases:
        for operation, more in doors:
            params = {"zombie_id": zombie["zombie_id"], **more}
            head = RequestHead(operation.method, operation.path, b"", headers, "127.0.0.1")
            whole = body if not operation.reads_body or len(body) <= operation.max_body else None
            answer = await Mounted(operation, services)(head, params, whole)
            assert isinstance(answer, Answer)
            if answer.status >= 400:
                code = orjson.loads(answer.body)["error_code"]
                assert code in operation.all_codes(), (operation.path, code)
                assert answer.status < 500, (operation.path, code, headers, body[:80])
                seen.add(code)

    assert {"UZ-WH-010", "UZ-AUTH-002", "UZ-APPROVAL-003"} <= seen
    assert not world.memory.tables.events
