"""Only who knows the secret gets past: the senders' examples, their libraries, and forgeries."""

import base64
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from slack_sdk.signature import SignatureVerifier
from standardwebhooks.webhooks import Webhook as StandardWebhook
from svix.webhooks import Webhook as SvixWebhook

from sexton_actors.manifest.model import Signature, WebhookTrigger
from sexton_actors.webhooks.authentication import Genuine, Rejected, authenticate
from sexton_actors.webhooks.sources.standard_webhooks import MAX_PUBLIC_KEY_SIGNATURES
from sexton_actors.webhooks.trigger_secrets import secrets_of

GITHUB = WebhookTrigger("github", signature=Signature("hook"))
SLACK = WebhookTrigger("slack", signature=Signature("hook"))
LINEAR = WebhookTrigger("linear", signature=Signature("hook"))
SVIX = WebhookTrigger("svix", signature=Signature("hook"))
STANDARD = WebhookTrigger("standard-webhooks", signature=Signature("hook"))
BILLING = WebhookTrigger("billing", signature=Signature("hook", "x-signature", "hmac "))
TIMED = WebhookTrigger("billing", signature=Signature("hook", "x-signature", None, "x-time"))

NOW_S = 1_700_000_000
NOW_MS = NOW_S * 1_000
BODY = b'{"test": 2432232314}'

# The example of GitHub's documentation, "Validating webhook deliveries".
GITHUB_SECRET = "It's a Secret to Everybody"
GITHUB_BODY = b"Hello, World!"
GITHUB_SIGNATURE = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"

# The example of Slack's documentation, "Verifying requests from Slack".
SLACK_SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
SLACK_TIME_S = 1_531_420_618
SLACK_BODY = (
    b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V"
    b"&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text="
    b"&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
    b"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
)
SLACK_HEADERS = {
    "x-slack-signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
    "x-slack-request-timestamp": str(SLACK_TIME_S),
}

# The example that the libraries of Standard Webhooks are tested with.
STANDARD_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
STANDARD_TIME_S = 1_614_265_330
STANDARD_ID = "msg_p5jXN8AQM9LWM0D4loKWxJek"
STANDARD_SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="

# Key 1 of RFC 8032, section 7.1.
ED25519_KEY = Ed25519PrivateKey.from_private_bytes(
    bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
)
ED25519_SECRET = (
    "whpk_" + base64.b64encode(ED25519_KEY.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)).decode()
)


def verdict(
    trigger: WebhookTrigger,
    headers: Mapping[str, str],
    body: bytes = BODY,
    secrets: Sequence[str] = ("s3cret",),
    now_s: float = NOW_S,
) -> str:
    """``genuine``, or the reason and the code of the rejection."""
    found = authenticate(trigger, headers, body, secrets, int(now_s * 1_000))
    match found:
        case Genuine():
            return "genuine"
        case Rejected(reason, code, detail):
            assert detail
            assert not any(secret in detail for secret in secrets if len(secret) > len("whpk_"))
            return f"{reason} {code}"


def hex_digest(signed: bytes, secret: str = "s3cret") -> str:
    return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def github(body: bytes = BODY, secret: str = "s3cret") -> dict[str, str]:
    return {"x-hub-signature-256": "sha256=" + hex_digest(body, secret)}


def standard(
    secret: str = STANDARD_SECRET,
    *,
    family: str = "webhook",
    at_s: int = NOW_S,
    message_id: str = "msg_1",
) -> dict[str, str]:
    """Signed by the reference library."""
    signed_at = datetime.fromtimestamp(at_s, UTC)
    return {
        f"{family}-id": message_id,
        f"{family}-timestamp": str(at_s),
        f"{family}-signature": StandardWebhook(secret).sign(message_id, signed_at, BODY.decode()),
    }


def ed25519(key: Ed25519PrivateKey = ED25519_KEY, body: bytes = BODY) -> dict[str, str]:
    signed = f"msg_1.{NOW_S}.".encode() + body
    return {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(NOW_S),
        "webhook-signature": "v1a," + base64.b64encode(key.sign(signed)).decode(),
    }


MISMATCH = "signature_mismatch UZ-WH-010"
MISSING = "signature_missing UZ-WH-010"
MALFORMED = "signature_malformed UZ-WH-010"
STALE = "stale_timestamp UZ-WH-011"
NO_CREDENTIAL = "credential_missing UZ-WH-020"


def test_the_documented_example_of_github_is_genuine() -> None:
    headers = {"x-hub-signature-256": GITHUB_SIGNATURE}

    assert verdict(GITHUB, headers, GITHUB_BODY, [GITHUB_SECRET]) == "genuine"
    assert verdict(GITHUB, headers, GITHUB_BODY + b"!", [GITHUB_SECRET]) == MISMATCH
    assert verdict(GITHUB, headers, GITHUB_BODY, [GITHUB_SECRET.lower()]) == MISMATCH


def test_the_documented_example_of_slack_is_genuine() -> None:
    assert verdict(SLACK, SLACK_HEADERS, SLACK_BODY, [SLACK_SECRET], now_s=SLACK_TIME_S) == "genuine"
    assert verdict(SLACK, SLACK_HEADERS, SLACK_BODY, [SLACK_SECRET]) == STALE


@pytest.mark.parametrize("family", ["svix", "webhook"])
@pytest.mark.parametrize("trigger", [SVIX, STANDARD], ids=["svix", "standard-webhooks"])
def test_the_published_example_of_standard_webhooks_is_genuine(trigger: WebhookTrigger, family: str) -> None:
    headers = {
        f"{family}-id": STANDARD_ID,
        f"{family}-timestamp": str(STANDARD_TIME_S),
        f"{family}-signature": STANDARD_SIGNATURE,
    }

    assert verdict(trigger, headers, BODY, [STANDARD_SECRET], now_s=STANDARD_TIME_S) == "genuine"
    assert verdict(trigger, headers, BODY, [STANDARD_SECRET]) == STALE


def test_what_slacks_own_library_signs_is_genuine() -> None:
    body = '{"type":"event_callback","text":"grüß dich"}'
    signature = SignatureVerifier("s3cret").generate_signature(timestamp=str(NOW_S), body=body)
    assert signature is not None

    headers = {"x-slack-signature": signature, "x-slack-request-timestamp": str(NOW_S)}
    assert verdict(SLACK, headers, body.encode()) == "genuine"
    assert verdict(SLACK, {**headers, "x-slack-request-timestamp": str(NOW_S + 1)}, body.encode()) == MISMATCH


def test_what_the_libraries_of_svix_and_standard_webhooks_sign_is_genuine() -> None:
    signed_at = datetime.fromtimestamp(NOW_S, UTC)
    signature = SvixWebhook(STANDARD_SECRET).sign("msg_1", signed_at, BODY.decode())
    svix = {"svix-id": "msg_1", "svix-timestamp": str(NOW_S), "svix-signature": signature}

    assert verdict(SVIX, svix, secrets=[STANDARD_SECRET]) == "genuine"
    assert verdict(STANDARD, standard(), secrets=[STANDARD_SECRET]) == "genuine"


def test_an_ed25519_signature_is_genuine_under_its_public_key() -> None:
    assert verdict(STANDARD, ed25519(), secrets=[ED25519_SECRET]) == "genuine"

    other = Ed25519PrivateKey.from_private_bytes(bytes(32))
    assert verdict(STANDARD, ed25519(other), secrets=[ED25519_SECRET]) == MISMATCH
    assert verdict(STANDARD, ed25519(body=b"{}"), secrets=[ED25519_SECRET]) == MISMATCH


def test_a_public_key_never_serves_as_a_shared_secret() -> None:
    """The key is public: whoever could use it as an HMAC secret could sign anything."""
    raw = ED25519_SECRET.removeprefix("whpk_")
    assert verdict(STANDARD, standard("whsec_" + raw), secrets=[ED25519_SECRET]) == MISMATCH


def test_one_right_signature_among_several_is_enough() -> None:
    headers = standard()
    right = headers["webhook-signature"]
    wrong = "v1," + base64.b64encode(bytes(32)).decode()
    for value in (f"{wrong} {right}", f"{right} {wrong}", f"v2,abc v1a,AAAA {right}"):
        assert (
            verdict(STANDARD, {**headers, "webhook-signature": value}, secrets=[STANDARD_SECRET]) == "genuine"
        )
    flooded = " ".join([wrong] * 500 + [right])

    assert (
        verdict(STANDARD, {**headers, "webhook-signature": flooded}, secrets=[STANDARD_SECRET]) == "genuine"
    )


def test_of_signatures_by_private_keys_so_many_are_looked_at_as_a_rotation_may_need() -> None:
    headers = ed25519()
    right = headers["webhook-signature"]
    wrong = [
        "v1a," + base64.b64encode(n.to_bytes(64)).decode() for n in range(1, MAX_PUBLIC_KEY_SIGNATURES + 1)
    ]
    for others, expected in ((wrong[1:], "genuine"), (wrong[:1] * 200, "genuine"), (wrong, MISMATCH)):
        value = " ".join([*others, right])
        found = verdict(STANDARD, {**headers, "webhook-signature": value}, secrets=[ED25519_SECRET])
        assert found == expected


@pytest.mark.parametrize("count", [9, 100])
def test_every_secret_of_a_rotation_counts_however_many_there_are(count: int) -> None:
    kept = {"webhook_secret": ["", 7, *(f"old {n}" for n in range(count)), GITHUB_SECRET]}
    secrets = secrets_of(kept)

    assert len(secrets) == count + 1
    assert verdict(GITHUB, github(secret=GITHUB_SECRET), secrets=secrets) == "genuine"


def test_id_time_and_body_are_all_signed_by_standard_webhooks() -> None:
    headers = standard()
    for changed in ({"webhook-id": "msg_2"}, {"webhook-timestamp": str(NOW_S + 1)}):
        assert verdict(STANDARD, {**headers, **changed}, secrets=[STANDARD_SECRET]) == MISMATCH

    assert verdict(STANDARD, headers, b"{}", secrets=[STANDARD_SECRET]) == MISMATCH


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"webhook-id": ""}, MISSING),
        ({"webhook-signature": ""}, MISSING),
        ({"webhook-timestamp": ""}, MISSING),
        ({"webhook-timestamp": "soon"}, MALFORMED),
        ({"webhook-signature": "v1"}, MALFORMED),
        ({"webhook-signature": "v1,###"}, MALFORMED),
        ({"webhook-signature": "v2,AAAA"}, MALFORMED),
        ({"webhook-signature": "v1,AAAA"}, MISMATCH),
        ({"webhook-signature": "v1a,AAAA"}, MISMATCH),
        ({"svix-signature": "v1,AAAA"}, MISSING),
    ],
)
def test_damaged_headers_of_standard_webhooks_are_told_apart(changed: dict[str, str], expected: str) -> None:
    assert verdict(STANDARD, {**standard(), **changed}, secrets=[STANDARD_SECRET]) == expected


@pytest.mark.parametrize("secret", ["whsec_###", "whpk_AAAA", "whpk_", "a secret with blanks"])
def test_a_secret_of_no_known_form_counts_as_not_configured(secret: str) -> None:
    assert verdict(STANDARD, standard(), secrets=[secret]) == NO_CREDENTIAL


def test_a_shared_secret_may_lack_its_prefix_and_its_padding() -> None:
    secret = base64.b64encode(b"seventeen letters").decode()
    for written in (secret, secret.rstrip("="), f"whsec_{secret}"):
        assert verdict(STANDARD, standard(secret), secrets=[written]) == "genuine"


def test_every_secret_of_a_rotation_is_tried() -> None:
    secrets = ["new", "s3cret", "old"]

    assert verdict(GITHUB, github(), secrets=secrets) == "genuine"
    assert verdict(GITHUB, github(secret="old"), secrets=secrets) == "genuine"
    assert verdict(GITHUB, github(secret="older"), secrets=secrets) == MISMATCH
    assert verdict(STANDARD, standard(), secrets=[ED25519_SECRET, STANDARD_SECRET]) == "genuine"


@pytest.mark.parametrize("trigger", [GITHUB, SLACK, LINEAR, SVIX, STANDARD, BILLING, TIMED])
def test_without_a_secret_nothing_is_genuine(trigger: WebhookTrigger) -> None:
    empty = hex_digest(BODY, "")
    headers = {"x-hub-signature-256": "sha256=" + empty, "linear-signature": empty}

    assert verdict(trigger, headers, secrets=[]) == NO_CREDENTIAL
    assert verdict(trigger, headers, secrets=[""]) == NO_CREDENTIAL


def test_hexadecimal_digits_may_be_upper_case() -> None:
    headers = {"x-hub-signature-256": "sha256=" + hex_digest(BODY).upper()}
    assert verdict(GITHUB, headers) == "genuine"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, MISSING),
        ("", MISSING),
        ("sha256=", MALFORMED),
        ("sha256=" + "0" * 64, MISMATCH),
        ("sha256=" + "0" * 63, MALFORMED),
        ("sha256=" + "0" * 65, MALFORMED),
        ("sha256=" + "0" * 64 + "\n", MALFORMED),
        ("sha256=" + "0" * 63 + "é", MALFORMED),
        ("sha256=" + "0" * 63 + "\u0663", MALFORMED),
        ("sha256= " + "0" * 64, MALFORMED),
        ("SHA256=" + "0" * 64, MALFORMED),
        ("sha1=" + "0" * 40, MALFORMED),
        ("0" * 64, MALFORMED),
        ("\ud800", MALFORMED),
    ],
)
def test_a_signature_is_missing_malformed_or_wrong(value: str | None, expected: str) -> None:
    headers = {} if value is None else {"x-hub-signature-256": value}
    assert verdict(GITHUB, headers) == expected


def test_the_raw_bytes_are_signed_not_their_meaning() -> None:
    assert verdict(GITHUB, github(), BODY + b"\n") == MISMATCH
    assert verdict(GITHUB, github(b"\xff\x00"), b"\xff\x00") == "genuine"
    assert verdict(GITHUB, github(b""), b"") == "genuine"


def test_linear_signs_the_body_without_a_prefix() -> None:
    assert verdict(LINEAR, {"linear-signature": hex_digest(BODY)}) == "genuine"
    assert verdict(LINEAR, {"linear-signature": "sha256=" + hex_digest(BODY)}) == MALFORMED


def test_another_source_signs_as_its_trigger_says() -> None:
    assert verdict(BILLING, {"x-signature": "hmac " + hex_digest(BODY)}) == "genuine"
    assert verdict(BILLING, {"x-signature": hex_digest(BODY)}) == MALFORMED
    assert verdict(BILLING, github()) == MISSING


def test_with_a_time_header_the_time_is_signed_too() -> None:
    headers = {"x-signature": hex_digest(f"{NOW_S}.".encode() + BODY), "x-time": str(NOW_S)}

    assert verdict(TIMED, headers) == "genuine"
    assert verdict(TIMED, {**headers, "x-time": str(NOW_S + 1)}) == MISMATCH
    assert verdict(TIMED, {"x-signature": headers["x-signature"]}) == MISSING
    assert verdict(TIMED, {"x-signature": hex_digest(BODY), "x-time": str(NOW_S)}) == MISMATCH


@pytest.mark.parametrize(
    "written", ["+1700000000", "1_700_000_000", " 1700000000", "1.7e9", "-5", "\u0661\u0667", "9" * 13]
)
def test_a_time_is_written_in_plain_digits(written: str) -> None:
    headers = {"x-signature": hex_digest(f"{written}.".encode() + BODY), "x-time": written}
    assert verdict(TIMED, headers) == MALFORMED


@pytest.mark.parametrize(
    ("tolerance_s", "age_s", "expected"),
    [
        (300, 300, "genuine"),
        (300, 300.001, STALE),
        (300, -300, "genuine"),
        (300, -300.001, STALE),
        (30, 31, STALE),
        (3_600, 3_599, "genuine"),
    ],
)
def test_a_signed_time_may_be_off_by_the_tolerance_either_way(
    tolerance_s: int, age_s: float, expected: str
) -> None:
    trigger = WebhookTrigger("svix", signature=Signature("hook"), tolerance_seconds=tolerance_s)
    assert verdict(trigger, standard(), secrets=[STANDARD_SECRET], now_s=NOW_S + age_s) == expected


def test_a_forgery_does_not_learn_that_its_time_was_stale() -> None:
    assert verdict(SLACK, SLACK_HEADERS, SLACK_BODY, ["other"]) == MISMATCH


def test_a_native_source_may_be_given_another_header() -> None:
    trigger = WebhookTrigger("github", signature=Signature("hook", "x-relayed-signature", ""))

    assert verdict(trigger, {"x-relayed-signature": hex_digest(BODY)}) == "genuine"
    assert verdict(trigger, github()) == MISSING


@pytest.mark.parametrize(
    ("data", "secrets"),
    [
        ({"webhook_secret": "a"}, ["a"]),
        ({"webhook_secret": ["a", "b"]}, ["a", "b"]),
        ({"webhook_secret": ["a", "", 7, None, "b"]}, ["a", "b"]),
        ({"webhook_secret": ""}, []),
        ({"webhook_secret": 7}, []),
        ({"webhook_secret": {"a": "b"}}, []),
        ({"secret": "a"}, []),
        ({}, []),
    ],
)
def test_secrets_are_taken_from_the_credentials_field(data: dict[str, object], secrets: list[str]) -> None:
    assert secrets_of(data) == secrets
