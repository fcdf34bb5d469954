"""What an event's runs said and did, for programs and on pages: frames, transcripts, files and exports."""

import json
import re
from collections.abc import AsyncIterator

import pytest

from sexton_storage.records.users import Role
from tests.http.test_http_console_pages import home
from tests.http.test_http_files import keep
from tests.http.test_http_pages import become
from tests.http.test_http_transcripts import entry, write
from tests.worlds.browser import Visitor, text_of, visiting
from tests.worlds.http import HttpWorld, open_http_world
from tests.worlds.http_agents import UNKNOWN, report, run, steer

FILE = b"\x00\x01 not a page <script>"


@pytest.fixture
async def world() -> AsyncIterator[HttpWorld]:
    async with open_http_world() as opened:
        yield opened


@pytest.fixture
async def visitor(world: HttpWorld) -> AsyncIterator[Visitor]:
    async with visiting(world) as browser:
        yield await browser.sign_in()


async def test_the_frames_of_one_event_are_listed_in_order_page_by_page(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    event = lease["event"]["event_id"]
    other = await steer(world, zombie)
    await report(world, token, lease)
    path = f"{world.ws}/events/{event}/frames"

    whole = (await world.get(path)).json()
    first = (await world.get(path, params={"limit": "1"})).json()
    rest = (await world.get(path, params={"limit": "9", "cursor": first["next_cursor"]})).json()
    elsewhere = (await world.get(f"{world.ws}/events/{other}/frames")).json()
    unknown = await world.get(f"{world.ws}/events/{UNKNOWN}/frames")

    assert [one["kind"] for one in whole["items"]] == ["event_received", "event_leased", "event_complete"]
    assert whole["next_cursor"] is None
    assert [*first["items"], *rest["items"]] == whole["items"]
    assert [one["kind"] for one in elsewhere["items"]] == ["event_received"]
    assert (unknown.status_code, unknown.json()["error_code"]) == (404, "UZ-EVENT-001")


async def test_all_events_that_a_filter_picks_are_exported_whole_and_newest_first(
    world: HttpWorld, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sexton_http.routes.event_export.READ_EVENTS", 2)
    zombie = await world.install()
    words = ["one", "x" * 5_000, "three", "four", "five"]
    ids = [await steer(world, zombie, word) for word in words]
    path = f"{world.ws}/events/export"

    everything = await world.get(path)
    some = await world.get(path, params={"q": f"id:{ids[1]},{ids[2]}", "status": "received"})
    none = await world.get(path, params={"status": "running"})
    wrong = await world.get(path, params={"q": "status:"})
    by_page = await visitor.get(f"{path}?after=1h")
    lines = [json.loads(line) for line in everything.text.splitlines()]

    assert [line["event_id"] for line in lines] == ids[::-1]
    assert [line["request_json"]["message"] for line in lines] == words[::-1]
    assert not any(line["truncated"] for line in lines)
    assert [json.loads(line)["event_id"] for line in some.text.splitlines()] == [ids[2], ids[1]]
    assert (none.status_code, none.text) == (200, "")
    assert (wrong.status_code, wrong.json()["parameter"]) == (400, "q")
    assert by_page.text == everything.text
    assert "events.jsonl" in by_page.headers["content-disposition"]


async def test_an_events_page_leads_to_its_transcript_its_frames_and_its_files(
    world: HttpWorld, visitor: Visitor
) -> None:
    _, token, lease = await world.working()
    texts = [entry(number, f"line <b>{number}</b>") for number in range(1, 23)]
    await write(world, token, lease, *texts, entry(23, "y" * 5_000, "output"))
    artefact = (await keep(world, token, lease, FILE))["artefact_id"]
    page = f"{home(world)}/events/{lease['event']['event_id']}"

    shown = (await visitor.get(page)).text
    first = (await visitor.get(f"{page}/transcript")).text
    [later] = re.findall(r'<a href="([^"]+)">Later</a>', first)
    last = (await visitor.get(later.replace("&amp;", "&"))).text
    whole = (await visitor.get(f"{page}/transcript?attempt=1&number=23")).text
    frames = (await visitor.get(f"{page}/frames")).text
    file = await visitor.get(f"/v1/workspaces/{world.installation.workspace_id}/artefacts/{artefact}/content")

    assert "23 entries" in shown
    assert f"{artefact}/content" in shown
    assert "line &lt;b&gt;1&lt;/b&gt;" in first
    assert "line &lt;b&gt;22&lt;/b&gt;" not in first
    assert "line &lt;b&gt;22&lt;/b&gt;" in last
    assert "y" * 100 not in last
    assert "Show entry 1.23 whole" in last
    assert "y" * 5_000 in whole
    assert "event_leased" in frames
    assert file.content == FILE


async def test_a_viewer_sees_events_but_not_what_their_runs_said(world: HttpWorld, visitor: Visitor) -> None:
    _, token, lease = await world.working()
    await write(world, token, lease, entry(1, "a word of the run"))
    page = f"{home(world)}/events/{lease['event']['event_id']}"
    become(world, Role.VIEWER)

    shown = await visitor.get(page)
    transcript = await visitor.client.get(f"{page}/transcript")

    assert shown.status_code == 200
    assert "Transcripts need the role user." in shown.text
    assert 'title="This needs the role user"' in shown.text
    assert (transcript.status_code, "a word of the run" in transcript.text) == (403, False)


async def test_pages_replay_one_event_and_many_with_another_request(
    world: HttpWorld, visitor: Visitor
) -> None:
    zombie, token = await world.install(), await world.enrol()
    lease = await run(world, zombie, token)
    page = f"{home(world)}/events/{lease['event']['event_id']}"
    merged = {"verb": "replay", "change": '{"dry": true}', "how": "merge"}

    one = await visitor.post(page, data=merged)
    wrong = await visitor.post(page, data={**merged, "change": "[1]"})
    form = {
        "filter": "status:processed",
        "kind": "replay",
        "change": '{"message": "again"}',
        "how": "replace",
    }
    many = await visitor.post(f"{home(world)}/jobs", data=form)
    [job] = (await world.get(f"{world.ws}/jobs")).json()["items"]
    made = (await world.get(f"{world.ws}/events/{one.headers['location'].rpartition('/')[2]}")).json()

    assert (one.status_code, many.status_code, job["total"]) == (303, 303, 1)
    assert made["request_json"] == {"message": "hello", "dry": True}
    assert (wrong.status_code, "an object as JSON" in wrong.text) == (400, True)
    assert zombie["zombie_id"] == made["zombie_id"]


async def test_the_page_of_credentials_says_in_words_how_each_is_used(
    world: HttpWorld, visitor: Visitor
) -> None:
    await world.keep_secret()

    shown = text_of((await visitor.get(f"{home(world)}/credentials")).text)

    assert "header authorization, password of basic authentication" in shown
