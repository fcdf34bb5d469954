"""The trigger matrix: every source, good, bad, stale, replayed, rotated and missing, over HTTP."""

import json
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import httpx2
import pytest
import trio

from tests.fakes.webhook_senders import SENDERS, Sender, hex_digest
from tests.worlds.server_process import ServerProcess

SKILL = "---\nname: {name}\ndescription: d\nversion: 1.0.0\n---\nLook.\n"
TRIGGER = "---\nname: {name}\n{config}\n---\n"
BY_RULE = "gates: {{timeout_ms: {timeout_ms}, rules: [{{tool: message, action: '*', behavior: approve}}]}}"
PLAIN = "triggers: [{type: webhook, source: alarms}]"
SLACK_APP = "triggers: [{type: webhook, source: slack, signature: {secret_ref: hook}}]"
APPROVAL, FORM = "UZ-APPROVAL-002", "application/x-www-form-urlencoded"


@dataclass
class Plane:
    """The server of this module as its clients see it; each test installs an agent of its own."""

    server: ServerProcess
    http: httpx2.Client
    made: list[str] = field(default_factory=list)

    @property
    def ws(self) -> str:
        return f"/v1/workspaces/{self.server.ready['workspace_id']}"

    def call(self, method: str, path: str, **rest: Any) -> httpx2.Response:
        key = {"authorization": f"Bearer {self.server.ready['api_key']}"}
        return self.http.request(method, path, headers=key, **rest)

    def install(self, config: str) -> dict[str, Any]:
        self.made.append(name := f"a{len(self.made)}")
        files = {
            "source_markdown": SKILL.format(name=name),
            "trigger_markdown": TRIGGER.format(name=name, config=config),
        }
        answer = self.call("POST", f"{self.ws}/zombies", json=files)
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json()
        return made

    def keep(self, *secrets: str) -> None:
        held: Any = secrets[0] if len(secrets) == 1 else list(secrets)
        body = {"name": "hook", "data": {"webhook_secret": held}}
        assert self.call("POST", f"{self.ws}/credentials", json=body).status_code == 201

    def forget(self) -> None:
        assert self.call("DELETE", f"{self.ws}/credentials/hook").status_code == 204

    def events(self, zombie_id: str) -> list[dict[str, Any]]:
        answer = self.call("GET", f"{self.ws}/zombies/{zombie_id}/events")
        assert answer.status_code == 200, answer.text
        items: list[dict[str, Any]] = answer.json()["items"]
        return items

    def gate(self, config: str = PLAIN, timeout_ms: int = 60_000) -> tuple[dict[str, Any], str]:
        """An agent, and the id of the gate that stands before its message."""
        agent = self.install(f"{BY_RULE.format(timeout_ms=timeout_ms)}\n{config}")
        path = f"{self.ws}/zombies/{agent['zombie_id']}/messages"
        assert self.call("POST", path, json={"message": "go"}).status_code == 202
        listed = self.call("GET", f"{self.ws}/approvals?zombie_id={agent['zombie_id']}")
        return agent, listed.json()["items"][0]["gate_id"]


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    process = ServerProcess(tmp_path_factory.mktemp("server"), "--port", "0", "--runners", "0")
    trio.run(process.start)
    with httpx2.Client(base_url=process.ready["base_url"], timeout=30) as http:
        yield Plane(process, http)
    assert trio.run(process.stop) == 0


def now_s() -> int:
    return int(time.time())


def code_of(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json().get("error_code", "")


# --- those who sign what they send --------------------------------------------------------------------------


class Case:
    """One agent with one sender."""

    def __init__(self, plane: Plane, sender: Sender) -> None:
        self.plane, self.sender = plane, sender
        plane.keep(sender.kept(sender.new))
        self.zombie_id: str = plane.install(f"triggers: [{sender.trigger}]")["zombie_id"]
        self.delivery = f"delivery-{uuid.uuid4()}"
        self.body = sender.body(self.delivery)

    def headers(self, *, secret: str | None = None, late_s: int = 0) -> dict[str, str]:
        key = self.sender.new if secret is None else secret
        return self.sender.sign(self.body, key, now_s() - late_s, self.delivery)

    def post(self, headers: dict[str, str]) -> httpx2.Response:
        path = self.sender.path.format(zombie_id=self.zombie_id, name=self.sender.name)
        return self.plane.http.post(path, content=self.body, headers=headers)

    def kept(self) -> list[dict[str, Any]]:
        return self.plane.events(self.zombie_id)


def good(case: Case) -> None:
    answer = case.post(case.headers())
    assert answer.status_code == 202, answer.text
    said = answer.json()
    assert (said["accepted"], said["status"]) == (True, "accepted")
    [event] = case.kept()
    assert (event["event_id"], event["event_type"]) == (said["event_id"], case.sender.event_type)
    source = "github" if case.sender.name == "github-form" else case.sender.name
    assert event["actor"] in {f"webhook:{source}", "webhook:standard-webhooks"}


def bad(case: Case) -> None:
    others = case.headers(secret=case.sender.old)
    damaged = {**case.headers(), case.sender.signature_header: "v0=zz"}
    changed = case.headers()
    for headers, reason in ((others, "signature_mismatch"), (damaged, "signature_malformed")):
        answer = case.post(headers)
        assert code_of(answer) == (401, "UZ-WH-010")
        assert answer.json()["reason"] == f"webhook_rejected: {reason}"
    case.body += b" "
    assert code_of(case.post(changed)) == (401, "UZ-WH-010")
    assert case.kept() == []


def stale(case: Case) -> None:
    """Without a signed time nothing grows stale: what is sent again is known as a repeat."""
    tolerance = case.sender.tolerance_s
    late = case.post(case.headers(late_s=tolerance + 5))
    if not case.sender.timed:
        assert late.status_code == 202
        return
    assert code_of(late) == (401, "UZ-WH-011")
    assert late.json()["reason"] == "webhook_rejected: stale_timestamp"
    assert code_of(case.post(case.headers(late_s=-tolerance - 60))) == (401, "UZ-WH-011")
    assert case.post(case.headers(late_s=tolerance - 30)).status_code == 202


def replayed(case: Case) -> None:
    headers = case.headers()
    first = case.post(headers)
    assert first.status_code == 202, first.text
    tries = [headers, case.headers()]
    if not case.sender.id_is_signed:
        assert case.sender.id_header is not None
        tries.append({name: value for name, value in headers.items() if name != case.sender.id_header})
    for again in tries:
        answer = case.post(again)
        said = answer.json()
        assert (answer.status_code, said["status"], said["event_id"]) == (
            200,
            "duplicate",
            first.json()["event_id"],
        )
    assert len(case.kept()) == 1


def rotated(case: Case) -> None:
    sender, plane = case.sender, case.plane
    plane.keep(sender.kept(sender.old), sender.kept(sender.new))
    for secret in (sender.old, sender.new):
        case.delivery = f"delivery-{uuid.uuid4()}"
        case.body = sender.body(case.delivery)
        assert case.post(case.headers(secret=secret)).status_code == 202
    plane.keep(sender.kept(sender.new))
    assert code_of(case.post(case.headers(secret=sender.old))) == (401, "UZ-WH-010")


def missing(case: Case) -> None:
    unsigned = {k: v for k, v in case.headers().items() if k != case.sender.signature_header}
    answer = case.post(unsigned)
    assert code_of(answer) == (401, "UZ-WH-010")
    assert answer.json()["reason"] == "webhook_rejected: signature_missing"
    case.plane.forget()
    answer = case.post(case.headers())
    assert code_of(answer) == (401, "UZ-WH-020")
    assert answer.json()["reason"] == "webhook_rejected: credential_missing"
    assert case.kept() == []


CASES = {
    "good": good,
    "bad": bad,
    "stale": stale,
    "replayed": replayed,
    "rotated": rotated,
    "missing": missing,
}


@pytest.mark.parametrize(
    ("sender", "case"),
    [pytest.param(sender, case, id=f"{sender.name}-{case}") for sender in SENDERS for case in CASES],
)
def test_who_signs_gets_past_by_nothing_else(plane: Plane, sender: Sender, case: str) -> None:
    CASES[case](Case(plane, sender))


# --- those who cannot sign ----------------------------------------------------------------------------------

BODY = {"type": "alarm", "level": 7}


def _plain(plane: Plane) -> tuple[dict[str, Any], str]:
    agent = plane.install(PLAIN)
    url = agent["webhook_urls"]["alarms"]
    assert url.rpartition("/")[2].startswith("zwh_")
    return agent, url


@pytest.mark.parametrize("case", [pytest.param(case, id=f"url_secret-{case}") for case in CASES])
def test_who_cannot_sign_gets_past_by_the_secret_of_the_address(plane: Plane, case: str) -> None:
    agent, url = _plain(plane)
    bare = f"/v1/webhooks/{agent['zombie_id']}"
    match case:
        case "good":
            assert plane.http.post(url, json=BODY).status_code == 202
            [event] = plane.events(agent["zombie_id"])
            assert (event["event_type"], event["actor"]) == ("alarm", "webhook:alarms")
        case "bad":
            others = _plain(plane)[1].rpartition("/")[2]
            assert code_of(plane.http.post(f"{bare}/{others}", json=BODY)) == (401, "UZ-WH-010")
            assert code_of(plane.http.post(url[:-1], json=BODY)) == (401, "UZ-WH-010")
        case "stale":
            old = {"x-request-timestamp": "1", "date": "Thu, 01 Jan 1970 00:00:00 GMT"}
            assert plane.http.post(url, json=BODY, headers=old).status_code == 202
        case "replayed":
            first = plane.http.post(url, json=BODY).json()["event_id"]
            again = plane.http.post(url, json=BODY)
            assert (again.status_code, again.json()["event_id"]) == (200, first)
        case "rotated":
            new = _given_anew(plane, agent)
            assert new != url
            assert plane.http.post(new, json=BODY).status_code == 202
            assert code_of(plane.http.post(url, json={"type": "b"})) == (401, "UZ-WH-010")
        case _:
            for path in (bare, f"{bare}/alarms", f"{bare}/nobody"):
                assert code_of(plane.http.post(path, json=BODY)) == (401, "UZ-WH-020")


def _given_anew(plane: Plane, agent: dict[str, Any]) -> str:
    """Another source and back again: the trigger gets a secret of its own each time."""
    path, url = f"{plane.ws}/zombies/{agent['zombie_id']}", ""
    for source in ("others", "alarms"):
        config = f"triggers: [{{type: webhook, source: {source}}}]"
        files = {"trigger_markdown": TRIGGER.format(name=agent["name"], config=config)}
        answer = plane.call("PATCH", path, json=files)
        assert answer.status_code == 200, answer.text
        url = answer.json().get("webhook_urls", {}).get(source, "")
    return url


# --- decisions from outside ---------------------------------------------------------------------------------


def _decide(plane: Plane, agent: dict[str, Any], gate_id: str, token: str | None = "") -> httpx2.Response:
    headers = {} if token is None else {"authorization": f"Bearer {token or agent['approval_token']}"}
    body = {"approval_id": gate_id, "decision": "approve"}
    return plane.http.post(f"/v1/webhooks/{agent['zombie_id']}/approval", json=body, headers=headers)


@pytest.mark.parametrize("case", [pytest.param(case, id=f"approval_token-{case}") for case in CASES])
def test_a_gate_is_decided_by_the_approval_token(plane: Plane, case: str) -> None:
    agent, gate_id = plane.gate(timeout_ms=1 if case == "stale" else 60_000)
    match case:
        case "good":
            answer = _decide(plane, agent, gate_id)
            said = answer.json()
            assert (answer.status_code, said["status"]) == (200, "approved")
            assert said["resolved_by"] == f"api:{agent['zombie_id']}"
        case "bad":
            assert code_of(_decide(plane, agent, gate_id, "zap_" + "0" * 64)) == (401, "UZ-AUTH-002")
            others = plane.install(PLAIN)["approval_token"]
            assert code_of(_decide(plane, agent, gate_id, others)) == (401, "UZ-AUTH-002")
        case "stale":
            answer = _decide(plane, agent, gate_id)
            assert (code_of(answer), answer.json()["outcome"]) == ((404, APPROVAL), "timed_out")
        case "replayed":
            assert _decide(plane, agent, gate_id).status_code == 200
            answer = _decide(plane, agent, gate_id)
            assert (code_of(answer), answer.json()["outcome"]) == ((404, APPROVAL), "approved")
        case "rotated":
            path = f"{plane.ws}/zombies/{agent['zombie_id']}/approval-token"
            new = plane.call("POST", path, json={}).json()["approval_token"]
            assert code_of(_decide(plane, agent, gate_id)) == (401, "UZ-AUTH-002")
            assert _decide(plane, agent, gate_id, new).status_code == 200
        case _:
            assert code_of(_decide(plane, agent, gate_id, None)) == (401, "UZ-AUTH-002")


def _press(
    plane: Plane, path: str, value: str, *, secret: str = "a new secret", late_s: int = 0, sign: bool = True
) -> httpx2.Response:
    payload = {"type": "block_actions", "user": {"id": "U7"}, "actions": [{"value": value}]}
    body = urlencode({"payload": json.dumps(payload)}).encode()
    stamp = now_s() - late_s
    headers = {"content-type": FORM, "x-slack-request-timestamp": str(stamp)}
    if sign:
        headers["x-slack-signature"] = f"v0={hex_digest(secret, f'v0:{stamp}:'.encode() + body)}"
    return plane.http.post(path, content=body, headers=headers)


def _pressed(plane: Plane, case: str, path: str, value: str, outcome: str) -> None:
    """One button, whatever it is about."""
    plane.keep("a new secret")
    match case:
        case "good":
            answer = _press(plane, path, value)
            assert (answer.status_code, answer.json()["status"]) == (200, outcome)
        case "bad":
            assert code_of(_press(plane, path, value, secret="x")) == (401, "UZ-APPROVAL-003")
        case "stale":
            for late_s in (360, -360):
                assert code_of(_press(plane, path, value, late_s=late_s)) == (401, "UZ-APPROVAL-003")
        case "replayed":
            assert _press(plane, path, value).status_code == 200
            again = _press(plane, path, value)
            # A gate tells the second that it was late; a grant is what the second wanted it to be.
            if "grant" in path:
                assert (again.status_code, again.json()["status"]) == (200, outcome)
            else:
                assert (code_of(again), again.json()["outcome"]) == ((404, APPROVAL), outcome)
        case "rotated":
            plane.keep("an old secret", "a new secret")
            assert _press(plane, path, value, secret="an old secret").status_code == 200
            plane.keep("a new secret")
            assert code_of(_press(plane, path, value, secret="an old secret")) == (401, "UZ-APPROVAL-003")
        case _:
            assert code_of(_press(plane, path, value, sign=False)) == (401, "UZ-APPROVAL-003")
            plane.forget()
            assert code_of(_press(plane, path, value)) == (401, "UZ-APPROVAL-003")


@pytest.mark.parametrize("case", [pytest.param(case, id=f"approval_button-{case}") for case in CASES])
def test_a_gate_is_decided_by_a_signed_button(plane: Plane, case: str) -> None:
    agent, gate_id = plane.gate(SLACK_APP)
    path = f"/v1/webhooks/{agent['zombie_id']}/approval"
    _pressed(plane, case, path, f"deny:{gate_id}", "denied")


def _asked(plane: Plane, config: str) -> tuple[dict[str, Any], str]:
    agent = plane.install(config)
    path = f"{plane.ws}/zombies/{agent['zombie_id']}/integration-requests"
    answer = plane.call("POST", path, json={"service": "github", "reason": "To look."})
    assert answer.status_code == 201, answer.text
    grant_id: str = answer.json()["grant_id"]
    return agent, grant_id


@pytest.mark.parametrize("case", [pytest.param(case, id=f"grant_button-{case}") for case in CASES])
def test_a_grant_is_decided_by_a_signed_button(plane: Plane, case: str) -> None:
    agent, grant_id = _asked(plane, SLACK_APP)
    path = f"/v1/webhooks/{agent['zombie_id']}/grant-approval"
    _pressed(plane, case, path, f"approve:{grant_id}", "approved")


# --- public examples, with the clock of today ---------------------------------------------------------------


def test_the_documented_example_of_github_is_genuine_though_it_is_no_json(plane: Plane) -> None:
    plane.keep("It's a Secret to Everybody")
    zombie_id = plane.install("triggers: [{type: webhook, source: github, credential_name: hook}]")[
        "zombie_id"
    ]
    digest = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    for last, expected in (("7", (400, "UZ-WH-002")), ("8", (401, "UZ-WH-010"))):
        headers = {"x-hub-signature-256": f"sha256={digest[:-1]}{last}", "x-github-event": "push"}
        path = f"/v1/webhooks/{zombie_id}/github"
        assert code_of(plane.http.post(path, content=b"Hello, World!", headers=headers)) == expected


def test_the_documented_example_of_slack_is_genuine_and_years_old(plane: Plane) -> None:
    plane.keep("8f742231b10e8888abcd99yyyzzz85a5")
    zombie_id = plane.install(SLACK_APP)["zombie_id"]
    body = (
        b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V"
        b"&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text="
        b"&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
        b"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
    )
    digest = "a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"
    headers = {"x-slack-signature": f"v0={digest}", "x-slack-request-timestamp": "1531420618"}
    path = f"/v1/webhooks/{zombie_id}/slack"

    # Only a genuine sender is told that its time was stale.
    assert code_of(plane.http.post(path, content=body, headers=headers)) == (401, "UZ-WH-011")
    assert code_of(plane.http.post(path, content=body + b"x", headers=headers)) == (401, "UZ-WH-010")


def test_the_published_example_of_standard_webhooks_is_genuine_and_years_old(plane: Plane) -> None:
    plane.keep("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    config = "triggers: [{type: webhook, source: svix, signature: {secret_ref: hook}}]"
    path = f"/v1/webhooks/svix/{plane.install(config)['zombie_id']}"
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    for body, expected in ((b'{"test": 2432232314}', "UZ-WH-011"), (b'{"test": 2432232315}', "UZ-WH-010")):
        assert code_of(plane.http.post(path, content=body, headers=headers)) == (401, expected)


def test_one_agent_has_both_multi_signature_senders_and_their_headers_tell_which(plane: Plane) -> None:
    svix, standard = (
        Case(plane, sender) for sender in SENDERS if sender.name in {"svix", "standard-webhooks"}
    )
    plane.keep(svix.sender.new)
    other = {"name": "other", "data": {"webhook_secret": svix.sender.old}}
    assert plane.call("POST", f"{plane.ws}/credentials", json=other).status_code == 201

    trigger = standard.sender.trigger.replace("secret_ref: hook", "secret_ref: other")
    agent = plane.install(f"triggers: [{trigger}, {svix.sender.trigger}]")
    assert len(set(agent["webhook_urls"].values())) == 1

    svix.zombie_id = standard.zombie_id = agent["zombie_id"]
    assert svix.post(svix.headers()).status_code == 202
    assert standard.post(standard.headers(secret=svix.sender.old)).status_code == 202

    for case, secret in ((svix, svix.sender.old), (standard, svix.sender.new)):
        assert code_of(case.post(case.headers(secret=secret))) == (401, "UZ-WH-010")
    actors = [event["actor"] for event in plane.events(agent["zombie_id"])]
    assert actors == ["webhook:standard-webhooks", "webhook:svix"]


# --- the rest of the page -----------------------------------------------------------------------------------


def test_slack_s_challenge_is_answered_only_when_it_is_signed(plane: Plane) -> None:
    case = Case(plane, next(sender for sender in SENDERS if sender.name == "slack"))
    case.body = b'{"type": "url_verification", "challenge": "3eZbrw1aB", "token": "x"}'
    answer = case.post(case.headers())

    assert (answer.status_code, answer.json()["challenge"]) == (200, "3eZbrw1aB")
    assert code_of(case.post(case.headers(secret="x"))) == (401, "UZ-WH-010")
    assert case.kept() == []


def test_github_s_ping_and_what_is_not_listed_are_ignored(plane: Plane) -> None:
    case = Case(plane, next(sender for sender in SENDERS if sender.name == "github"))
    for event, reason in (("ping", "ping"), ("issues", "event_not_listed")):
        answer = case.post({**case.headers(), "X-GitHub-Event": event})
        said = answer.json()
        assert (answer.status_code, said["status"], said["reason"]) == (200, "ignored", reason)

    assert case.kept() == []


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"[" * 65 + b"]" * 65, "UZ-WH-002"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "UZ-WH-002"),
        (b'{"a":"\xff"}', "UZ-WH-002"),
        (b'{"a":', "UZ-WH-002"),
        (b"", "UZ-WH-002"),
        (b"payload=%7B%7D&payload=%7B%7D", "UZ-WH-002"),
        (b'{"a":"' + b"x" * 1024 * 1024 + b'"}', "UZ-WH-030"),
    ],
    ids=["deep list", "deep object", "not UTF-8", "cut off", "empty", "two payloads", "too large"],
)
def test_a_signed_body_that_cannot_be_read_is_refused(plane: Plane, body: bytes, code: str) -> None:
    case = Case(plane, next(sender for sender in SENDERS if sender.name == "github"))
    case.body = body
    answer = case.post(case.headers())

    assert answer.json()["error_code"] == code
    assert case.kept() == []


def test_reserved_words_are_neither_sources_nor_secrets(plane: Plane) -> None:
    agent, _url = _plain(plane)
    path = f"/v1/webhooks/{agent['zombie_id']}"
    assert code_of(plane.http.post(f"{path}/svix", json=BODY)) == (401, "UZ-WH-020")

    for word in ("approval", "grant-approval"):
        assert code_of(plane.http.post(f"{path}/{word}", json=BODY)) == (401, "UZ-AUTH-002")
    for word in ("approval", "grant-approval", "svix-signature"):
        files = {
            "source_markdown": SKILL.format(name="reserved"),
            "trigger_markdown": TRIGGER.format(
                name="reserved", config=f"triggers: [{{type: webhook, source: {word}}}]"
            ),
        }
        answer = plane.call("POST", f"{plane.ws}/zombies", json=files)
        assert answer.status_code == (201 if word == "svix-signature" else 400), answer.text


def test_a_declared_source_comes_before_a_secret_of_the_same_form(plane: Plane) -> None:
    source = "zwh_" + "a" * 43
    plane.keep("a new secret")
    config = (
        f"triggers: [{{type: webhook, source: {source}, signature: {{secret_ref: hook, header: x-s}}}},"
        " {type: webhook, source: alarms}]"
    )
    agent = plane.install(config)
    path = f"/v1/webhooks/{agent['zombie_id']}/{source}"
    assert code_of(plane.http.post(path, json=BODY)) == (401, "UZ-WH-010")

    body = b'{"type":"x"}'
    signed = {"x-s": hex_digest("a new secret", body)}
    assert plane.http.post(path, content=body, headers=signed).status_code == 202


def test_what_was_turned_away_stands_in_the_stream_with_its_reason(plane: Plane) -> None:
    case = Case(plane, next(sender for sender in SENDERS if sender.name == "bank"))
    case.post(case.headers(secret="x"))
    case.post({})
    case.post({**case.headers(), "X-Bank-Signature": "zz"})
    case.post(case.headers(late_s=1000))
    case.body = b"{"
    case.post(case.headers())
    case.body = b"{" + b" " * 1024 * 1024
    case.post({})
    agent = f"{plane.ws}/zombies/{case.zombie_id}"
    case.plane.call("PATCH", agent, json={"status": "stopped"})
    case.body = b"{}"
    assert code_of(case.post(case.headers())) == (403, "UZ-WH-003")

    case.plane.forget()
    case.post(case.headers())
    expected = [
        "signature_mismatch",
        "signature_missing",
        "signature_malformed",
        "stale_timestamp",
        "malformed_body",
        "too_large",
        "not_active",
        "credential_missing",
    ]
    seen: list[str] = []
    key = {"authorization": f"Bearer {plane.server.ready['api_key']}", "last-event-id": "0"}
    with plane.http.stream("GET", f"{agent}/events/stream", headers=key) as stream:
        for line in stream.iter_lines():
            frame = json.loads(line.removeprefix("data: ")) if line.startswith("data: ") else {}
            if frame.get("kind") == "webhook_rejected":
                assert frame["source"] in {"bank", ""}
                seen.append(frame["reason"].removeprefix("webhook_rejected: "))
            if len(seen) == len(expected):
                break
    assert seen == expected


def test_a_killed_agent_s_webhooks_are_closed_for_good_and_an_unknown_one_s_never_were(plane: Plane) -> None:
    case = Case(plane, SENDERS[0])
    plane.call("PATCH", f"{plane.ws}/zombies/{case.zombie_id}", json={"status": "killed"})
    assert code_of(case.post({})) == (410, "UZ-WH-004")

    case.zombie_id = str(uuid.uuid4())
    assert code_of(case.post(case.headers())) == (404, "UZ-WH-001")
