"""The pages of members and grants, and a key's last day: what they do, offer, refuse and show."""

import html
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from sexton_http.identity.principals import is_enough
from sexton_http.routes import grant_pages
from sexton_storage.postgres import PostgresStorage
from sexton_storage.records.users import Role, User
from tests.http.test_http_lending import as_person, install
from tests.worlds.browser import Visitor, text_of, visiting
from tests.worlds.http import HttpWorld, open_http_world_on

UNKNOWN = "019363b0-0000-7000-8000-00000000ffff"
LINK = re.compile(r"readonly autofocus[^>]*>([^<]+)</textarea>")
DAY_MS = 86_400_000


@pytest.fixture
async def visitor(world: HttpWorld) -> AsyncIterator[Visitor]:
    """A browser in which the admin is signed in."""
    async with visiting(world) as browser:
        yield await browser.sign_in()


@asynccontextmanager
async def on_postgres(storage: PostgresStorage) -> AsyncIterator[tuple[HttpWorld, Visitor]]:
    async with open_http_world_on(storage) as world, visiting(world) as browser:
        yield world, await browser.sign_in()


def become(world: HttpWorld, role: Role) -> None:
    users, user_id = world.memory.tables.users, world.installation.user_id
    users[user_id] = replace(users[user_id], role=role)


def member(world: HttpWorld, name: str) -> User:
    [found] = [user for user in world.memory.tables.users.values() if user.name == name]
    return found


async def listed(world: HttpWorld) -> dict[str, tuple[str, str, str]]:
    """Role, state and id of each member by name, as the interface tells them."""
    items = (await world.get("/v1/members", world.admin_token())).json()["items"]
    return {item["name"]: (item["role"], item["status"], item["id"]) for item in items}


async def invite(visitor: Visitor, name: str, **more: str) -> str:
    """The path of the link that the page shows."""
    answer = await visitor.post("/members", data={"name": name, **more})
    assert answer.status_code == 201, answer.text
    [url] = LINK.findall(answer.text)
    return html.unescape(url).removeprefix(visitor.world.base_url)


def card(page: str, title: str) -> str:
    """What stands in the item of a list whose heading begins so."""
    [found] = [part for part in page.split('<li class="card">')[1:] if part.startswith(f"<h3>{title}")]
    return found.partition("</li>")[0]


def forms(page: str) -> set[str]:
    return set(re.findall(r'method="post" action="([^"]+)"', page)) - {"/auth/sign-out"}


# --- members ----------------------------------------------------------------------------------------------


async def test_a_member_is_invited_changed_signed_out_suspended_and_removed_on_the_page(
    postgres_storage: PostgresStorage,
) -> None:
    async with on_postgres(postgres_storage) as (world, admin), visiting(world) as guest:
        link = await invite(admin, "Ada", role="operator")
        assert (await guest.post(link)).status_code == 303
        assert await guest.is_signed_in()
        assert link.rpartition("/")[2] not in (await admin.get("/members")).text, "the link is shown once"

        role, status, member_id = (await listed(world))["Ada"]
        one = f"/members/{member_id}"
        assert (role, status) == ("operator", "active")
        assert "in 1 place" in card((await admin.get("/members")).text, "Ada")

        changed = await admin.post(f"{one}/role", data={"role": "user"})
        assert (changed.status_code, changed.headers["location"]) == (303, "/members")
        assert (await listed(world))["Ada"][0] == "user"

        assert (await admin.post(f"{one}/sign-out")).status_code == 303
        assert not await guest.is_signed_in()

        assert (await admin.post(f"{one}/status", data={"status": "suspended"})).status_code == 303
        assert "Resume" in card((await admin.get("/members")).text, "Ada")
        assert (await admin.post(f"{one}/status", data={"status": "active"})).status_code == 303

        [again] = LINK.findall((await admin.post(f"{one}/invitation")).text)
        assert (await guest.post(again.removeprefix(world.base_url))).status_code == 303

        removed = await admin.post(f"{one}/removal", data={"to": "end"})
        assert removed.status_code == 200
        assert "Sign-ins ended 1" in text_of(removed.text)
        assert not await guest.is_signed_in()
        assert (await listed(world))["Ada"][1] == "removed"
        assert forms(card((await admin.get("/members")).text, "Ada")) == {f"{one}/invitation"}


async def test_keys_are_handed_over_to_the_member_who_is_chosen(world: HttpWorld, visitor: Visitor) -> None:
    for name in ("Ada", "Bob"):
        await invite(visitor, name, role="operator")
    ada, bob = member(world, "Ada"), member(world, "Bob")
    page = card((await visitor.get("/members")).text, "Ada")
    removed = await visitor.post(f"/members/{ada.id}/removal", data={"to": str(bob.id)})
    back = await visitor.post(f"/members/{bob.id}/removal", data={"to": str(ada.id)})

    assert f'<option value="{bob.id}">give to Bob</option>' in page
    assert f'<option value="{ada.id}"' not in page, "not to herself"
    assert "give to local:admin" in page, "who has no name is called as a provider, or this server, knows him"
    assert removed.status_code == 200
    assert (back.status_code, "Choose an active member." in card(back.text, "Bob")) == (400, True)


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
async def test_only_an_admin_sees_and_changes_members(world: HttpWorld, visitor: Visitor, role: Role) -> None:
    await invite(visitor, "Ada")
    ada = member(world, "Ada")
    sent = {
        "/members": {"name": "Eve"},
        f"/members/{ada.id}/role": {"role": "admin"},
        f"/members/{ada.id}/status": {"status": "suspended"},
        f"/members/{ada.id}/sign-out": {},
        f"/members/{ada.id}/removal": {"to": "end"},
        f"/members/{ada.id}/invitation": {},
    }
    assert forms((await visitor.get("/members")).text) >= sent.keys() - {f"/members/{ada.id}/sign-out"}

    become(world, role)
    page = (await visitor.get("/members")).text
    answers = {path: await visitor.post(path, data=fields) for path, fields in sent.items()}
    foreign = [await visitor.post(path, "cross-site", data=fields) for path, fields in sent.items()]

    assert (forms(page), "Ada" in text_of(page)) == (set(), False)
    assert {answer.status_code for answer in answers.values()} == {403}
    assert all("UZ-AUTH-009" in answer.text for answer in answers.values())
    assert {answer.status_code for answer in foreign} == {403}
    assert member(world, "Ada") == ada


async def test_a_mistake_about_a_member_is_said_where_it_was_made(world: HttpWorld, visitor: Visitor) -> None:
    me = world.installation.user_id
    last = await visitor.post(f"/members/{me}/role", data={"role": "user"})
    gone = await visitor.post(f"/members/{UNKNOWN}/status", data={"status": "suspended"})
    nameless = await visitor.post("/members", data={"name": "", "role": "admin"})
    await invite(visitor, "<b>Ada</b>", subject="https://id.example.com#1")
    twice = await visitor.post("/members", data={"name": "B", "subject": "https://id.example.com#1"})

    assert (last.status_code, "UZ-MEMBER-002" in last.text) == (409, True)
    assert f'id="member-{me}-error"' in last.text
    assert (gone.status_code, "UZ-MEMBER-001" in gone.text) == (404, True)
    assert (nameless.status_code, 'id="name-error"' in nameless.text) == (400, True)
    assert '<option value="admin" selected>' in nameless.text, "what was chosen is kept"
    assert (twice.status_code, 'id="subject-error"' in twice.text) == (409, True)
    assert "<b>" not in twice.text


# --- grants -----------------------------------------------------------------------------------------------


async def test_what_an_agent_asks_for_is_approved_denied_and_revoked_on_the_page(
    postgres_storage: PostgresStorage,
) -> None:
    async with on_postgres(postgres_storage) as (world, visitor):
        await world.post(f"{world.ws}/credentials", {"name": "hub", "data": {"token": "t"}})
        config = "credentials: [hub]\nnetwork: {allow: [api.example.com]}\ntools: [http_request]"
        agent = (await install(world, "borrower", config, as_person(world, "u1")))["zombie_id"]
        asked = {"service": "slack", "reason": "to tell <people>"}
        of_agent = f"{world.ws}/zombies/{agent}"
        grant = (await world.post(f"{of_agent}/integration-requests", asked)).json()["grant_id"]
        base = f"/grants/{world.installation.workspace_id}"
        hub, slack = f"{base}/credentials/{agent}/hub", f"{base}/services/{agent}/{grant}"

        page = (await visitor.get("/grants")).text
        assert "Waiting: 2" in text_of(page)
        assert "api.example.com" in card(page, "hub for borrower")
        assert "to tell &lt;people&gt;" in card(page, "slack for borrower")
        assert forms(page) == {hub, slack}

        for path in (hub, slack):
            answer = await visitor.post(path, data={"status": "approved"})
            back = f"/grants?workspace_id={world.installation.workspace_id}"
            assert (answer.status_code, answer.headers["location"]) == (303, back)

        page = (await visitor.get("/grants")).text
        assert "Waiting: 0" in text_of(page)
        assert "State approved" in text_of(card(page, "hub"))

        items = (await world.get(f"{world.ws}/credential-grants")).json()["items"]
        assert [(item["credential"], item["status"]) for item in items] == [("hub", "approved")]

        for path in (hub, slack):
            assert (await visitor.post(path, data={"status": "revoked"})).status_code == 303

        twice = await visitor.post(slack, data={"status": "revoked"})
        assert (twice.status_code, 'role="alert"' in twice.text) == (409, True)
        assert forms((await visitor.get("/grants")).text) == {hub}, "only a credential is granted unasked"


@pytest.mark.parametrize("role", Role)
async def test_grants_are_decided_by_operators_and_seen_by_all(
    world: HttpWorld, visitor: Visitor, role: Role
) -> None:
    await world.post(f"{world.ws}/credentials", {"name": "hub", "data": {"token": "t"}})
    agent = (await install(world, "borrower", "credentials: [hub]", as_person(world, "u1")))["zombie_id"]
    path = f"/grants/{world.installation.workspace_id}/credentials/{agent}/hub"
    become(world, role)
    page = await visitor.get("/grants")
    foreign = await visitor.post(path, "cross-site", data={"status": "approved"})
    answer = await visitor.post(path, data={"status": "approved"})
    operates = is_enough(role, Role.OPERATOR)

    assert "hub for borrower" in page.text
    assert forms(page.text) == ({path} if operates else set())
    assert foreign.status_code == 403
    assert answer.status_code == (303 if operates else 403)


async def test_whatever_waits_is_reached_from_page_to_page(
    world: HttpWorld, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grant_pages, "WAITING", 2)
    await world.post(f"{world.ws}/credentials", {"name": "hub", "data": {"token": "t"}})
    base, waiting = f"/grants/{world.installation.workspace_id}", set()
    for number in range(5):
        made = await install(world, f"borrower-{number}", "credentials: [hub]", as_person(world, "u1"))
        asked = {"service": "slack", "reason": "to tell"}
        of_agent = f"{world.ws}/zombies/{made['zombie_id']}"
        grant = (await world.post(f"{of_agent}/integration-requests", asked)).json()["grant_id"]
        waiting |= {
            f"{base}/credentials/{made['zombie_id']}/hub",
            f"{base}/services/{made['zombie_id']}/{grant}",
        }

    seen, todo = dict[str, set[str]](), ["/grants"]
    while todo:
        path = todo.pop()
        page = (await visitor.get(path)).text
        seen[path] = forms(page)
        links = {html.unescape(link) for link in re.findall(r'href="(/grants\?[^"]*waiting_[^"]+)"', page)}
        todo += sorted(links - {*seen, *todo})

    assert set().union(*seen.values()) == waiting
    assert len(seen) == 1 + 2 + 2
    assert "Waiting: 4 on this page" in text_of((await visitor.get("/grants")).text)


async def test_a_workspace_that_is_not_there_has_no_grants(world: HttpWorld, visitor: Visitor) -> None:
    page = await visitor.get(f"/grants?workspace_id={UNKNOWN}")
    sent = await visitor.post(f"/grants/{UNKNOWN}/credentials/{UNKNOWN}/x", data={"status": "approved"})
    stranger = await visitor.post(
        f"/grants/{world.installation.workspace_id}/credentials/{UNKNOWN}/x", data={"status": "approved"}
    )

    assert (page.status_code, "no such workspace" in page.text) == (404, True)
    assert (sent.status_code, sent.json()["error_code"]) == (404, "UZ-WORKSPACE-001")
    assert (stranger.status_code, "UZ-ZMB-009" in stranger.text) == (404, True)


async def test_who_is_not_signed_in_sees_neither(world: HttpWorld) -> None:
    async with visiting(world) as stranger:
        pages = [await stranger.get(path) for path in ("/members", "/grants")]

    assert ["Sign in" in page.text and "admin" not in page.text for page in pages] == [True, True]


# --- the last day of a key --------------------------------------------------------------------------------


async def test_a_key_of_the_page_may_have_a_last_day(world: HttpWorld, visitor: Visitor) -> None:
    now = world.actors_world.now_ms()
    [today, far] = [f"{day_of(now + days * DAY_MS)}" for days in (1, 90)]
    made = [
        await visitor.post("/keys", data={"key_name": name, "expires_at": day})
        for name, day in (("soon", today), ("later", far), ("always", ""))
    ]
    past = await visitor.post("/keys", data={"key_name": "past", "expires_at": "2001-01-01"})
    odd = await visitor.post("/keys", data={"key_name": "odd", "expires_at": "soon"})
    page = (await visitor.get("/keys")).text
    ends = {key.key_name: key.expires_at for key in world.memory.tables.api_keys.values()}

    assert [answer.status_code for answer in made] == [201] * 3
    assert ends["soon"] == (now // DAY_MS + 2) * DAY_MS, "when that day is over"
    assert ends["always"] is None
    assert "make another, and revoke this one" in card(page, "soon")
    assert "make another" not in card(page, "later")
    assert "when it is revoked" in card(page, "always")
    assert [(one.status_code, 'id="expires_at-error"' in one.text) for one in (past, odd)] == [
        (400, True)
    ] * 2
    assert not {"past", "odd"} & ends.keys()


def day_of(ms: int) -> str:
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d}"
