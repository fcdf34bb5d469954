"""What is shown of an event to whoever lets it in: enough to decide, bounded, and no secret."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from sexton_actors.chat.notices import notice_of
from sexton_actors.gate_requests.evidence import MASKED, MAX_EVIDENCE_BYTES, evidence_of, reach_of
from sexton_storage.records.gates import GateStatus
from tests.actors.test_chat_states import gate_of
from tests.actors.test_manifest_parse import manifest_of, with_config
from tests.thorough import examples

PUSHED = {
    "source": "github",
    "event": "push",
    "repository": "acme/web",
    "actor": "ann",
    "url": "https://github.com/acme/web/commit/1",
    "raw": {"head_commit": {"message": "Ship it"}, "hook": {"secret": "abc"}},
}


@pytest.mark.parametrize(
    ("request_", "sender", "message", "url"),
    [
        (PUSHED, "ann", None, PUSHED["url"]),
        ({"message": "Deploy!"}, None, "Deploy!", None),
        ({"data": {"user": {"name": "Bo"}, "text": "hi"}}, "Bo", "hi", None),
        ({"sender": {"login": "cy"}, "title": "Bug", "url": "javascript:alert(1)"}, "cy", "Bug", None),
    ],
)
def test_words_sender_and_link_are_found(
    request_: dict[str, Any], sender: str | None, message: str | None, url: str | None
) -> None:
    shown = evidence_of("webhook:github", "push", request_, [])

    assert (shown.get("sender"), shown.get("message"), shown.get("url")) == (sender, message, url)
    assert (shown["actor"], shown["event_type"]) == ("webhook:github", "push")


@pytest.mark.parametrize(
    "secret",
    [
        "ghp_0123456789abcdefghij",
        "xoxb-0123456789-abcdef",
        "zmb_t_" + "0" * 64,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
        "the lent one",
    ],
)
def test_secrets_are_masked_wherever_they_stand(secret: str) -> None:
    request = {
        "message": f"use {secret}!",
        "data": [{"note": f"{secret}"}],
        "url": f"https://a.test/{secret}",
    }
    shown = evidence_of("steer:ann", "message", request, ["the lent one"])

    assert secret not in str(shown)
    assert shown["message"] == f"use {MASKED}!"


def test_what_is_called_a_secret_is_masked_whatever_it_looks_like() -> None:
    request = {"raw": {"api_key": "plain", "Authorization": "Basic x", "tokens": 7, "name": "n"}}
    raw = evidence_of("a", "b", request, [])["payload"]["raw"]

    assert raw == {"api_key": MASKED, "Authorization": MASKED, "tokens": 7, "name": "n"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3_000),
    lambda inner: st.lists(inner, max_size=60) | st.dictionaries(st.text(max_size=30), inner, max_size=60),
    max_leaves=60,
)


@settings(max_examples=examples(40), deadline=None)
@given(st.dictionaries(st.text(max_size=30), JSON, max_size=60))
def test_any_payload_is_shown_within_its_bound(request: dict[str, Any]) -> None:
    shown = evidence_of("a" * 200, "b" * 200, request, ["sekret"])

    assert len(msgspec.json.encode(shown)) <= MAX_EVIDENCE_BYTES
    assert "payload" in shown


def test_a_huge_payload_says_how_much_is_left_out() -> None:
    shown = evidence_of("a", "b", {"list": list(range(100_000)), "text": "x" * 1_000_000}, [])

    assert len(msgspec.json.encode(shown)) <= MAX_EVIDENCE_BYTES
    assert "more" in str(shown["payload"]["list"][-1])


def test_the_reach_is_what_the_files_allow() -> None:
    config = (
        "tools: [shell]\nnetwork: {allow: [api.acme.test]}\ncredentials: [deploy]\nbudget: {daily_dollars: 5}"
    )
    assert reach_of(manifest_of(trigger=with_config(config))) == (
        "runs as agent; tools: shell; hosts: api.acme.test; credentials: deploy; at most 5 dollars a day"
    )


def test_the_chat_shows_the_event_and_nothing_in_it_is_a_command() -> None:
    gate = msgspec.structs.replace(
        gate_of(GateStatus.PENDING),
        lease_id=None,
        blast_radius="runs as agent",
        evidence={"sender": "<!channel>", "message": "Ship\nit", "url": "https://a.test/?a=1&b=2"},
    )
    text = notice_of(gate).blocks[0]["text"]["text"]
    assert "_From:_ &lt;!channel&gt;" in text
    assert ">Ship it" in text
    assert "<https://a.test/?a=1&amp;b=2|Look at it>" in text
    assert "_Reach:_ runs as agent" in text

    odd = msgspec.structs.replace(gate, evidence={"url": "https://a.test/|<!here>"})
    assert "<https://a.test/|" not in notice_of(odd).blocks[0]["text"]["text"]
