"""The samples of ``sexton trigger``: each is signed as its sender signs, and says what the agent hears."""

from __future__ import annotations

import pytest

from sexton_actors.manifest.model import Signature, WebhookTrigger
from sexton_actors.webhooks.authentication import Genuine, authenticate
from sexton_actors.webhooks.normalisation import Delivery, listed, read
from sexton_cli.exits import Fault
from sexton_cli.webhook_samples import Stamp, sample_of, signed

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
AT_S = 1_700_000_000
SOURCES = ("github", "slack", "linear", "stripe", "sentry", "svix", "standard-webhooks", "shop")


def of(source: str, *events: str) -> WebhookTrigger:
    named = Signature("hook", "x-shop-signature", "hmac=", "x-shop-time")
    signature = named if source == "shop" else Signature("hook")
    return WebhookTrigger(source, events=events or None, signature=signature)


@pytest.mark.parametrize("source", SOURCES)
def test_what_a_sample_is_signed_with_and_says_is_what_the_server_reads(source: str) -> None:
    stamp = Stamp("delivery-1", AT_S)
    made = signed(of(source), sample_of(of(source), None, None, stamp), SECRET, stamp)

    assert isinstance(authenticate(of(source), made.headers, made.body, [SECRET], AT_S * 1000), Genuine)
    assert not isinstance(authenticate(of(source), made.headers, made.body, [OTHER], AT_S * 1000), Genuine)

    found = read(of(source), made.headers, made.body)
    assert isinstance(found, Delivery)
    assert listed(of(source, made.event_type), found.event_type), (made.event_type, found.event_type)

    again = sample_of(of(source), None, None, Stamp("delivery-2", AT_S))
    other = read(of(source), signed(of(source), again, SECRET, Stamp("delivery-2", AT_S)).headers, again.body)
    assert isinstance(other, Delivery)
    assert found.dedup_key != other.dedup_key, "each is a delivery of its own"


def test_the_type_is_the_one_asked_for_or_the_first_of_the_triggers() -> None:
    stamp = Stamp("d", AT_S)
    issues = sample_of(of("github", "issues.opened", "ping"), None, None, stamp)
    assert (issues.event_type, b'"action":"opened"' in issues.body) == ("issues.opened", True)

    closed = sample_of(of("github"), "issues.closed", None, stamp)
    assert b'"action":"closed"' in closed.body
    assert signed(of("github"), closed, SECRET, stamp).headers["x-github-event"] == "issues"

    assert sample_of(of("stripe"), "charge.refunded", b"{}", stamp).body == b"{}"

    with pytest.raises(Fault, match="no event is named"):
        sample_of(of("github"), None, b"{}", stamp)
    with pytest.raises(Fault, match="a public key cannot sign"):
        signed(of("svix"), sample_of(of("svix"), None, None, stamp), "whpk_AAAA", stamp)
