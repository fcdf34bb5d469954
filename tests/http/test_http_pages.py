"""The pages of keys and workspaces: who may do what, what mistakes are told, and that a key is shown once."""

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import structlog
from msgspec.structs import replace

from sexton_actors.terms import RECORD_FRESH_MS
from sexton_http.identity.principals import is_enough
from sexton_http.pages.form_actions import MAX_FORM_BYTES
from sexton_storage.errors import StorageUnavailable
from sexton_storage.records.api_keys import ApiKey
from sexton_storage.records.tenants import PlanTier, Tenant
from sexton_storage.records.users import Role, User
from sexton_storage.records.workspaces import Workspace
from tests.worlds.browser import Visitor, text_of, visiting
from tests.worlds.http import HttpWorld

UNKNOWN = "019363b0-0000-7000-8000-00000000ffff"
KEY = re.compile(r"zmb_t_[0-9a-f]{64}")


@pytest.fixture
async def visitor(world: HttpWorld) -> AsyncIterator[Visitor]:
    """A browser in which the admin is signed in."""
    async with visiting(world) as browser:
        yield await browser.sign_in()


def become(world: HttpWorld, role: Role) -> None:
    """Give the one person another role; a browser is asked for it at every request."""
    users, user_id = world.memory.tables.users, world.installation.user_id
    users[user_id] = replace(users[user_id], role=role)


def keys(world: HttpWorld) -> dict[str, ApiKey]:
    return {key.key_name: key for key in world.memory.tables.api_keys.values()}


def workspaces(world: HttpWorld) -> dict[str, Workspace]:
    return {row.name: row for row in world.memory.tables.workspaces.values()}


async def make(visitor: Visitor, name: str, **more: str) -> str:
    """The new key, as the page shows it."""
    answer = await visitor.post("/keys", data={"key_name": name, **more})
    assert answer.status_code == 201, answer.text
    [key] = set(KEY.findall(answer.text))
    return str(key)


def forms(world: HttpWorld) -> dict[str, dict[str, str]]:
    """Every form of both pages: where it goes, and what it sends. One key is active, and one revoked."""
    known = keys(world)
    workspace = f"/workspaces/{world.installation.workspace_id}"
    return {
        "/keys": {"key_name": "third"},
        f"/keys/{known['active'].id}/revoke": {},
        f"/keys/{known['revoked'].id}/delete": {},
        "/workspaces": {"name": "second"},
        workspace: {"name": "renamed", "paused": "true"},
    }


async def prepare(world: HttpWorld, visitor: Visitor) -> dict[str, dict[str, str]]:
    for name in ("active", "revoked"):
        await make(visitor, name)
    await visitor.post(f"/keys/{keys(world)['revoked'].id}/revoke")
    return forms(world)


def state(world: HttpWorld) -> tuple[Any, ...]:
    tables = world.memory.tables
    # That a key was used is no change that anybody asked for.
    known = sorted(
        (key.key_name, key.role, key.revoked_at is None, key.description) for key in tables.api_keys.values()
    )
    return known, sorted((row.name, row.paused) for row in tables.workspaces.values())


# --- who may ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", Role)
async def test_each_role_does_what_its_key_could(world: HttpWorld, visitor: Visitor, role: Role) -> None:
    sent = await prepare(world, visitor)
    become(world, role)
    for path, fields in sent.items():
        before = state(world)
        answer = await visitor.post(path, data=fields)
        needed = Role.USER if path == "/workspaces" else Role.OPERATOR
        if not is_enough(role, needed):
            assert answer.status_code == 403, path
            said = f"This needs the role {needed.value}, the caller is {role.value}."
            assert said in text_of(answer.text)
            assert f"UZ-AUTH-009, request {answer.headers['x-request-id']}" in answer.text
            assert state(world) == before, path
        else:
            assert answer.status_code == (201 if path == "/keys" else 303), path
            assert state(world) != before, path


@pytest.mark.parametrize("role", Role)
async def test_only_what_may_be_done_is_offered(world: HttpWorld, visitor: Visitor, role: Role) -> None:
    sent = await prepare(world, visitor)
    become(world, role)
    offered = set()
    for page in ("/keys", "/workspaces"):
        offered |= set(re.findall(r'method="post" action="([^"]+)"', (await visitor.get(page)).text))
    offered.discard("/auth/sign-out")
    if role in {Role.VIEWER, Role.USER}:
        assert offered == ({"/workspaces"} if role is Role.USER else set())
        assert f"needs the role operator; yours is {role.value}" in text_of((await visitor.get("/keys")).text)
    else:
        assert set(sent) <= offered
        page = (await visitor.get("/keys")).text
        assert ('<option value="admin"' in page) == (role is Role.ADMIN), "no key is above its maker"


async def test_a_key_above_its_maker_is_refused_on_the_page_too(world: HttpWorld, visitor: Visitor) -> None:
    become(world, Role.OPERATOR)
    answer = await visitor.post("/keys", data={"key_name": "high", "role": "admin"})

    assert (answer.status_code, "UZ-AUTH-009" in answer.text) == (403, True)
    assert "high" not in keys(world)


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none"])
async def test_another_site_can_send_no_form(world: HttpWorld, visitor: Visitor, site: str) -> None:
    sent = await prepare(world, visitor)
    before = state(world)
    for path, fields in sent.items():
        answer = await visitor.post(path, site, data=fields)
        assert (answer.status_code, answer.json()["error_code"]) == (403, "UZ-AUTH-001"), path

    assert state(world) == before


async def test_who_is_not_signed_in_sees_and_does_nothing(world: HttpWorld, visitor: Visitor) -> None:
    sent = await prepare(world, visitor)
    before = state(world)
    async with visiting(world) as stranger:
        for page in ("/keys", "/workspaces"):
            answer = await stranger.get(page)
            assert (answer.status_code, "prints a sign-in link" in answer.text) == (200, True)
            assert "active" not in text_of(answer.text)
        for path, fields in sent.items():
            for headers in ({}, {"authorization": f"Bearer {world.api_key}"}):
                answer = await stranger.post(path, data=fields, headers=headers)
                assert (answer.status_code, answer.json()["error_code"]) == (401, "UZ-AUTH-002"), path

    assert state(world) == before


async def test_what_another_tenant_has_is_not_there(world: HttpWorld, visitor: Visitor) -> None:
    sent = await prepare(world, visitor)
    now, new_id = world.actors_world.now_ms(), world.actors_world.new_id
    tenant = Tenant(new_id(), "other", PlanTier.FREE, 0, None, now, now)
    workspace = Workspace(new_id(), tenant.id, "theirs", paused=False, created_at=now)
    user = User(new_id(), tenant.id, "other", Role.ADMIN, platform_admin=False, created_at=now)
    await world.storage.tenants.create(tenant, workspace, user)
    sessions = world.memory.tables.browser_sessions
    for key, session in sessions.items():
        sessions[key] = replace(session, user_id=user.id)
    before = state(world)
    for page in ("/keys", "/workspaces"):
        shown = (await visitor.get(page)).text
        assert "revoked" not in shown
        assert str(world.installation.workspace_id) not in shown
    for path, fields in sent.items():
        if path.startswith("/keys/"):
            answer = await visitor.post(path, data=fields)
            assert (answer.status_code, "UZ-APIKEY-003" in answer.text) == (404, True)
        elif path.startswith("/workspaces/"):
            answer = await visitor.post(path, data=fields)
            assert (answer.status_code, answer.json()["error_code"]) == (404, "UZ-WORKSPACE-001")

    assert state(world) == before


# --- keys -------------------------------------------------------------------------------------------------


async def test_a_key_is_shown_once_works_and_is_nowhere_else(
    world: HttpWorld, visitor: Visitor, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with structlog.testing.capture_logs() as logs:
        answer = await visitor.post("/keys", data={"key_name": "deploy", "description": "CI & <co>"})
        assert (answer.status_code, answer.headers["cache-control"]) == (201, "no-store")
        assert answer.headers["referrer-policy"] == "same-origin"

        [key] = set(KEY.findall(answer.text))
        assert answer.text.count(key) == 1
        assert (await world.get("/v1/api-keys", key)).status_code == 200

        later = [await visitor.get(page) for page in ("/", "/keys", "/workspaces")]
        later.append(await visitor.post("/keys", data={"key_name": "deploy"}))
        later.append(await visitor.post(f"/keys/{keys(world)['deploy'].id}/revoke"))
        later.append(await visitor.post(f"/keys/{keys(world)['deploy'].id}/delete"))
    for page in later:
        assert key not in page.text
        assert key not in str(page.headers)
    captured = capfd.readouterr()

    assert key not in repr(logs) + caplog.text + captured.out + captured.err
    assert key not in repr(world.memory.tables.api_keys)
    assert "CI &amp; &lt;co&gt;" in later[1].text
    assert "CI & <co>" not in later[1].text


async def test_a_form_sent_again_makes_no_second_key(world: HttpWorld, visitor: Visitor) -> None:
    await make(visitor, "deploy", description="first", role="user")
    made = keys(world)["deploy"]
    assert (made.role, made.description) == (Role.USER, "first")

    again = await visitor.post("/keys", data={"key_name": "deploy", "description": "first", "role": "user"})
    assert again.status_code == 409
    assert not KEY.search(again.text)
    assert "There is a key named 'deploy'." in text_of(again.text).replace("&#x27;", "'")
    assert f"UZ-APIKEY-005, request {again.headers['x-request-id']}" in again.text
    assert keys(world)["deploy"] == made
    # What was written is still in the form, and the field at fault points to what is wrong with it.
    assert 'value="first"' in again.text
    assert '<option value="user" selected>' in again.text
    assert re.search(
        r'id="key_name"[^>]*aria-describedby="key_name-rule key_name-error"[^>]*aria-invalid="true"',
        again.text,
    )


async def test_a_key_is_deleted_only_when_it_was_revoked(world: HttpWorld, visitor: Visitor) -> None:
    key = await make(visitor, "deploy")
    at = f"/keys/{keys(world)['deploy'].id}"
    assert f'action="{at}/delete"' not in (await visitor.get("/keys")).text

    early = await visitor.post(f"{at}/delete")
    assert (early.status_code, "UZ-APIKEY-008" in early.text) == (409, True)

    revoked = await visitor.post(f"{at}/revoke")
    assert (revoked.status_code, revoked.headers["location"]) == (303, "/keys")
    assert (await world.get("/v1/api-keys", key)).json()["error_code"] == "UZ-APIKEY-004"
    assert f'action="{at}/revoke"' not in (await visitor.get("/keys")).text

    twice = await visitor.post(f"{at}/revoke")
    assert (twice.status_code, "UZ-APIKEY-006" in twice.text) == (409, True)
    assert (await visitor.post(f"{at}/delete")).status_code == 303
    assert "deploy" not in keys(world)

    gone = await visitor.post(f"{at}/delete")
    assert (gone.status_code, "UZ-APIKEY-003" in gone.text) == (404, True)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"key_name": ""}, "Use 1 to 64 letters"),
        ({}, None),
        ({"key_name": "two words"}, "Use 1 to 64 letters"),
        ({"key_name": "<b>"}, "Use 1 to 64 letters"),
        ({"key_name": "k" * 65}, "Use 1 to 64 letters"),
        ({"key_name": "k\0"}, "Use 1 to 64 letters"),
        ({"key_name": "k", "description": "d" * 257}, "Use at most 256 characters"),
    ],
)
async def test_a_mistake_is_said_beside_its_field(
    world: HttpWorld, visitor: Visitor, fields: dict[str, str], said: str | None
) -> None:
    before = state(world)
    answer = await visitor.post("/keys", data={"role": "user", **fields})
    assert answer.status_code == 400
    assert answer.text.count('role="alert"') == 1

    alert = answer.text.partition('role="alert"')[2].partition("</p>")[0]
    assert (said or "Use 1 to 64 letters") in alert
    assert f"UZ-REQ-001, request {answer.headers['x-request-id']}" in alert
    assert "<b>" not in answer.text
    assert state(world) == before


async def test_a_list_of_many_keys_goes_over_pages(world: HttpWorld, visitor: Visitor) -> None:
    for number in range(26):
        assert (await world.post("/v1/api-keys", {"key_name": f"k{number:02}"})).status_code == 201
    first, second = (await visitor.get("/keys")).text, (await visitor.get("/keys?page=2")).text

    assert ("Older keys" in first, "Newer keys" in first) == (True, False)
    assert ("Older keys" in second, "Newer keys" in second) == (False, True)
    assert "k25" in first
    assert "k00" in second
    assert (await visitor.get("/keys?page=0")).json()["error_code"] == "UZ-REQ-001"


# --- what no page of ours sends ---------------------------------------------------------------------------


async def test_what_is_no_form_of_ours_is_a_problem(world: HttpWorld, visitor: Visitor) -> None:
    before = state(world)
    kind = {"content-type": "application/x-www-form-urlencoded"}
    for path in ("/keys", "/workspaces", f"/workspaces/{world.installation.workspace_id}"):
        name = "key_name" if path == "/keys" else "name"
        for content in (f"{name}=a&{name}=b", f"{name}=%ff", f"{name}=é".encode(), "&".join(["a=1"] * 65)):
            answer = await visitor.post(path, content=content, headers=kind)
            assert (answer.status_code, answer.json()["error_code"]) == (400, "UZ-REQ-001"), (path, content)
        for headers in ({"content-type": "application/json"}, {"content-type": "text/plain"}, {}):
            answer = await visitor.post(path, content=f"{name}=a", headers=headers)
            assert (answer.status_code, answer.json()["error_code"]) == (415, "UZ-REQ-005"), path
        answer = await visitor.post(path, content="a" * (MAX_FORM_BYTES + 1), headers=kind)
        assert (answer.status_code, answer.json()["error_code"]) == (413, "UZ-REQ-002"), path
    answer = await visitor.post("/keys", data={"key_name": "k", "role": "king"})
    assert answer.json()["error_code"] == "UZ-REQ-001"

    for path in ("/keys/x/revoke", "/keys/x/delete", "/workspaces/x"):
        assert (await visitor.post(path, data={})).json()["error_code"] == "UZ-UUIDV7-009"
    assert state(world) == before


async def test_an_outage_is_no_mistake_of_the_person(
    world: HttpWorld, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: Any) -> None:
        raise StorageUnavailable("away")

    monkeypatch.setattr(type(world.storage.api_keys), "create", fail)
    answer = await visitor.post("/keys", data={"key_name": "k"})

    assert (answer.status_code, answer.json()["error_code"]) == (503, "UZ-INTERNAL-001")


# --- workspaces -------------------------------------------------------------------------------------------


async def test_a_workspace_is_made_renamed_paused_and_goes_on(world: HttpWorld, visitor: Visitor) -> None:
    made = await visitor.post("/workspaces", data={"name": "lab <1>"})
    assert (made.status_code, made.headers["location"]) == (303, "/workspaces")

    row = workspaces(world)["lab <1>"]
    at, shown = f"/workspaces/{row.id}", (await visitor.get("/workspaces")).text
    assert "lab &lt;1&gt;" in shown
    assert "lab <1>" not in shown
    assert (await world.get(f"/v1{at}")).json()["paused"] is False

    for fields in ({"paused": "true"}, {"name": "null"}, {"paused": "false"}):
        answer = await visitor.post(at, data=fields)
        assert (answer.status_code, answer.headers["location"]) == (303, "/workspaces")
        # On this node at once, whatever was remembered.
        now = (await world.get(f"/v1{at}")).json()
        assert now["paused"] is (fields != {"paused": "false"})
        assert now["name"] == ("lab <1>" if fields == {"paused": "true"} else "null")
        assert ("Resume" in (await visitor.get("/workspaces")).text) is now["paused"]


async def test_a_workspace_that_the_page_pauses_takes_no_event_until_it_goes_on(
    world: HttpWorld, visitor: Visitor
) -> None:
    await world.keep_secret()
    zombie = await world.install()
    at, url = f"/workspaces/{world.installation.workspace_id}", zombie["webhook_urls"]["github"]
    for paused, status in (("false", 202), ("true", 402), ("false", 202)):
        assert (await visitor.post(at, data={"paused": paused})).status_code == 303
        world.pass_ms(RECORD_FRESH_MS)
        assert (await world.deliver(url)).status_code == status


@pytest.mark.parametrize("name", ["", "n" * 65, "default", "n\0"])
async def test_a_name_that_will_not_do_is_said_beside_its_field(
    world: HttpWorld, visitor: Visitor, name: str
) -> None:
    await visitor.post("/workspaces", data={"name": "lab"})
    lab, before = workspaces(world)["lab"].id, state(world)
    for path, element in (("/workspaces", "name"), (f"/workspaces/{lab}", f"name-{lab}")):
        answer = await visitor.post(path, data={"name": name})
        code = "UZ-WORKSPACE-004" if name == "default" else "UZ-REQ-001"
        assert answer.status_code == (409 if name == "default" else 400)
        assert f"{code}, request {answer.headers['x-request-id']}" in answer.text
        assert answer.text.count('role="alert"') == 1
        assert f'role="alert" id="{element}-error"' in answer.text
        assert ("<details open>" in answer.text) == (path != "/workspaces")

    assert state(world) == before


async def test_a_full_plan_is_said_above_the_form(world: HttpWorld, visitor: Visitor) -> None:
    world.set_plan(PlanTier.FREE)
    answers = [await visitor.post("/workspaces", data={"name": f"w{number}"}) for number in range(3)]

    assert [answer.status_code for answer in answers] == [303, 303, 402]
    assert "The free plan allows 3 workspaces." in answers[-1].text
    assert "UZ-WORKSPACE-003, request" in answers[-1].text


async def test_the_interface_changes_a_workspace_as_the_page_does(world: HttpWorld) -> None:
    zombie = await world.install()
    assert (await world.post("/v1/workspaces", {"name": "lab"})).status_code == 201

    taken = await world.call("PATCH", world.ws, json={"name": "lab"})
    assert (taken.status_code, taken.json()["error_code"]) == (409, "UZ-WORKSPACE-004")

    paused = await world.call("PATCH", world.ws, json={"paused": True})
    assert (paused.status_code, paused.json()["name"], paused.json()["paused"]) == (200, "default", True)

    steered = await world.post(f"{world.ws}/zombies/{zombie['zombie_id']}/messages", {"message": "go"})
    assert (steered.status_code, steered.json()["error_code"]) == (402, "UZ-WORKSPACE-002")

    renamed = await world.call("PATCH", world.ws, json={"name": "home"})
    assert (renamed.json()["name"], renamed.json()["paused"]) == ("home", True)

    same = await world.call("PATCH", world.ws, json={})
    assert (same.json()["name"], same.json()["paused"]) == ("home", True)


# --- every page -------------------------------------------------------------------------------------------


async def test_every_answer_keeps_strangers_out(world: HttpWorld, visitor: Visitor) -> None:
    sent = await prepare(world, visitor)
    pages = [await visitor.get(path) for path in ("/keys", "/workspaces")]
    pages.append(await visitor.post("/keys", data={"key_name": ""}))
    pages += [await visitor.post(path, data=fields) for path, fields in sent.items()]
    for page in pages:
        policy = page.headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "default-src 'none'" in policy
        assert page.headers["cache-control"] == "no-store"
        assert "<script" not in page.text.replace('<script src="/assets/', "")
        assert not re.search(r"\s(style|on\w+)=", page.text)
        assert "http://" not in page.text
        assert "https://" not in page.text
