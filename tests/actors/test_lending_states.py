"""What becomes of a grant of a credential is what docs/reference/states.md says, cell by cell."""

import pytest
from msgspec.structs import replace

from sexton_actors.loans import (
    CredentialGrant,
    Files,
    Reach,
    after_files,
    decide,
    grants_in,
    grants_of,
    kept_as,
    reach_of,
    withheld,
)
from sexton_actors.manifest.model import Manifest
from sexton_actors.manifest.parse import parse
from sexton_actors.refusal import Refusal
from sexton_storage.documents import Json
from sexton_storage.records.grants import GrantStatus
from tests.worlds.samples import skill_md, trigger_md
from tests.worlds.states_page import cells

NOW = 1_000_000
NAME = "hub"
WORDS = {"approve": GrantStatus.APPROVED, "deny": GrantStatus.DENIED, "revoke": GrantStatus.REVOKED}


def manifest(hosts: str = "a.example.com", tools: str = "http_request", more: str = "") -> Manifest:
    config = f"credentials: [{NAME}]\nnetwork: {{allow: [{hosts}]}}\ntools: [{tools}]\n{more}"
    parsed = parse(skill_md(), trigger_md(config=config))
    assert isinstance(parsed, Manifest), parsed
    return parsed


BEFORE = manifest()


def kept(state: str) -> Json:
    if state == "none":
        return {}
    status = GrantStatus(state)
    by = None if status is GrantStatus.PENDING else "user:2"
    at = None if status is GrantStatus.PENDING else NOW - 5
    return kept_as([CredentialGrant(NAME, status, reach_of(BEFORE), NOW - 10, "user:1", at, by)])


def outcome(asked: str, state: str) -> str:
    """In the words of the page."""
    before = kept(state)
    if asked == "use":
        return "waits" if withheld(before, BEFORE) else "lent"
    if "files" in asked:
        files = manifest("a.example.com, b.example.com") if asked.endswith("more") else BEFORE
        after = after_files(before, Files(files, "user:3", may_grant="operator" in asked), NOW)
        if after == before:
            return "nothing"
        return grants_in(after)[NAME].status.value
    [grant] = grants_of(before, BEFORE)
    done = decide(grant, WORDS[asked], reach_of(BEFORE), "user:3", NOW)
    if isinstance(done, Refusal):
        return f"`{done.code}`"
    return "nothing" if done == grant else done.status.value


@pytest.mark.parametrize(("asked", "state", "cell"), cells("Credential grant"))
def test_a_grant_of_a_credential_moves_as_the_page_says(asked: str, state: str, cell: str) -> None:
    assert outcome(asked, state) == cell


def test_the_page_has_every_state() -> None:
    assert {state for _, state, _ in cells("Credential grant")} == {
        "none",
        *(one.value for one in GrantStatus),
    }


@pytest.mark.parametrize(
    ("hosts", "tools", "waits"),
    [
        ("a.example.com", "http_request", False),
        ("a.example.com", "", False),
        ("b.example.com", "http_request", True),
        ("'*.example.com'", "http_request", True),
        ("a.example.com", "http_request, shell", True),
    ],
)
def test_other_hosts_or_tools_are_more_than_was_granted(hosts: str, tools: str, *, waits: bool) -> None:
    granted = kept("approved")
    files = manifest(hosts, tools)

    assert bool(withheld(granted, files)) is waits

    after = grants_in(after_files(granted, Files(files, "user:3", may_grant=False), NOW))[NAME]
    assert (after.status is GrantStatus.PENDING) is waits


def test_a_name_that_is_dropped_and_named_again_is_asked_for_again() -> None:
    without = replace(BEFORE, credentials=())
    dropped = after_files(kept("approved"), Files(without, "user:3", may_grant=False), NOW)

    assert dropped == {}

    again = after_files(dropped, Files(BEFORE, "user:3", may_grant=False), NOW)
    assert grants_in(again)[NAME].status is GrantStatus.PENDING


def test_approval_is_for_what_the_files_ask_now() -> None:
    wide = manifest("a.example.com, b.example.com")
    [grant] = grants_of(kept("approved"), wide)

    done = decide(grant, GrantStatus.APPROVED, reach_of(wide), "user:3", NOW)

    assert isinstance(done, CredentialGrant)
    assert done.reach == Reach(("a.example.com", "b.example.com"), ("http_request",))
    assert not withheld(kept_as([done]), wide)
