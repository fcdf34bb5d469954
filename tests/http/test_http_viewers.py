"""A viewer sees what there is, changes nothing, and is not shown what runs have seen in full."""

from sexton_http.gateway.operations import Auth
from sexton_http.routes.table import OPERATIONS
from sexton_storage.records.users import Role
from tests.worlds.http import HttpWorld

THEIR_OWN = {
    "abort_auth_sessions",
    "approve_auth_session",
    "complete_auth_session",
    "create_sign_in",
    "end_session",
    "end_sessions",
    "end_sign_in",
    "serve_assistant",
}
"""What a viewer may change: where they are signed in, themselves. An assistant may do what they may."""
NOT_SHOWN = {
    "get_erasure",
    "list_erasures",
    "export_audit",
    "list_audit",
    "list_workspace_audit",
    "get_workspace_transcript",
    "get_zombie_transcript",
    "list_memories",
    "list_members",
    "get_applied",
    "get_platform_key",
    "list_platform_keys",
    "install_chat",
    "read_artefact",
    "read_delivery_body",
}
"""What is looked at from a higher role on."""


def test_a_viewer_changes_nothing_but_their_own_sign_ins() -> None:
    members = [one for one in OPERATIONS if one.auth is Auth.MEMBER]
    changed = {one.name for one in members if one.role is Role.VIEWER and one.method != "GET"}
    hidden = {one.name for one in members if one.role is not Role.VIEWER and one.method == "GET"}

    assert changed == THEIR_OWN
    assert hidden == NOT_SHOWN


async def test_a_viewer_looks_and_is_refused_where_something_changes(world: HttpWorld) -> None:
    agent = await world.install()
    viewer = world.user_token(Role.VIEWER)
    one = f"{world.ws}/zombies/{agent['zombie_id']}"

    shown = [await world.get(path, viewer) for path in (one, f"{world.ws}/events", "/v1/api-keys")]
    steered = await world.post(f"{one}/messages", {"message": "hello"}, viewer)
    remembered = await world.get(f"{one}/memories", viewer)
    above = await world.post("/v1/api-keys", {"key_name": "k", "role": "viewer"}, viewer)
    refused = {(one.status_code, one.json()["error_code"]) for one in (steered, remembered, above)}

    assert [answer.status_code for answer in shown] == [200, 200, 200]
    assert refused == {(403, "UZ-AUTH-009")}
    assert steered.json()["detail"] == "this needs the role user, the caller is viewer"


async def test_whoever_is_invited_as_a_viewer_gets_keys_and_tokens_of_one(world: HttpWorld) -> None:
    admin = world.admin_token()
    invited = await world.post("/v1/members", {"name": "Vic", "role": "viewer"}, admin)
    key = (await world.post("/v1/api-keys", {"key_name": "looks", "role": "viewer"}, admin)).json()["key"]
    who = (await world.get("/v1/whoami", key)).json()

    assert (invited.status_code, invited.json()["member"]["role"]) == (201, "viewer")
    assert who["role"] == "viewer"
    assert (await world.post("/v1/workspaces", {"name": "mine"}, key)).status_code == 403
