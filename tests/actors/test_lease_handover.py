"""What leaves the vault with a lease: what the manifest has by itself, and what people granted."""

from uuid import UUID

from sexton_actors.lease.handover.secrets import CredentialNames, credential_names, grant_statuses, within
from sexton_actors.manifest.model import Manifest
from sexton_storage.records.grants import Grant, GrantStatus
from sexton_storage.records.memories import Memory

AGENT = UUID(int=1)


def manifest(credentials: tuple[str, ...], integrations: tuple[str, ...]) -> Manifest:
    return Manifest("a", "d", "1.0.0", "", (), credentials=credentials, integrations=integrations)


def grant(service: str, status: GrantStatus) -> Grant:
    ids = (UUID(int=2), UUID(int=3), UUID(int=4), AGENT)
    return Grant(*ids, service, "", status, 1, 0, "user:1", 0)


def test_every_service_that_is_named_or_asked_for_has_its_standing() -> None:
    grants = [grant("github", GrantStatus.DENIED), grant("jira", GrantStatus.APPROVED)]
    assert grant_statuses(manifest((), ("slack", "github")), grants) == {
        "slack": "none",
        "github": "denied",
        "jira": "approved",
    }


def test_a_credential_of_a_service_is_lent_only_when_it_is_granted() -> None:
    agent = manifest(("own", "slack", "github"), ("slack", "github", "jira"))
    for status in ("none", "pending", "denied", "revoked"):
        assert credential_names(agent, dict.fromkeys(("slack", "github", "jira"), status)) == CredentialNames(
            ("own",), ()
        )
    services = {"slack": "approved", "github": "pending", "jira": "approved", "extra": "approved"}

    assert credential_names(agent, services) == CredentialNames(("own", "slack"), ("jira", "extra"))
    assert agent.ungated_credentials == ("own",)


def test_a_credential_without_a_service_of_its_name_needs_no_grant() -> None:
    assert credential_names(manifest(("a", "b", "a"), ()), {}) == CredentialNames(("a", "b"), ())


def test_what_is_remembered_is_cut_at_a_number_of_bytes() -> None:
    entries = [Memory(AGENT, key, "\u00e9" * 10, "core", 0) for key in "abc"]

    assert [entry.key for entry in within(entries, 63)] == ["a", "b", "c"]
    assert [entry.key for entry in within(entries, 62)] == ["a", "b"]
    assert within(entries, 20) == []
