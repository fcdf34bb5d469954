"""``member``, ``session`` and keys that end by themselves, against a real server."""

import httpx2
import pytest

from tests.worlds.server_process import ServerProcess
from tests.worlds.shell import Shell, said


@pytest.fixture
def shell(server: ServerProcess, shell: Shell) -> Shell:
    """Signed in with the first key, by the environment."""
    shell.environment["SEXTON_TOKEN"] = server.ready["api_key"]
    return shell


def test_a_member_lives_from_the_invitation_to_the_removal_and_back(shell: Shell) -> None:
    link = shell("member", "invite", "Ann Lee", "--role", "operator")
    assert link.returncode == 0, link.stderr

    with httpx2.Client(headers={"sec-fetch-site": "same-origin"}) as browser:
        assert browser.post(link.stdout.strip()).status_code == 303

    (ann,) = [row for row in shell.json("member", "list")["items"] if row["name"] == "Ann Lee"]
    assert (ann["role"], ann["status"]) == ("operator", "active")
    assert "Ann Lee" in shell("member", "list").stdout
    assert ann["id"] in shell("session", "list", "--all").stdout
    assert shell("session", "end", "--member", ann["id"]).stdout == "Ended 1 session.\n"
    assert shell("session", "end").returncode == 2

    assert shell("member", "role", "Ann Lee", "user").stdout == "Ann Lee is user now.\n"
    assert shell("member", "suspend", ann["id"]).stdout == f"Suspended {ann['id']}.\n"
    assert shell("member", "resume", ann["subject"]).returncode == 0

    removed = shell("member", "remove", "Ann Lee")
    assert removed.stdout == "Removed Ann Lee: 0 sign-ins ended, 0 keys ended.\n"

    refused = shell("member", "resume", "Ann Lee")
    assert (refused.returncode, "UZ-REQ-009" in said(refused)) == (1, True)
    assert shell.json("member", "invite", "Ann Lee")["member"]["status"] == "active"


def test_a_key_that_ends_by_itself_says_when(shell: Shell) -> None:
    made = shell.json("keys", "create", "for-a-week", "--days", "7")
    (item,) = [key for key in shell.json("keys", "list")["items"] if key["key_name"] == "for-a-week"]

    assert (item["expires_at"], item["expires_soon"]) == (made["expires_at"], True)
    assert "active, ends" in shell("keys", "list").stdout
