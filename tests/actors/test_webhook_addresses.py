"""An address means one trigger: by source first, then by the secret in it, or none."""

import pytest

from sexton_actors.manifest.model import CronTrigger, Manifest, Signature, WebhookTrigger
from sexton_actors.manifest.trigger_fields import MULTISIG_SOURCES, NATIVE_SOURCES, RESERVED_SOURCES
from sexton_actors.webhooks.known_sources import NATIVE, source_of
from sexton_actors.webhooks.model import Rejected
from sexton_actors.webhooks.trigger_secrets import (
    RESERVED_SEGMENTS,
    hash_url_secret,
    resolve_multisig,
    resolve_segment,
)

SECRET = "zwh_" + "a" * 43
OTHER_SECRET = "zwh_" + "b" * 43

GITHUB = WebhookTrigger("github", signature=Signature("hook"))
DOORBELL = WebhookTrigger("doorbell")
SVIX = WebhookTrigger("svix", signature=Signature("hook"))
STANDARD = WebhookTrigger("standard-webhooks", signature=Signature("other"))
HASHES = {"doorbell": hash_url_secret(SECRET)}


def agent(*triggers: WebhookTrigger | CronTrigger) -> Manifest:
    return Manifest("x", "x", "1.0.0", "", triggers)


def reason_and_code(found: WebhookTrigger | Rejected) -> tuple[str, str]:
    assert isinstance(found, Rejected), found
    return found.reason, found.code


NO_CREDENTIAL = ("credential_missing", "UZ-WH-020")


def test_a_declared_source_is_its_trigger() -> None:
    assert resolve_segment(agent(DOORBELL, GITHUB), HASHES, "github") is GITHUB


def test_the_bare_address_is_the_first_webhook_trigger() -> None:
    assert resolve_segment(agent(CronTrigger("* * * * *"), GITHUB, SVIX), {}, None) is GITHUB


def test_the_secret_in_the_address_opens_its_trigger_only() -> None:
    manifest = agent(GITHUB, DOORBELL, WebhookTrigger("gate"))
    hashes = {**HASHES, "gate": hash_url_secret(OTHER_SECRET)}
    assert resolve_segment(manifest, hashes, SECRET) is DOORBELL

    found = resolve_segment(manifest, hashes, OTHER_SECRET)
    assert isinstance(found, WebhookTrigger)
    assert found.source == "gate"


def test_a_trigger_without_a_signature_is_not_reached_without_its_secret() -> None:
    manifest = agent(DOORBELL)

    assert reason_and_code(resolve_segment(manifest, HASHES, "doorbell")) == NO_CREDENTIAL
    assert reason_and_code(resolve_segment(manifest, HASHES, None)) == NO_CREDENTIAL


@pytest.mark.parametrize(
    ("segment", "expected"),
    [
        (OTHER_SECRET, ("signature_mismatch", "UZ-WH-010")),
        (SECRET[:-1], ("signature_malformed", "UZ-WH-010")),
        (SECRET + "a", ("signature_malformed", "UZ-WH-010")),
        (SECRET + "\n", ("signature_malformed", "UZ-WH-010")),
        ("zwh_\ud800", ("signature_malformed", "UZ-WH-010")),
        (HASHES["doorbell"], NO_CREDENTIAL),
        ("unknown", NO_CREDENTIAL),
        ("approval", NO_CREDENTIAL),
        ("grant-approval", NO_CREDENTIAL),
        ("svix", NO_CREDENTIAL),
        ("", NO_CREDENTIAL),
    ],
)
def test_any_other_address_opens_nothing(segment: str, expected: tuple[str, str]) -> None:
    assert reason_and_code(resolve_segment(agent(DOORBELL), HASHES, segment)) == expected


def test_a_secret_that_equals_a_source_never_matches() -> None:
    named_like_it = WebhookTrigger(SECRET, signature=Signature("hook", "x-signature"))
    assert resolve_segment(agent(DOORBELL, named_like_it), HASHES, SECRET) is named_like_it


def test_the_secret_of_a_trigger_that_signs_by_now_opens_nothing() -> None:
    signing = WebhookTrigger("doorbell", signature=Signature("hook", "x-signature"))
    found = resolve_segment(agent(signing), HASHES, SECRET)

    assert reason_and_code(found) == ("signature_mismatch", "UZ-WH-010")


def test_a_reserved_segment_is_never_a_secret() -> None:
    for segment in RESERVED_SEGMENTS:
        hashes = {"doorbell": hash_url_secret(segment)}
        assert reason_and_code(resolve_segment(agent(DOORBELL), hashes, segment)) == NO_CREDENTIAL


def test_the_multi_signature_route_is_for_the_sources_that_use_it() -> None:
    for headers in ({"svix-signature": "v1,x"}, {"webhook-signature": "v1,x"}, {}):
        assert resolve_multisig(agent(GITHUB, SVIX), headers) is SVIX
        assert resolve_multisig(agent(GITHUB, STANDARD), headers) is STANDARD
        assert reason_and_code(resolve_multisig(agent(GITHUB), headers)) == NO_CREDENTIAL


def test_of_both_multi_signature_sources_the_headers_tell_which_is_meant() -> None:
    for manifest in (agent(SVIX, STANDARD), agent(STANDARD, SVIX)):
        assert resolve_multisig(manifest, {"svix-signature": "v1,x"}) is SVIX
        assert resolve_multisig(manifest, {"webhook-signature": "v1,x"}) is STANDARD
        both = {"svix-signature": "v1,x", "webhook-signature": "v1,x"}
        assert resolve_multisig(manifest, both) is SVIX
        assert resolve_multisig(manifest, {}) is STANDARD


def test_an_agent_without_webhooks_has_no_address() -> None:
    manifest = agent(CronTrigger("* * * * *"))
    for segment in (None, "github", SECRET):
        assert isinstance(resolve_segment(manifest, HASHES, segment), Rejected)


def test_the_sources_that_files_may_name_are_those_that_are_known_here() -> None:
    assert frozenset(NATIVE) == NATIVE_SOURCES
    assert MULTISIG_SOURCES < NATIVE_SOURCES
    assert RESERVED_SOURCES < RESERVED_SEGMENTS
    assert source_of("anything else") not in NATIVE.values()
