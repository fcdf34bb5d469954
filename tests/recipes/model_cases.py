"""Carries out the recipes of models; a scripted one speaks the provider's wire, and the tools are real."""

import json
from urllib.parse import urlsplit

from tests.fakes.model_servers import Call, Say
from tests.recipes.github_cases import SHOP, TOKEN, bears_the_token
from tests.recipes.kitchen import Kitchen
from tests.recipes.stand_ins import NOT_FOUND, Answer, as_json
from tests.worlds.toolbox import Seen

SLACK_TOKEN = "xoxb-canary-51c7e2a0"
AUTHORISED = {"authorization": "Bearer ${secrets.github.token}"}
NOTES = "## Fixed\n\n- The export holds all rows (#812)"
TWO_DAYS_MS = 172_800_000


def request(method: str, url: str, document: object = None, headers: object = None) -> Call:
    sent = {} if document is None else {"json": document}
    return Call("http_request", {"method": method, "url": url, "headers": headers or AUTHORISED, **sent})


class Repository:
    """Releases and pull requests; what is written is kept."""

    def __init__(self) -> None:
        self.written: list[tuple[str, str, dict[str, str]]] = []

    def __call__(self, seen: Seen) -> Answer:
        place = urlsplit(seen.target).path.removeprefix(SHOP)
        if not bears_the_token(seen):
            return as_json({"message": "Bad credentials"}, 401)
        if seen.method != "GET":
            self.written.append((seen.method, place, json.loads(seen.body)))
            return as_json({"id": 1}, 201)
        pull = {"number": 31, "draft": False, "user": {"login": "pier"}, "updated_at": "2026-02-10T10:00:00Z"}
        found = {
            "/releases": [{"id": 5501, "tag_name": "v2.4.0"}, {"id": 5300, "tag_name": "v2.3.0"}],
            "/compare/v2.3.0...v2.4.0": {"commits": [{"commit": {"message": "Export all rows (#812)"}}]},
            "/pulls": [pull],
            "/pulls/31/reviews": [{"state": "CHANGES_REQUESTED", "user": {"login": "quay-clerk"}}],
        }.get(place)
        return NOT_FOUND if found is None else as_json(found)


def repository(kitchen: Kitchen) -> Repository:
    """Give the one that both recipes share."""
    found = kitchen.outside.services.setdefault("api.github.com", Repository())
    assert isinstance(found, Repository)
    return found


async def release_notes(kitchen: Kitchen) -> None:
    shop = repository(kitchen)
    place = f"http://api.github.com:{kitchen.outside.plain_port}{SHOP}"
    me = "You write the notes of a release"
    kitchen.scripts[me] = [
        Say("", (request("GET", f"{place}/releases?per_page=2"),)),
        Say("", (request("GET", f"{place}/compare/v2.3.0...v2.4.0"),)),
        Say("", (request("PATCH", f"{place}/releases/5501", {"body": "Great things!"}),)),
        Say("", (request("PATCH", f"{place}/releases/5501", {"body": NOTES}),)),
        Say(f"{NOTES}\npublished"),
    ]
    cook = await kitchen.install("release-notes")
    event_id = await cook.deliver("release.created", cook.payload("release.created.json"))
    gate = await cook.gate(event_id)
    assert gate["evidence"]["json"] == {"body": "Great things!"}
    await cook.decide(gate, "deny", "say what changed")
    # The model gives both calls one id, as some servers do: what was decided of the first holds for it alone.
    gate = await cook.gate(event_id)
    assert gate["evidence"]["json"] == {"body": NOTES}
    assert [one for one in shop.written if one[0] == "PATCH"] == []
    await cook.decide(gate, "approve", "good")
    event = await cook.ended(event_id)

    assert [one for one in shop.written if one[0] == "PATCH"] == [
        ("PATCH", "/releases/5501", {"body": NOTES})
    ]
    assert event["response_text"] == f"{NOTES}\npublished"
    asked = kitchen.asked(me)
    assert "Export all rows (#812)" in asked[2]
    assert "say what changed" in asked[3]
    assert TOKEN not in str(asked) + str(event)


async def stale_pull_requests(kitchen: Kitchen) -> None:
    shop = repository(kitchen)
    place = f"http://api.github.com:{kitchen.outside.plain_port}{SHOP}"
    me = "You look after the open pull requests"
    comment = {
        "body": "@pier, this has waited for you since 10 February. Next: the change that was asked for."
    }
    answer = "#31: waits for pier since 2026-02-10"
    kitchen.scripts[me] = [
        Say("", (request("GET", f"{place}/pulls?state=open&sort=updated&direction=asc&per_page=30"),)),
        Say("", (request("GET", f"{place}/pulls/31/reviews"),)),
        Say("", (request("POST", f"{place}/issues/31/comments", comment),)),
        # What it is not allowed to do is refused, whatever the model wants.
        Say("", (request("POST", f"{place}/pulls/31/merge", {}),)),
        Say("", (Call("schedule_follow_up", {"message": "look at #31", "delay_s": 172_800}),)),
        Say(answer),
    ]
    cook = await kitchen.install("stale-pull-requests")
    event = await cook.ended(await cook.tick())
    listed = await kitchen.world.get(f"{cook.path}/follow-ups")

    assert event["response_text"] == answer
    assert [one for one in shop.written if one[0] == "POST"] == [("POST", "/issues/31/comments", comment)]
    assert [call["ok"] for call in event["evidence"]["tools"]] == [True, True, True, False, True]
    (follow_up,) = listed.json()["items"]
    assert follow_up["message"] == "look at #31"
    assert "CHANGES_REQUESTED" in kitchen.asked(me)[2]


async def on_call_handover(kitchen: Kitchen) -> None:
    me = "You keep the book of those who are on call"
    line = "02 Mar 03:12, db1: the disk is 92 % full; still open"
    handover = f"Open: {line}"
    kitchen.scripts[me] = [
        Say("", (Call("memory_store", {"key": "alert disk-db1", "content": line, "category": "alerts"}),)),
        Say(line),
        Say(
            "", (Call("memory_recall", {"category": "alerts"}), Call("memory_recall", {"query": "handover"}))
        ),
        Say("", (Call("memory_store", {"key": "handover", "content": line, "category": "core"}),)),
        Say(handover),
    ]
    cook = await kitchen.install("on-call-handover")
    alert = await cook.ended(await cook.deliver("", cook.payload("alert.json")))
    monday = await cook.ended(await cook.tick())
    kept = (await kitchen.world.get(f"{cook.path}/memories")).json()["items"]

    assert (alert["response_text"], monday["response_text"]) == (line, handover)
    assert {(one["key"], one["category"]) for one in kept} == {
        ("alert disk-db1", "alerts"),
        ("handover", "core"),
    }
    asked = kitchen.asked(me)
    assert "Disk of db1 is 92 % full" in asked[0]
    assert asked[3].count(line) > asked[2].count(line), "what was recalled is shown"


async def slack_digest(kitchen: Kitchen) -> None:
    me = "You turn a stream of issue events"
    digest = "Done: SHOP-812 The export stops at 65536 rows"
    posted: list[dict[str, str]] = []

    def slack(seen: Seen) -> Answer:
        if seen.headers.get("authorization") != f"Bearer {SLACK_TOKEN}":
            return as_json({"ok": False, "error": "not_authed"})
        posted.append(json.loads(seen.body))
        return as_json({"ok": True})

    kitchen.outside.services["slack.com"] = slack
    await kitchen.keep("slack", token=SLACK_TOKEN)
    url = f"http://slack.com:{kitchen.outside.plain_port}/api/chat.postMessage"
    message = {"channel": "#shop", "text": digest}
    post = request("POST", url, message, {"authorization": "Bearer ${secrets.slack.token}"})
    take = Call("request_integration", {"service": "slack", "reason": "to post the digest"})
    recall = Say("", (Call("memory_recall", {"category": "daily"}),))
    stored = {"key": "issue SHOP-812", "content": "SHOP-812 done by Quay Clerk", "category": "daily"}
    kitchen.scripts[me] = [
        Say("", (Call("memory_store", stored),)),
        Say("SHOP-812: done"),
        recall,
        Say("", (take,)),
        Say("not posted: slack is not granted"),
        recall,
        Say("", (take,)),
        Say("", (post,)),
        Say(f"{digest}\nposted"),
    ]
    cook = await kitchen.install("slack-digest")
    await cook.ended(await cook.deliver("Issue.update", cook.payload("Issue.update.json")))
    refused = await cook.ended(await cook.tick())
    grants = f"{cook.path}/integration-grants"
    (grant,) = (await kitchen.world.get(grants)).json()["items"]
    approved = await kitchen.world.call("PATCH", f"{grants}/{grant['grant_id']}", json={"status": "approved"})
    assert approved.status_code == 200, approved.text
    event = await cook.ended(await cook.tick())

    assert (grant["service"], grant["status"]) == ("slack", "pending")
    assert refused["response_text"] == "not posted: slack is not granted"
    assert event["response_text"] == f"{digest}\nposted"
    assert posted == [message]
    asked = kitchen.asked(me)
    assert "SHOP-812 done by Quay Clerk" in asked[3]
    assert SLACK_TOKEN not in str(asked) + str(event)


CASES = {
    "release-notes": release_notes,
    "stale-pull-requests": stale_pull_requests,
    "on-call-handover": on_call_handover,
    "slack-digest": slack_digest,
}
