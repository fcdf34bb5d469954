"""Carries out the recipes that work with a repository on GitHub; a stand-in of its API answers them."""

import base64
import io
import json
import re
import zipfile
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.recipes.kitchen import Kitchen
from tests.recipes.stand_ins import NOT_FOUND, Answer, as_json, as_text
from tests.worlds.toolbox import Seen

TOKEN = "github_pat_canary-5d7f20b1c9"
SHOP = "/repos/acme/shop"
HEAD = "b5c0d7e1f2a3948576a1b2c3d4e5f60718293a4b"
BASE = "0f1e2d3c4b5a69788796a5b4c3d2e1f001122334"
PINS = """\
{
  "name": "shop",
  "version": "1.0.0",
  "dependencies": {"charts": "^2.1.0", "@acme/carts": "1.4.0", "mail": "latest"},
  "devDependencies": {"linter": "~9.0.1"}
}
"""
RAISED = PINS.replace("^2.1.0", "^2.10.0").replace("1.4.0", "2.0.0")
RELEASES = {"charts": "2.10.0", "@acme%2Fcarts": "2.0.0", "linter": "9.0.1"}


def bears_the_token(seen: Seen) -> bool:
    return seen.headers.get("authorization") == f"Bearer {TOKEN}"


class Contents:
    """A repository of one file, with branches and pull requests."""

    def __init__(self) -> None:
        self.branches = {"main": PINS}
        self.pulls: list[dict[str, Any]] = []

    def __call__(self, seen: Seen) -> Answer:
        parts = urlsplit(seen.target)
        given = json.loads(seen.body) if seen.body else {}
        place, query = parts.path.removeprefix(SHOP), parse_qs(parts.query)
        if not bears_the_token(seen):
            return as_json({"message": "Bad credentials"}, 401)
        if seen.method == "GET" and place == "/contents/package.json":
            text = self.branches[query["ref"][0]]
            content = base64.encodebytes(text.encode()).decode()
            return as_json({"content": content, "sha": sha256(text.encode()).hexdigest()})
        if seen.method == "GET" and (ref := re.fullmatch(r"/git/ref/heads/(\S+)", place)):
            return as_json({"object": {"sha": BASE}}) if ref[1] in self.branches else NOT_FOUND
        if (seen.method, place) == ("POST", "/git/refs"):
            self.branches[given["ref"].removeprefix("refs/heads/")] = self.branches["main"]
            return as_json({}, 201)
        if seen.method == "PUT" and place == "/contents/package.json":
            self.branches[given["branch"]] = base64.b64decode(given["content"]).decode()
            return as_json({})
        if place == "/pulls":
            if seen.method == "POST":
                self.pulls.append(given | {"number": 900})
                return as_json(self.pulls[-1], 201)
            return as_json([one for one in self.pulls if f"acme:{one['head']}" == query["head"][0]])
        return NOT_FOUND


def registry(seen: Seen) -> Answer:
    """Stand in for the registry, which is to be sent no token."""
    assert "authorization" not in seen.headers
    return as_json({"version": RELEASES[seen.target.split("/")[1]]})


async def dependency_bump(kitchen: Kitchen) -> None:
    repository = Contents()
    kitchen.outside.services |= {"api.github.com#dependency-bump": repository, "registry.npmjs.org": registry}
    cook = await kitchen.install("dependency-bump")

    event_id = await cook.tick()
    gate = await cook.gate(event_id)
    assert (gate["tool_name"], gate["action_name"]) == ("http", "POST api.github.com")
    assert repository.pulls == [], "nothing is opened before a person has let it through"
    await cook.decide(gate, "approve", "fine")
    event = await cook.ended(event_id)
    again = await cook.ended(await cook.tick())

    (pull,) = repository.pulls
    assert repository.branches[pull["head"]] == RAISED
    assert (pull["title"], pull["base"]) == ("Raise charts, @acme/carts", "main")
    assert event["evidence"]["raised"] == {"charts": ["2.1.0", "2.10.0"], "@acme/carts": ["1.4.0", "2.0.0"]}
    assert again["evidence"]["pull_request"] == event["evidence"]["pull_request"] == 900
    assert TOKEN not in str(event)


def reports(passes: bool) -> bytes:
    failure = "" if passes else "<failure message='1 != 2'/>"
    report = (
        "<testsuites><testsuite>"
        f"<testcase classname='shop.test_cart' name='test_total'>{failure}</testcase>"
        "<testcase classname='shop.test_cart' name='test_empty'/>"
        "<testcase classname='shop.test_mail' name='test_later'><skipped/></testcase>"
        "</testsuite></testsuites>"
    )
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("junit/report.xml", report)
    return packed.getvalue()


async def flaky_test_hunter(kitchen: Kitchen) -> None:
    run_started = ["2026-03-02T08:41:00Z", "2026-03-02T09:41:00Z"]
    created = ["2026-03-02T08:50:00Z", "2026-03-02T09:50:00Z"]
    here = f"api.github.com:{kitchen.outside.tls_port}"

    def github(seen: Seen) -> Answer:
        if not bears_the_token(seen):
            return as_json({"message": "Bad credentials"}, 401)
        if seen.target.startswith(f"{SHOP}/actions/runs/88120045/artifacts"):
            names = ["junit-1", "junit-2", "wheel"]
            found = [
                {
                    "name": name,
                    "expired": False,
                    "created_at": created[number % 2],
                    "archive_download_url": f"https://{here}{SHOP}/actions/artifacts/{number}/zip",
                }
                for number, name in enumerate(names)
            ]
            return as_json({"artifacts": found})
        number = seen.target.split("/")[-2]
        where = f"https://store.blob.core.windows.net:{kitchen.outside.tls_port}/{number}?sig=x"
        return 302, {"location": where}, b""

    def store(seen: Seen) -> Answer:
        assert "authorization" not in seen.headers, "the token has no business there"
        return 200, {"content-type": "application/zip"}, reports(passes=seen.target.startswith("/1"))

    kitchen.outside.services |= {
        "api.github.com#flaky-test-hunter": github,
        "store.blob.core.windows.net": store,
    }
    cook = await kitchen.install("flaky-test-hunter")
    body = json.loads(cook.payload("workflow_run.completed.json"))
    first = await cook.ended(await cook.deliver("workflow_run.completed", json.dumps(body).encode()))
    body["workflow_run"] |= {"run_attempt": 2, "run_started_at": run_started[1], "conclusion": "success"}
    second = await cook.ended(await cook.deliver("workflow_run.completed", json.dumps(body).encode()))

    assert first["evidence"]["flaky"] == {}
    assert second["evidence"] == {
        "commit": HEAD,
        "attempt": 2,
        "tests": 2,
        "flaky": {"shop.test_cart::test_total": 1},
    }


async def nightly_report(kitchen: Kitchen) -> None:
    asked: list[str] = []

    def github(seen: Seen) -> Answer:
        parts = urlsplit(seen.target)
        query = parse_qs(parts.query)
        asked.append((query.get("q") or query["created"])[0])
        item = {"number": 812, "title": "Export all rows", "user": {"login": "quay-clerk"}}
        if not bears_the_token(seen):
            return as_json({"message": "Bad credentials"}, 401)
        if parts.path == "/search/issues":
            return as_json({"items": [item] if "is:pr merged:" in asked[-1] else []})
        run = {
            "name": "Deploy",
            "head_branch": "main",
            "html_url": "https://github.com/acme/shop/actions/runs/1",
        }
        return as_json({"workflow_runs": [run]})

    kitchen.outside.services["api.github.com#nightly-report"] = github
    cook = await kitchen.install("nightly-report")
    event_id = await cook.tick()
    event = await cook.ended(event_id)

    until = event["evidence"]["until"]
    report = await cook.left(event_id, f"report-{until[:10]}.md")
    assert "## Merged (1)\n\n- #812 Export all rows (quay-clerk)" in report
    assert "- Deploy on main: https://github.com/acme/shop/actions/runs/1" in report
    assert "## New issues (0)\n\nNothing." in report
    assert event["evidence"]["counts"] == {"merged": 1, "closed issues": 0, "new issues": 0, "failed runs": 1}
    assert all(one.endswith(f"..{until}") for one in asked), asked


def lock(**licences: str) -> dict[str, Any]:
    packages = {
        f"node_modules/{name}": {"version": "1.0.0", "license": one} for name, one in licences.items()
    }
    return {"lockfileVersion": 3, "packages": {"": {"name": "shop"}, **packages}}


async def licence_check(kitchen: Kitchen) -> None:
    statuses: list[tuple[str, dict[str, str]]] = []
    locks = {
        BASE: lock(old="WTFPL"),
        HEAD: lock(old="WTFPL", charts="AGPL-3.0", both="(MIT OR GPL-2.0) AND ISC"),
    }

    def github(seen: Seen) -> Answer:
        parts = urlsplit(seen.target)
        if not bears_the_token(seen):
            return as_json({"message": "Bad credentials"}, 401)
        if seen.method == "POST":
            statuses.append((parts.path, json.loads(seen.body)))
            return as_json({}, 201)
        assert parts.path == f"{SHOP}/contents/package-lock.json"
        return as_json(locks[parse_qs(parts.query)["ref"][0]])

    kitchen.outside.services["api.github.com#licence-check"] = github
    cook = await kitchen.install("licence-check")
    sent = await cook.deliver("pull_request.opened", cook.payload("pull_request.opened.json"))
    event = await cook.ended(sent)

    assert statuses == [
        (
            f"{SHOP}/statuses/{HEAD}",
            {"state": "failure", "context": "licences", "description": "charts@1.0.0: AGPL-3.0"},
        )
    ]
    assert event["evidence"] == {
        "packages": 3,
        "not_allowed": {"charts@1.0.0": "AGPL-3.0"},
        "not_allowed_before": 1,
    }


LEAKED = "AKIA" + "Q7MNRX2LZ5WTBV3K"
DIFFERENCE = f"""\
diff --git a/mail.py b/mail.py
--- a/mail.py
+++ b/mail.py
@@ -10,2 +10,4 @@ def send():
 import os
+KEY = "{LEAKED}"
+password = "changeme-please"
+api_key: "${{API_KEY_OF_THE_SHOP}}"
 send(KEY)
"""


async def secret_leak_scan(kitchen: Kitchen) -> None:
    def github(seen: Seen) -> Answer:
        assert seen.headers["accept"] == "application/vnd.github.diff"
        if not bears_the_token(seen) or seen.target != f"{SHOP}/compare/{BASE}...{HEAD}":
            return NOT_FOUND
        return as_text(DIFFERENCE)

    kitchen.outside.services["api.github.com#secret-leak-scan"] = github
    cook = await kitchen.install("secret-leak-scan")
    event = await cook.ended(await cook.deliver("push", cook.payload("push.json")), "agent_error")

    (found,) = event["evidence"]["found"]
    assert (found["file"], found["line"], found["kind"]) == ("mail.py", 11, "AWS access key")
    assert found["fingerprint"] == sha256(LEAKED.encode()).hexdigest()[:12]
    assert LEAKED not in json.dumps(event)


CASES = {
    "dependency-bump": dependency_bump,
    "flaky-test-hunter": flaky_test_hunter,
    "nightly-report": nightly_report,
    "licence-check": licence_check,
    "secret-leak-scan": secret_leak_scan,
}
