"""Whatever is pressed or sampled: a press, a refusal or an explanation; never a fault, nor a secret."""

import hashlib
import hmac
import json
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import orjson
from hypothesis import given, settings, strategies as st

from sexton_actors.chat.notices import notice_of
from sexton_actors.chat.texts import MAX_TEXT_CHARS
from sexton_actors.manifest.model import Signature, WebhookTrigger
from sexton_actors.webhooks.diagnosis import explain
from sexton_actors.webhooks.model import Malformed, Reason, Rejected
from sexton_actors.webhooks.slack_actions import Press, is_signed_press, read_press
from sexton_storage.records.gates import Gate, GateStatus
from tests.actors.test_webhook_fuzz import BODIES, HEADERS, JSON, TRIGGERS
from tests.thorough import examples

SECRET = "0123456789abcdef-and-more"
SAME = UUID(int=7)
NOW_S = 1_700_000_000
OUTCOMES = {*map(str, Reason), "accepted", "ignored", "challenge", "malformed_body"}
PAYLOADS = st.fixed_dictionaries(
    {},
    optional={
        "actions": JSON | st.lists(st.fixed_dictionaries({"value": st.text(max_size=40)}), max_size=2),
        "user": JSON | st.fixed_dictionaries({"id": st.text(max_size=70)}),
        "team": JSON,
    },
)
TEXTS = st.text(max_size=60) | st.sampled_from(["<!channel>", "`" * 9, "&" * 5000, "\ud800", "*_~>"])


def press_of(payload: Any) -> bytes:
    return urlencode({"payload": json.dumps(payload)}).encode()


@given(st.binary(max_size=200) | PAYLOADS.map(press_of) | BODIES)
@settings(deadline=None, max_examples=examples(500))
def test_any_form_is_a_press_or_malformed(body: bytes) -> None:
    found = read_press(body)
    if isinstance(found, Press):
        assert found.by.startswith("slack:")
        assert 1 <= len(found.subject) <= 255
    else:
        assert isinstance(found, Malformed)


@given(st.binary(max_size=300))
@settings(deadline=None, max_examples=examples(300))
def test_a_form_that_is_cut_anywhere_is_no_press_of_somebody_else(cut: bytes) -> None:
    whole = press_of({"user": {"id": "U7"}, "actions": [{"value": "approve:g1"}]})
    found = read_press(whole[: len(cut) % len(whole)])

    assert isinstance(found, Malformed)


@given(HEADERS, st.binary(max_size=100), st.integers(0, 2**53))
@settings(deadline=None, max_examples=examples(300))
def test_a_stranger_presses_nothing(headers: dict[str, str], body: bytes, now_ms: int) -> None:
    for secrets in ([SECRET], [], [""]):
        found = is_signed_press(headers, body, secrets, now_ms)
        assert isinstance(found, Rejected)
        assert found.reason in set(Reason)


@given(st.binary(max_size=100), st.integers(-400, 400))
@settings(deadline=None, max_examples=examples(200))
def test_a_press_is_good_for_five_minutes_either_way(body: bytes, off_s: int) -> None:
    stamp = str(NOW_S + off_s)
    digest = hmac.new(SECRET.encode(), f"v0:{stamp}:".encode() + body, hashlib.sha256).hexdigest()
    headers = {"x-slack-signature": f"v0={digest}", "x-slack-request-timestamp": stamp}
    found = is_signed_press(headers, body, ["other", SECRET], NOW_S * 1000)

    assert (found is None) is (abs(off_s) <= 300)
    assert isinstance(is_signed_press(headers, body + b"x", [SECRET], NOW_S * 1000), Rejected)


@given(TRIGGERS, HEADERS, BODIES, st.integers(0, 2**53))
@settings(deadline=None, max_examples=examples(400))
def test_any_sample_is_explained_without_the_secret(
    trigger: WebhookTrigger, headers: dict[str, str], body: bytes, now_ms: int
) -> None:
    kept = [SECRET, SECRET.encode().hex(), f" {SECRET}\n"]
    found = explain(trigger, headers, body, kept, now_ms)

    assert found.outcome in OUTCOMES
    assert found.detail
    assert SECRET not in repr(found)


@given(st.binary(max_size=60))
@settings(deadline=None, max_examples=examples(200))
def test_no_explanation_holds_the_signature_that_would_be_right(body: bytes) -> None:
    right = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    trigger = WebhookTrigger("github", signature=Signature("hook"))
    for given_digest in ("0" * 64, right[::-1], ""):
        found = explain(trigger, {"x-hub-signature-256": f"sha256={given_digest}"}, body, [SECRET], 0)
        assert right not in orjson.dumps([found.detail, *found.hints]).decode()


@given(TEXTS, TEXTS, TEXTS, st.dictionaries(TEXTS.filter(lambda t: t.isprintable()), JSON, max_size=3))
@settings(deadline=None, max_examples=examples(200))
def test_whatever_an_agent_says_fits_into_a_message_and_commands_nobody(
    tool: str, proposed: str, reach: str, evidence: dict[str, Any]
) -> None:
    gate = Gate(
        id=SAME,
        zombie_id=SAME,
        workspace_id=SAME,
        tenant_id=SAME,
        event_id=SAME,
        lease_id=None,
        action_id="a",
        status=GateStatus.PENDING,
        requested_at=1,
        timeout_at=2_000,
        tool_name=tool,
        proposed_action=proposed,
        blast_radius=reach,
        evidence=evidence,
    )
    text = notice_of(gate).blocks[0]["text"]["text"]

    assert 1 <= len(text) <= MAX_TEXT_CHARS
    assert "<" not in text.replace("<!date^2^{date_short_pretty} {time}|at its time-out>", "")
