"""What is asked of a member does what docs/reference/states.md says, cell by cell."""

from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace

from sexton_storage.decisions.members import change, is_platform_admin
from sexton_storage.records.members import MemberChange, MemberRefusal
from sexton_storage.records.users import MemberStatus, Rank, Role, User
from tests.worlds.states_page import cells

NOW = 7
ADMIN, PLATFORM = Rank(Role.ADMIN), Rank(Role.ADMIN, platform_admin=True)
ANN = User(UUID(int=1), UUID(int=2), "ann", Role.OPERATOR, platform_admin=False, created_at=0)
ASKED: dict[str, dict[str, Any]] = {
    "suspend": {"status": MemberStatus.SUSPENDED},
    "resume": {"status": MemberStatus.ACTIVE},
    "remove": {"status": MemberStatus.REMOVED},
    "another role": {"role": Role.USER},
    "invite": {"invites": True},
}
REFUSED = {MemberRefusal.NOT_NOW: "`UZ-REQ-009`", MemberRefusal.LAST_ADMIN: "`UZ-MEMBER-002`"}


def tried(member: User, *, admins: int = 2, rank: Rank = PLATFORM, **what: Any) -> User | MemberRefusal:
    asked = MemberChange("user:bo", rank, **what)
    return change(member, asked, NOW, tenant_admins=admins, platform_admins=admins)


def told(before: User, after: User | MemberRefusal) -> str:
    if isinstance(after, MemberRefusal):
        return REFUSED[after]
    if after == before:
        return "nothing"
    assert (after.changed_at, after.changed_by) == (NOW, "user:bo")
    return str(after.status)


@pytest.mark.parametrize(("asked", "status", "cell"), cells("Member"))
def test_a_member_does_what_the_table_says(asked: str, status: str, cell: str) -> None:
    before = replace(ANN, status=MemberStatus(status))
    assert told(before, tried(before, **ASKED[asked])) == cell


@pytest.mark.parametrize("asked", ["suspend", "remove", "another role"])
@pytest.mark.parametrize("platform", [False, True])
def test_the_last_admin_stays(asked: str, *, platform: bool) -> None:
    role = Role.USER if platform else Role.ADMIN
    last = replace(ANN, role=role, platform_admin=platform)
    if platform and asked == "another role":
        asked = "suspend"  # What a platform admin is beside that, a role does not say.

    assert tried(last, admins=1, **ASKED[asked]) is MemberRefusal.LAST_ADMIN
    assert isinstance(tried(last, admins=2, **ASKED[asked]), User)


def test_an_issuers_word_is_no_admin_who_could_be_left() -> None:
    elsewhere = replace(ANN, role=Role.ADMIN, issuer="https://ci.example.com")

    assert isinstance(tried(elsewhere, admins=1, **ASKED["remove"]), User)
    assert tried(elsewhere, **ASKED["another role"]) is MemberRefusal.ELSEWHERE


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("rank", [Rank(role, platform_admin=p) for role in Role for p in (False, True)])
def test_nobody_changes_whoever_is_above_him(asked: str, rank: Rank) -> None:
    for role in Role:
        for platform in (False, True):
            member = replace(ANN, role=role, platform_admin=platform)
            above = tried(member, rank=rank, **ASKED[asked]) is MemberRefusal.ABOVE
            wanted = Rank(ASKED[asked].get("role", Role.VIEWER), platform_admin=False)
            assert above is not (rank.covers(member.rank) and rank.covers(wanted))


def test_nobody_grants_a_role_above_his_own() -> None:
    user = replace(ANN, role=Role.USER)

    assert tried(user, rank=Rank(Role.OPERATOR), role=Role.ADMIN) is MemberRefusal.ABOVE
    assert isinstance(tried(user, rank=ADMIN, role=Role.ADMIN), User)


def test_one_who_comes_from_elsewhere_is_no_platform_admin_here() -> None:
    admin = replace(ANN, platform_admin=True)

    assert is_platform_admin(admin)
    assert not is_platform_admin(replace(admin, issuer="https://ci.example.com"))


def test_the_last_admin_may_change_what_does_not_make_them_one() -> None:
    last = replace(ANN, platform_admin=True)
    after = tried(last, admins=1, role=Role.USER)

    assert isinstance(after, User)
    assert (after.role, after.platform_admin) == (Role.USER, True)


def test_one_who_is_removed_gets_no_other_role_by_that() -> None:
    removed = replace(ANN, status=MemberStatus.REMOVED)

    assert tried(removed, status=MemberStatus.REMOVED) == removed
    assert tried(removed, status=MemberStatus.REMOVED, role=Role.USER) is MemberRefusal.NOT_NOW
