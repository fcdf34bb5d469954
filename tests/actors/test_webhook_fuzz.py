"""Whatever is posted, the answer is one of those declared, never an exception."""

import hashlib
import hmac
from typing import Any, assert_never

import msgspec
import orjson
from hypothesis import given, settings, strategies as st

from sexton_actors.manifest.model import CronTrigger, Manifest, Signature, WebhookTrigger
from sexton_actors.webhooks.authentication import Genuine, Rejected, authenticate
from sexton_actors.webhooks.model import Reason
from sexton_actors.webhooks.normalisation import Challenge, Delivery, Malformed, Ping, read
from sexton_actors.webhooks.trigger_secrets import hash_url_secret, resolve_segment
from tests.thorough import examples

SOURCES = ["github", "slack", "linear", "svix", "standard-webhooks", "billing"]
TRIGGERS = st.builds(
    WebhookTrigger,
    st.sampled_from(SOURCES),
    signature=st.builds(
        Signature,
        st.just("hook"),
        st.none() | st.just("x-signature"),
        st.none() | st.just("") | st.just("v0="),
        st.none() | st.just("x-time"),
    ),
)
NAMES = st.sampled_from(
    ["x-hub-signature-256", "x-github-event", "x-github-delivery", "x-slack-signature", "x-signature"]
    + ["x-slack-request-timestamp", "linear-signature", "linear-delivery", "x-time", "content-type"]
    + [f"{family}-{part}" for family in ("svix", "webhook") for part in ("id", "timestamp", "signature")]
)
VALUES = st.text(max_size=30) | st.sampled_from(
    ["sha256=" + "a" * 64, "v0=" + "a" * 64, "a" * 64, "1700000000", "9" * 12, "v1,AAAA v1a,AAAA", "ping"]
)
HEADERS = st.dictionaries(NAMES, VALUES, max_size=8)
SECRETS = st.lists(st.text(max_size=20) | st.sampled_from(["whsec_AAAA", "whpk_" + "A" * 43]), max_size=10)

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
FIELDS = ["type", "action", "event", "event_id", "data", "challenge", "repository", "sender", "actions"]
DOCUMENTS = st.dictionaries(st.sampled_from(FIELDS), JSON | st.just("url_verification"), max_size=6).map(
    lambda document: orjson.dumps(document, option=orjson.OPT_PASSTHROUGH_SUBCLASS)
)
BODIES = st.binary(max_size=100) | DOCUMENTS | DOCUMENTS.map(lambda body: b"payload=" + body)


@given(TRIGGERS, HEADERS, BODIES, SECRETS, st.integers(0, 2**53))
@settings(deadline=None, max_examples=examples(300))
def test_a_stranger_is_never_genuine(
    trigger: WebhookTrigger, headers: dict[str, str], body: bytes, secrets: list[str], now_ms: int
) -> None:
    found = authenticate(trigger, headers, body, secrets, now_ms)

    assert isinstance(found, Rejected)
    assert found.reason in set(Reason)
    assert found.code.startswith("UZ-WH-0")


@given(st.binary(max_size=200), st.text(min_size=1, max_size=40))
@settings(deadline=None)
def test_whoever_knows_the_secret_is_genuine(body: bytes, secret: str) -> None:
    trigger = WebhookTrigger("github", signature=Signature("hook"))
    key = secret.encode("utf-8", "surrogatepass")
    signature = "sha256=" + hmac.new(key, body, hashlib.sha256).hexdigest()

    assert authenticate(trigger, {"x-hub-signature-256": signature}, body, [secret], 0) == Genuine()
    assert isinstance(
        authenticate(trigger, {"x-hub-signature-256": signature}, body + b"x", [secret], 0), Rejected
    )


@given(TRIGGERS, HEADERS, BODIES)
@settings(deadline=None, max_examples=examples(500))
def test_any_body_has_a_declared_reading(
    trigger: WebhookTrigger, headers: dict[str, str], body: bytes
) -> None:
    found = read(trigger, headers, body)
    match found:
        case Delivery():
            assert 1 <= len(found.event_type) <= 128
            assert len(found.dedup_key) == len(found.body_key) == 32
            assert (found.source_event_id is None) == (found.dedup_key == found.body_key)
            assert msgspec.json.decode(found.text) == found.payload
            assert read(trigger, headers, body) == found
        case Malformed():
            assert found.detail
        case Challenge():
            assert trigger.source == "slack"
        case Ping():
            assert headers["x-github-event"] == "ping"
        case _:
            assert_never(found)


def test_a_huge_body_is_read_or_refused() -> None:
    trigger = WebhookTrigger("github", signature=Signature("hook"))
    headers = {"x-github-event": "push"}
    for body in (
        b"[" * 1_048_576,
        b'{"a":' * 200_000,
        b"payload=" + b"%5B" * 300_000,
        b"a=1&" * 250_000,
        b'{"a":[' + b"[]," * 340_000 + b"[]]}",
        b'{"a":"' + b"x" * 1_000_000 + b'"}',
        b"\xff" * 1_048_576,
        b'{"a":' + b"9" * 1_000_000 + b"}",
    ):
        assert isinstance(read(trigger, headers, body), (Delivery, Malformed))


def test_a_body_cut_off_anywhere_is_malformed() -> None:
    trigger = WebhookTrigger("github", signature=Signature("hook"))
    body = '{"action": "completed", "a": [1, {"b": "\u00e4\\u00e4"}], "c": null}'.encode()
    for end in range(len(body)):
        assert isinstance(read(trigger, {"x-github-event": "push"}, body[:end]), Malformed)


@given(st.text(max_size=60) | st.from_regex("zwh_[A-Za-z0-9_-]{43}", fullmatch=True))
@settings(deadline=None)
def test_any_address_is_a_trigger_or_refused(segment: str) -> None:
    manifest = Manifest("x", "x", "1.0.0", "", (CronTrigger("* * * * *"), WebhookTrigger("doorbell")))
    hashes = {"doorbell": hash_url_secret("zwh_" + "a" * 43)}
    found = resolve_segment(manifest, hashes, segment)

    assert isinstance(found, Rejected) or segment == "zwh_" + "a" * 43
