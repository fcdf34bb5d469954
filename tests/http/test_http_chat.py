"""Approval requests in Slack, over real sockets: connecting, posting, pressing, closing, failing."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx2
import pytest
import trio

from sexton_actors.chat.state import TOKEN_NAME
from sexton_actors.protocol.chat import Look
from sexton_http.outbound.http import Elsewhere
from sexton_http.outbound.slack import Slack
from sexton_storage.records.gates import GateStatus
from sexton_storage.records.users import Role
from tests.fakes.chat_platform import CHANNEL, TEAM, SlackServer, open_slack_server, signed
from tests.patience import PATIENCE_S
from tests.worlds.browser import text_of, visiting
from tests.worlds.http import HttpWorld, open_http_world
from tests.worlds.trust import TRUST

UNKNOWN = "019363b0-0000-7000-8000-00000000ffff"
PRESSES = "/v1/chat/slack/interactions"
CALLBACK = "/v1/chat/slack/callback"


@dataclass
class Scene:
    """A server of ours, and Slack."""

    world: HttpWorld
    slack: SlackServer
    away: httpx2.AsyncClient
    lease_at: str = ""
    runner: str = ""
    zombie_id: str = ""
    asked: int = 0

    async def leave(self) -> str:
        """The address of the consent page."""
        answer = await self.world.get(f"{self.world.ws}/chat/slack/install", follow_redirects=False)
        assert answer.status_code == 303, answer.text
        return answer.headers["location"]

    async def consent(self, url: str) -> str:
        """Say yes there; the path to come back by."""
        answer = await self.away.get(url)
        assert answer.status_code == 302, answer.text
        return answer.headers["location"].removeprefix(self.world.base_url)

    async def install(self) -> httpx2.Response:
        return await self.world.get(await self.consent(await self.leave()), None)

    async def connected(self) -> None:
        answer = await self.install()
        assert answer.status_code == 200, answer.text

    async def work(self, config: str = "") -> None:
        zombie, self.runner, lease = await self.world.working(config)
        self.zombie_id, self.lease_at = zombie["zombie_id"], f"/v1/runners/me/leases/{lease['lease_id']}"

    async def ask(self, **changes: Any) -> str:
        """A gate from inside a run."""
        if not self.lease_at:
            await self.work()
        self.asked += 1
        body = {
            "action_id": f"a{self.asked}",
            "tool_name": "http",
            "action_name": "POST",
            "proposed_action": "Deploy <again> & again.",
            "blast_radius": "all of production",
            "evidence": {"diff": "`x`"},
            **changes,
        }
        answer = await self.world.post(f"{self.lease_at}/gates", body, self.runner)
        assert answer.status_code == 200, answer.text
        gate_id: str = answer.json()["gate_id"]
        return gate_id

    async def press(
        self, value: str, path: str = PRESSES, late_s: int = 0, **changes: Any
    ) -> httpx2.Response:
        body = self.slack.press(value, **changes)
        headers = signed(body, self.world.actors_world.now_ms() / 1000 - late_s)
        return await self.world.http.post(path, content=body, headers=headers)

    async def posted(self, count: int = 1) -> list[Any]:
        """The messages in the channel, once there are that many."""
        await self.slack.until(lambda: len(self.slack.messages) >= count)
        return list(self.slack.messages.values())

    async def settled(self) -> None:
        """Until nothing is left to be closed."""
        await self.slack.until(lambda: all(not m.values for m in self.slack.messages.values()))

    async def gate(self, gate_id: str) -> dict[str, Any]:
        shown: dict[str, Any] = (await self.world.get(f"{self.world.ws}/approvals/{gate_id}")).json()
        return shown

    async def later(self, true: Callable[[], bool], step_ms: int = 10_000) -> None:
        """Until time has passed that made it true."""
        with trio.fail_after(PATIENCE_S):
            while not true():
                self.world.pass_ms(step_ms)
                self.world.system.tell("chat", self.world.installation.workspace_id, Look())
                await trio.sleep(0.05)


@asynccontextmanager
async def open_scene() -> AsyncIterator[Scene]:
    async with open_slack_server() as slack, httpx2.AsyncClient(verify=TRUST) as client:
        app = Slack(slack.settings, Elsewhere(client))
        async with open_http_world(slack=app) as world:
            yield Scene(world, slack, client)


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    async with open_scene() as opened:
        yield opened


def error_of(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error_code"]


# --- connecting ---------------------------------------------------------------------------------------------


async def test_an_operator_connects_a_workspace_and_its_token_stays_in_the_vault(scene: Scene) -> None:
    answer = await scene.install()
    assert answer.status_code == 200
    assert "#ops" in text_of(answer.text)

    shown = (await scene.world.get(f"{scene.world.ws}/chat/slack")).json()
    assert (shown["installed"], shown["team_id"], shown["channel_id"]) == (True, TEAM, CHANNEL)
    assert shown["installed_by"].startswith("api:")

    [token] = scene.slack.tokens
    assert token not in answer.text + str(shown) + str(scene.world.memory.tables.chat_installs)

    workspace_id = scene.world.installation.workspace_id
    assert await scene.world.actors_world.secrets.open(workspace_id, TOKEN_NAME) == {"bot_token": token}

    listed = (await scene.world.get(f"{scene.world.ws}/credentials")).json()
    assert listed["items"] == []


async def test_only_an_operator_connects_and_lets_go(scene: Scene) -> None:
    token = scene.world.user_token(Role.USER)
    path = f"{scene.world.ws}/chat/slack"

    assert error_of(await scene.world.get(f"{path}/install", token)) == (403, "UZ-AUTH-009")
    assert error_of(await scene.world.call("DELETE", path, token)) == (403, "UZ-AUTH-009")
    assert (await scene.world.get(path, token)).json()["installed"] is False


async def test_the_way_back_is_good_once(scene: Scene) -> None:
    path = await scene.consent(await scene.leave())

    assert (await scene.world.get(path, None)).status_code == 200
    assert error_of(await scene.world.get(path, None)) == (403, "UZ-CHATPLUGIN-001")


async def test_a_state_that_is_missing_forged_old_or_another_s_is_refused(scene: Scene) -> None:
    path = await scene.consent(await scene.leave())
    code = path.partition("code=")[2].partition("&")[0]
    for query in ("", f"?code={code}", f"?code={code}&state=x", f"?code={code}&state={'A' * 64}"):
        assert error_of(await scene.world.get(CALLBACK + query, None)) == (403, "UZ-CHATPLUGIN-001")
    scene.world.pass_ms(10 * 60 * 1000)

    assert error_of(await scene.world.get(path, None)) == (403, "UZ-CHATPLUGIN-001")
    assert not scene.world.memory.tables.chat_installs


async def test_what_is_begun_in_a_browser_ends_in_the_same_one(scene: Scene) -> None:
    async with visiting(scene.world) as mine, visiting(scene.world) as other:
        await mine.sign_in()
        for visitor, status in ((other, 403), (mine, 200)):
            left = await mine.get(f"{scene.world.ws}/chat/slack/install")
            assert left.status_code == 303
            back = await visitor.get(await scene.consent(left.headers["location"]))
            assert back.status_code == status


@pytest.mark.parametrize(
    "trouble", ["declined", "bad code", "down", "too many", "no channel", "no token", "not json"]
)
async def test_an_exchange_that_fails_keeps_nothing(scene: Scene, trouble: str) -> None:
    slack = scene.slack
    match trouble:
        case "declined":
            slack.consent = "access_denied"
        case "bad code":
            slack.errors["oauth.v2.access"] = ["invalid_code"]
        case "down":
            slack.errors["oauth.v2.access"] = ["500"]
        case "too many":
            slack.errors["oauth.v2.access"] = ["429"]
        case "no channel":
            slack.told = {"incoming_webhook": None}
        case "no token":
            slack.told = {"access_token": None}
        case "not json":
            slack.unheard.append("oauth.v2.access")
        case _:
            raise AssertionError(trouble)

    assert error_of(await scene.install()) == (502, "UZ-CHATPLUGIN-002")
    assert not scene.world.memory.tables.chat_installs
    assert not scene.world.memory.tables.credentials


async def test_a_server_without_an_app_says_so(world: HttpWorld) -> None:
    assert error_of(await world.get(f"{world.ws}/chat/slack/install")) == (404, "UZ-REQ-003")
    assert error_of(await world.get(CALLBACK)) == (404, "UZ-REQ-003")
    assert error_of(await world.post(f"{world.ws}/chat/slack/test")) == (401, "UZ-CHATPLUGIN-003")
    assert error_of(await world.post(PRESSES, token=None)) == (401, "UZ-APPROVAL-003")


async def test_letting_go_gives_the_token_back_and_forgets_it(scene: Scene) -> None:
    await scene.connected()
    path = f"{scene.world.ws}/chat/slack"
    for _ in range(2):
        assert (await scene.world.call("DELETE", path)).status_code == 204

    assert scene.slack.calls.count("auth.revoke") == 1
    assert not scene.slack.tokens
    assert not scene.world.memory.tables.credentials
    assert (await scene.world.get(path)).json()["installed"] is False


# --- posting and pressing -----------------------------------------------------------------------------------


async def test_a_gate_is_posted_with_buttons_and_closed_by_the_one_that_is_pressed(scene: Scene) -> None:
    await scene.connected()
    gate_id = await scene.ask()
    [message] = await scene.posted()
    assert message.values == [f"approve:{gate_id}", f"deny:{gate_id}"]
    assert "*doctor* asks for approval: `http POST`" in message.text
    assert "Deploy &lt;again&gt; &amp; again." in message.text
    assert "all of production" in message.text
    assert message.body["metadata"]["event_payload"] == {"gate_id": gate_id}

    pressed = await scene.press(message.values[0])
    assert (pressed.status_code, pressed.json()["status"]) == (200, "approved")
    assert pressed.json()["resolved_by"] == "slack:U7"

    await scene.settled()
    assert "*Approved* by <@U7>." in message.text
    assert (await scene.gate(gate_id))["resolved_by"] == "slack:U7"

    again = await scene.press(f"deny:{gate_id}")
    assert error_of(again) == (404, "UZ-APPROVAL-002")
    assert (again.json()["outcome"], again.json()["resolved_by"]) == ("approved", "slack:U7")
    assert not scene.world.memory.tables.chat_posts or await _empties(scene)


async def _empties(scene: Scene) -> bool:
    with trio.fail_after(PATIENCE_S):
        while scene.world.memory.tables.chat_posts:
            await trio.lowlevel.checkpoint()
    return True


async def test_a_gate_decided_in_the_inbox_is_closed_in_the_chat(scene: Scene) -> None:
    await scene.connected()
    gate_id = await scene.ask()
    [message] = await scene.posted()
    denied = await scene.world.post(f"{scene.world.ws}/approvals/{gate_id}:deny", {"reason": "<not> now"})
    assert denied.status_code == 200

    await scene.settled()
    assert "*Denied* by api:" in message.text
    assert "&lt;not&gt; now" in message.text


async def test_a_gate_before_a_lease_is_posted_and_a_kill_closes_it(scene: Scene) -> None:
    await scene.connected()
    await scene.world.keep_secret()
    rule = "gates: {rules: [{tool: 'workflow_run.*', action: '*', behavior: approve}]}"
    zombie = await scene.world.install(config=rule)
    await scene.world.deliver(zombie["webhook_urls"]["github"])
    [message] = await scene.posted()
    path = f"{scene.world.ws}/zombies/{zombie['zombie_id']}"
    assert (await scene.world.call("PATCH", path, json={"status": "killed"})).status_code == 200

    await scene.settled()
    assert "*Stopped by the platform* by system:kill." in message.text


async def test_gates_that_waited_before_the_install_are_posted_too(scene: Scene) -> None:
    gates = [await scene.ask() for _ in range(3)]
    await scene.connected()
    messages = await scene.posted(3)

    assert [m.values[0] for m in messages] == [f"approve:{gate_id}" for gate_id in gates]


async def test_long_words_of_an_agent_fit_into_a_message(scene: Scene) -> None:
    await scene.connected()
    await scene.ask(proposed_action="&" * 4096, blast_radius="<" * 4096, evidence={"x": "`" * 9000})

    assert len(await scene.posted()) == 1


# --- what can fail ------------------------------------------------------------------------------------------


async def test_a_post_whose_answer_was_lost_is_made_again_as_the_same_message(scene: Scene) -> None:
    await scene.connected()
    scene.slack.unheard.append("chat.postMessage")
    gate_id = await scene.ask()
    await scene.slack.until(lambda: scene.slack.calls.count("chat.postMessage") == 1)
    await scene.later(lambda: scene.slack.calls.count("chat.postMessage") == 2)
    assert len(scene.slack.messages) == 1
    assert (await scene.press(f"deny:{gate_id}")).status_code == 200

    await scene.settled()


async def test_a_post_of_unknown_outcome_is_closed_though_its_gate_was_decided_meanwhile(
    scene: Scene,
) -> None:
    await scene.connected()
    scene.slack.unheard.append("chat.postMessage")
    gate_id = await scene.ask()
    await scene.slack.until(lambda: scene.slack.calls.count("chat.postMessage") == 1)
    await scene.world.post(f"{scene.world.ws}/approvals/{gate_id}:approve")
    await scene.later(lambda: "chat.update" in scene.slack.calls)
    await scene.settled()
    [message] = scene.slack.messages.values()

    assert "*Approved*" in message.text


@pytest.mark.parametrize("trouble", ["429", "500", "ratelimited", "internal_error", "channel_not_found"])
async def test_what_the_platform_does_not_take_now_it_is_given_later(scene: Scene, trouble: str) -> None:
    await scene.connected()
    scene.slack.errors["chat.postMessage"] = [trouble]
    await scene.ask()
    await scene.slack.until(lambda: scene.slack.calls.count("chat.postMessage") == 1)
    await scene.later(lambda: bool(scene.slack.messages))

    assert len(scene.slack.messages) == 1


async def test_a_message_that_somebody_deleted_is_let_be(scene: Scene) -> None:
    await scene.connected()
    gate_id = await scene.ask()
    [message] = await scene.posted()
    del scene.slack.messages[message.ts]
    await scene.press(f"deny:{gate_id}")
    await scene.slack.until(lambda: "chat.update" in scene.slack.calls)

    assert await _empties(scene)


@pytest.mark.parametrize("error", ["token_revoked", "invalid_auth", "account_inactive"])
async def test_with_a_revoked_token_the_gate_still_waits_in_the_inbox(scene: Scene, error: str) -> None:
    await scene.connected()
    scene.slack.errors["chat.postMessage"] = [error]
    gate_id = await scene.ask()
    await scene.slack.until(lambda: "chat.postMessage" in scene.slack.calls)
    pending = (await scene.world.get(f"{scene.world.ws}/approvals", params={"status": "pending"})).json()
    assert [item["gate_id"] for item in pending["items"]] == [gate_id]

    scene.slack.errors["auth.test"] = [error]
    tested = await scene.world.post(f"{scene.world.ws}/chat/slack/test")
    assert error_of(tested) == (401, "UZ-CHATPLUGIN-003")

    shown = (await scene.world.get(f"{scene.world.ws}/chat/slack")).json()
    assert shown["revoked_at"] is not None

    await scene.connected()
    assert [m.values[0] for m in await scene.posted()] == [f"approve:{gate_id}"]


async def test_a_good_token_is_said_to_be_good_and_an_absent_platform_to_be_absent(scene: Scene) -> None:
    await scene.connected()
    path = f"{scene.world.ws}/chat/slack/test"
    tested = await scene.world.post(path)
    assert (tested.status_code, tested.json()["team_id"]) == (200, TEAM)

    scene.slack.errors["auth.test"] = ["500"]
    assert error_of(await scene.world.post(path)) == (502, "UZ-CHATPLUGIN-002")
    assert (await scene.world.get(f"{scene.world.ws}/chat/slack")).json()["revoked_at"] is None


# --- buttons that decide nothing ----------------------------------------------------------------------------


async def test_a_button_counts_only_signed_fresh_and_from_the_workspace_s_own_chat(scene: Scene) -> None:
    await scene.connected()
    gate_id = await scene.ask()
    value = f"approve:{gate_id}"
    body = scene.slack.press(value)
    now_s = scene.world.actors_world.now_ms() / 1000
    http = scene.world.http
    for path in (PRESSES, f"/v1/webhooks/{scene.zombie_id}/approval"):
        for headers in (
            signed(body, now_s, "another secret"),
            {**signed(body, now_s), "x-slack-signature": "v0=00"},
            {"content-type": "application/x-www-form-urlencoded"},
            signed(body + b"&", now_s),
        ):
            assert error_of(await http.post(path, content=body, headers=headers)) == (401, "UZ-APPROVAL-003")
        for late_s in (301, -301, 10_000):
            assert error_of(await scene.press(value, path, late_s)) == (401, "UZ-APPROVAL-003")
        strangers = await scene.press(value, path, team={"id": "T2"})
        assert error_of(strangers) == (401, "UZ-APPROVAL-003")

    assert (await scene.gate(gate_id))["status"] == GateStatus.PENDING


@pytest.mark.parametrize(
    "changes",
    [
        {"actions": []},
        {"actions": None},
        {"actions": [{"value": "approve"}]},
        {"actions": [{"value": "maybe:1"}]},
        {"actions": [7]},
        {"user": {}},
        {"user": {"id": "<script>"}},
    ],
)
async def test_a_signed_form_that_says_nothing_is_malformed(scene: Scene, changes: dict[str, Any]) -> None:
    await scene.connected()
    await scene.ask()
    for path in (PRESSES, f"/v1/webhooks/{scene.zombie_id}/approval"):
        assert error_of(await scene.press("", path, **changes)) == (400, "UZ-REQ-001")


async def test_a_button_about_nothing_is_told_so(scene: Scene) -> None:
    await scene.connected()
    await scene.ask()
    assert error_of(await scene.press(f"approve:{UNKNOWN}")) == (404, "UZ-APPROVAL-002")
    assert error_of(await scene.press("approve:what")) == (404, "UZ-APPROVAL-002")

    path = f"/v1/webhooks/{scene.zombie_id}/approval"
    assert error_of(await scene.press(f"approve:{UNKNOWN}", path)) == (404, "UZ-APPROVAL-002")

    nobody = f"/v1/webhooks/{UNKNOWN}/approval"
    assert error_of(await scene.press("approve:x", nobody)) == (404, "UZ-WH-001")


async def test_the_agent_s_own_address_takes_the_button_of_the_server_s_app(scene: Scene) -> None:
    await scene.connected()
    gate_id = await scene.ask()
    path = f"/v1/webhooks/{scene.zombie_id}/approval"
    pressed = await scene.press(f"deny:{gate_id}", path, user="U9")
    assert (pressed.status_code, pressed.json()["status"]) == (200, "denied")
    assert pressed.json()["resolved_by"] == "slack:U9"

    again = await scene.press(f"approve:{gate_id}", path)
    assert (error_of(again), again.json()["outcome"]) == ((404, "UZ-APPROVAL-002"), "denied")


async def test_the_agent_s_own_slack_app_signs_for_its_own_gates_only(world: HttpWorld) -> None:
    secret = "the agent's own app"
    trigger = "triggers: [{type: webhook, source: slack, signature: {secret_ref: own-slack}}]"
    skill = "---\nname: a\ndescription: d\nversion: 1.0.0\n---\nx\n"
    gates = "gates: {rules: [{tool: '*', action: '*', behavior: approve}]}"
    body = {"source_markdown": skill, "trigger_markdown": f"---\nname: a\n{trigger}\n{gates}\n---\n"}
    zombie = (await world.post(f"{world.ws}/zombies", body)).json()
    await world.post(
        f"{world.ws}/credentials", {"name": "own-slack", "data": {"webhook_secret": ["old", secret]}}
    )
    sent = await world.post(f"{world.ws}/zombies/{zombie['zombie_id']}/messages", {"message": "go"})
    assert sent.status_code == 202

    [gate] = world.memory.tables.gates.values()
    form = SlackServer().press(f"approve:{gate.id}", team={"id": "T9"})
    headers = signed(form, world.actors_world.now_ms() / 1000, secret)
    path = f"/v1/webhooks/{zombie['zombie_id']}/approval"
    assert error_of(await world.http.post(PRESSES, content=form, headers=headers)) == (401, "UZ-APPROVAL-003")

    pressed = await world.http.post(path, content=form, headers=headers)
    assert (pressed.status_code, pressed.json()["resolved_by"]) == (200, "slack:U7")
    assert world.memory.tables.gates[UUID(str(gate.id))].status is GateStatus.APPROVED
