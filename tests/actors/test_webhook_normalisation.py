"""A genuine webhook becomes what its agent gets, and a key by which its repeat is known."""

from typing import Any
from urllib.parse import quote, urlencode

import msgspec
import orjson
import pytest
from msgspec.structs import replace

from sexton_actors.manifest.model import Payload, Signature, WebhookTrigger
from sexton_actors.webhooks.normalisation import Challenge, Delivery, Malformed, Ping, listed, read

GITHUB = WebhookTrigger("github", signature=Signature("hook"))
SLACK = WebhookTrigger("slack", signature=Signature("hook"))
LINEAR = WebhookTrigger("linear", signature=Signature("hook"))
SVIX = WebhookTrigger("svix", signature=Signature("hook"))
BILLING = WebhookTrigger("billing", signature=Signature("hook", "x-signature"))
RAW = replace(BILLING, payload=Payload.RAW)
ENVELOPE = replace(BILLING, payload=Payload.ENVELOPE)

GITHUB_HEADERS = {"x-github-event": "workflow_run", "x-github-delivery": "72d3162e-cc78-11e3"}
WORKFLOW_RUN = {
    "action": "completed",
    "workflow_run": {"id": 1, "html_url": "https://github.com/octo/hello/actions/runs/1"},
    "repository": {"full_name": "octo/hello", "html_url": "https://github.com/octo/hello"},
    "organization": {"login": "octo"},
    "sender": {"login": "octocat", "html_url": "https://github.com/octocat"},
}


def delivery(trigger: WebhookTrigger, headers: dict[str, str], document: Any) -> Delivery:
    found = read(trigger, headers, orjson.dumps(document))
    assert isinstance(found, Delivery), found
    return found


def test_a_github_event_is_normalised_and_keeps_its_body() -> None:
    found = delivery(GITHUB, GITHUB_HEADERS, WORKFLOW_RUN)

    assert found.event_type == "workflow_run.completed"
    assert found.source_event_id == "72d3162e-cc78-11e3"
    assert found.payload == {
        "source": "github",
        "event": "workflow_run",
        "action": "completed",
        "repository": "octo/hello",
        "team": "octo",
        "actor": "octocat",
        "url": "https://github.com/octo/hello/actions/runs/1",
        "raw": WORKFLOW_RUN,
    }


def test_a_github_event_without_an_action_has_none() -> None:
    found = delivery(GITHUB, {"x-github-event": "push"}, {"ref": "refs/heads/main", "action": 7})

    assert found.event_type == "push"
    assert found.payload == {
        "source": "github",
        "event": "push",
        "action": None,
        "raw": {"ref": "refs/heads/main", "action": 7},
    }


@pytest.mark.parametrize(
    ("event", "document", "url"),
    [
        ("issue_comment", {"issue": {"html_url": "i"}, "comment": {"html_url": "c"}}, "c"),
        ("pull_request", {"pull_request": {"html_url": "p"}}, "p"),
        ("push", {"head_commit": {"url": "h"}, "repository": {"html_url": "r"}}, "h"),
        ("star", {"repository": {"html_url": "r"}}, "r"),
        ("push", {"repository": "odd", "head_commit": None}, None),
    ],
)
def test_the_address_is_that_of_the_most_special_thing(
    event: str, document: dict[str, Any], url: str | None
) -> None:
    assert delivery(GITHUB, {"x-github-event": event}, document).payload.get("url") == url


def test_a_github_ping_is_a_ping() -> None:
    assert read(GITHUB, {"x-github-event": "ping"}, b'{"zen": "Keep it simple."}') == Ping()


def test_a_github_delivery_without_its_event_header_is_malformed() -> None:
    assert isinstance(read(GITHUB, {}, b"{}"), Malformed)


def test_a_slack_event_is_named_by_the_inner_type() -> None:
    document = {
        "type": "event_callback",
        "event_id": "Ev123",
        "team_id": "T1",
        "event": {"type": "message", "subtype": "bot_message", "user": "U1"},
    }
    found = delivery(SLACK, {}, document)

    assert (found.event_type, found.source_event_id) == ("message", "Ev123")
    assert found.payload == {
        "source": "slack",
        "event": "message",
        "action": "bot_message",
        "team": "T1",
        "actor": "U1",
        "raw": document,
    }


def test_a_slack_interaction_comes_as_a_form() -> None:
    document = {
        "type": "block_actions",
        "team": {"id": "T1"},
        "user": {"id": "U1"},
        "actions": [{"action_id": "approve"}],
    }
    body = urlencode({"payload": orjson.dumps(document).decode()}).encode()
    found = read(SLACK, {}, body)

    assert isinstance(found, Delivery)
    assert (found.event_type, found.source_event_id) == ("block_actions", None)
    assert found.payload["action"] == "approve"
    assert found.payload["actor"] == "U1"


def test_slacks_challenge_is_handed_back() -> None:
    assert read(SLACK, {}, b'{"type":"url_verification","challenge":"3eZb"}') == Challenge("3eZb")


@pytest.mark.parametrize("challenge", [b"7", b'""', b'"' + b"x" * 1_025 + b'"', b"null"])
def test_a_challenge_is_a_short_text(challenge: bytes) -> None:
    body = b'{"type":"url_verification","challenge":' + challenge + b"}"
    assert isinstance(read(SLACK, {}, body), Malformed)


def test_a_linear_event_is_named_by_type_and_action() -> None:
    document = {
        "type": "Issue",
        "action": "update",
        "url": "https://linear.app/octo/issue/OCT-1",
        "actor": {"id": "a", "name": "Ada"},
        "data": {"team": {"key": "OCT"}},
    }
    found = delivery(LINEAR, {"linear-delivery": "d-1"}, document)

    assert (found.event_type, found.source_event_id) == ("Issue.update", "d-1")
    assert found.payload == {
        "source": "linear",
        "event": "Issue",
        "action": "update",
        "team": "OCT",
        "actor": "Ada",
        "url": "https://linear.app/octo/issue/OCT-1",
        "raw": document,
    }


@pytest.mark.parametrize("trigger", [SLACK, LINEAR], ids=["slack", "linear"])
def test_a_native_body_needs_its_type(trigger: WebhookTrigger) -> None:
    for body in (b"{}", b'{"type": 7}', b'{"type": ""}'):
        assert isinstance(read(trigger, {}, body), Malformed)


def test_a_standard_webhook_reaches_the_agent_raw() -> None:
    document = {"type": "invoice.paid", "data": {"id": "in_1"}}
    found = delivery(SVIX, {"svix-id": "msg_1", "svix-signature": "v1,x"}, document)

    assert (found.event_type, found.source_event_id) == ("invoice.paid", "msg_1")
    assert found.payload == document


def test_the_id_read_is_the_one_of_the_headers_that_were_verified() -> None:
    headers = {"svix-id": "signed", "svix-signature": "v1,x", "webhook-id": "not signed"}
    assert delivery(SVIX, headers, {"type": "a"}).source_event_id == "signed"


def test_another_source_reaches_the_agent_raw() -> None:
    document = {"event_id": "evt-1", "type": "order.created", "data": {"n": 1}, "more": True}
    found = delivery(BILLING, {}, document)

    assert (found.event_type, found.source_event_id) == ("order.created", "evt-1")
    assert found.payload == document


@pytest.mark.parametrize("missing", ["event_id", "type", "data"])
def test_a_body_that_lacks_a_field_of_the_envelope_is_the_senders_own(missing: str) -> None:
    document = {"event_id": "evt-1", "type": "order.created", "data": {}}
    del document[missing]
    found = delivery(BILLING, {}, document)
    assert found.payload == document
    assert found.event_type == document.get("type", "billing")
    assert found.source_event_id == document.get("event_id")
    assert delivery(RAW, {}, document).event_type == found.event_type

    refused = read(ENVELOPE, {}, orjson.dumps(document))
    assert isinstance(refused, Malformed)
    assert missing in refused.detail


@pytest.mark.parametrize(
    "wrong", [{"event_id": 7}, {"event_id": ""}, {"type": 7}, {"type": ""}, {"data": []}, {"data": None}]
)
def test_an_envelope_with_fields_of_the_wrong_type_is_none(wrong: dict[str, Any]) -> None:
    document = {"event_id": "evt-1", "type": "order.created", "data": {}, **wrong}

    assert delivery(BILLING, {}, document).payload == document
    assert isinstance(read(ENVELOPE, {}, orjson.dumps(document)), Malformed)


def test_what_cannot_be_an_id_or_a_type_of_ours_does_not_refuse_a_senders_own_body() -> None:
    for document in ({"event_id": "e" * 256}, {"event_id": "a\nb"}, {"event_id": "", "type": "t" * 129}):
        found = delivery(BILLING, {}, document)
        assert (found.event_type, found.source_event_id) == ("billing", None)


def test_the_id_of_what_an_event_is_about_makes_no_repeat_of_another_event() -> None:
    one = delivery(BILLING, {}, {"id": "order-7", "status": "paid"})
    other = delivery(BILLING, {}, {"id": "order-7", "status": "sent"})

    assert one.dedup_key != other.dedup_key


def test_a_stripe_event_is_told_by_its_own_type_and_id() -> None:
    document = {"id": "evt_1", "object": "event", "type": "charge.failed", "data": {"object": {"id": "ch_1"}}}
    found = delivery(WebhookTrigger("stripe", signature=Signature("hook")), {}, document)

    assert (found.event_type, found.source_event_id) == ("charge.failed", "evt_1")
    assert found.payload == document


def test_a_sentry_event_is_told_by_its_headers() -> None:
    document = {"action": "created", "data": {"issue": {"id": "1"}}, "actor": {"type": "application"}}
    headers = {"sentry-hook-resource": "issue", "request-id": "4f0d"}
    sentry = WebhookTrigger("sentry", signature=Signature("hook"))
    found = delivery(sentry, headers, document)

    assert (found.event_type, found.source_event_id) == ("issue.created", "4f0d")
    assert found.payload == document
    assert delivery(sentry, {}, {"level": "error"}).event_type == "sentry"


def test_a_senders_own_body_needs_no_field_and_takes_its_type_from_the_source() -> None:
    assert delivery(BILLING, {}, {"alert": "disk full"}).event_type == "billing"
    assert delivery(BILLING, {}, {"type": "firing"}).event_type == "firing"
    assert delivery(BILLING, {}, {"type": 7, "id": "x"}).event_type == "billing"
    assert isinstance(read(BILLING, {}, b"{}"), Malformed)


def test_a_repeat_is_known_by_the_senders_id() -> None:
    first = delivery(GITHUB, GITHUB_HEADERS, WORKFLOW_RUN)
    assert delivery(GITHUB, GITHUB_HEADERS, {"action": "requested"}).dedup_key == first.dedup_key

    other = delivery(GITHUB, {**GITHUB_HEADERS, "x-github-delivery": "other"}, WORKFLOW_RUN)
    assert other.dedup_key != first.dedup_key
    assert len(first.dedup_key) == 32


def test_a_repeat_without_its_id_is_known_by_the_body_of_the_first() -> None:
    first = delivery(GITHUB, GITHUB_HEADERS, WORKFLOW_RUN)
    for stripped in ({}, {"x-github-delivery": ""}):
        again = delivery(GITHUB, {"x-github-event": "workflow_run", **stripped}, WORKFLOW_RUN)
        assert again.dedup_key == again.body_key == first.body_key != first.dedup_key
        assert again.source_event_id is None


def test_keys_of_two_sources_never_meet() -> None:
    document = {"event_id": "evt-1", "type": "a", "data": {}}
    other = WebhookTrigger("shop", signature=Signature("hook", "x-signature"))

    assert delivery(BILLING, {}, document).dedup_key != delivery(other, {}, document).dedup_key
    assert delivery(BILLING, {}, document).body_key != delivery(other, {}, document).body_key


@pytest.mark.parametrize(
    "headers",
    [
        {"x-github-event": "push", "x-github-delivery": "x" * 256},
        {"x-github-event": "push", "x-github-delivery": "a\tb"},
        {"x-github-event": "push", "x-github-delivery": "\ud800"},
        {"x-github-event": "e" * 129},
        {"x-github-event": "a\x00b"},
    ],
)
def test_ids_and_event_types_are_short_printable_lines(headers: dict[str, str]) -> None:
    assert isinstance(read(GITHUB, headers, b"{}"), Malformed)


NOT_READABLE = [
    b"",
    b" ",
    b"null",
    b"7",
    b'"text"',
    b"[]",
    b"{",
    b'{"a": 1} {"b": 2}',
    b'{"a": NaN}',
    b'{"a": Infinity}',
    b'{"a": 1e999}',
    b'{"a": "\xff"}',
    b'{"a": "\\ud800"}',
    b"\xff\xfe{\x00}\x00",
    b"[" * 100_000,
    b'{"a":' * 64 + b"{}" + b"}" * 64,
    b"payload=",
    b"payload=%7B",
    b"payload=%FF",
    b"payload=%5B%5D",
    b"payload={}&payload={}",
    b"other={}",
    "payload={é}".encode(),
    b"&".join(b"a%d=1" % n for n in range(100)),
]


@pytest.mark.parametrize("body", NOT_READABLE, ids=[repr(body[:20]) for body in NOT_READABLE])
def test_an_unreadable_body_is_malformed(body: bytes) -> None:
    found = read(GITHUB, GITHUB_HEADERS, body)

    assert isinstance(found, Malformed)
    assert found.detail


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b" \r\n{}",
        b"\xef\xbb\xbf{}",
        b'{"a": "=&payload=%"}',
        b"payload=%7B%7D",
        b"a=1&payload={}",
        b'{"a":' * 63 + b"{}" + b"}" * 63,
        b'{"a": "\\u0000"}',
        b'{"a": 1, "a": 2}',
    ],
    ids=repr,
)
def test_a_body_is_an_object_or_a_form_with_one(body: bytes) -> None:
    assert isinstance(read(GITHUB, GITHUB_HEADERS, body), Delivery)


def test_of_a_key_that_stands_twice_the_last_value_counts() -> None:
    found = read(BILLING, {}, b'{"type": "a", "type": "b"}')

    assert isinstance(found, Delivery)
    assert found.event_type == "b"


@pytest.mark.parametrize(
    ("events", "event_type", "expected"),
    [
        (None, "anything", True),
        (("workflow_run",), "workflow_run.completed", True),
        (("workflow_run",), "workflow_run", True),
        (("workflow_run.completed",), "workflow_run.completed", True),
        (("workflow_run.completed",), "workflow_run.requested", False),
        (("workflow_run.completed",), "workflow_run", False),
        (("a.b",), "a.b.c", False),
        (("push",), "push_more", False),
        (("push", "star"), "star.created", True),
        (("Push",), "push", False),
    ],
)
def test_events_are_listed_by_type_or_by_the_part_before_the_dot(
    events: tuple[str, ...] | None,
    event_type: str,
    expected: bool,
) -> None:
    assert listed(WebhookTrigger("github", events), event_type) is expected


SPELLED = '{"n": 123456789012345678901234567890,  "price":1.10,\n "e":1E5, "a": "\\u00e4", "huge": %s }' % (
    "9" * 400
)


def test_a_body_is_kept_as_its_sender_wrote_it() -> None:
    for trigger, headers in ((BILLING, {}), (SVIX, {"svix-id": "m", "svix-signature": "v1,x"})):
        found = read(trigger, headers, b"\xef\xbb\xbf " + SPELLED.encode() + b"\n")
        assert isinstance(found, Delivery)
        assert found.text == SPELLED
        assert found.payload["n"] == 123456789012345678901234567890


def test_a_normalised_body_keeps_its_own_spelling_inside() -> None:
    form = b"payload=" + quote(SPELLED).encode()
    for body in (SPELLED.encode(), form):
        found = read(GITHUB, GITHUB_HEADERS, body)
        assert isinstance(found, Delivery)
        assert found.text.endswith(f'"raw":{SPELLED}}}')
        assert msgspec.json.decode(found.text) == found.payload


def test_an_envelope_keeps_its_data_as_it_was_written() -> None:
    body = f'{{"event_id": "e", "type": "a", "data": {SPELLED}}}'
    found = read(BILLING, {}, body.encode())

    assert isinstance(found, Delivery)
    assert found.text == body


def test_a_number_that_nobody_could_read_is_malformed() -> None:
    for number in ("9" * 5_000, "1e400", "-1e309"):
        assert isinstance(read(BILLING, {}, f'{{"n": {number}}}'.encode()), Malformed)
