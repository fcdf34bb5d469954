"""The server's own Slack app: where it is configured, and what is made of whatever Slack answers."""

import pytest

from sexton_http.identity.settings import IdentityMistake, read_identity
from sexton_http.outbound.slack import API_URL, AUTHORIZE_URL, SCOPES
from tests.http.test_http_chat import open_scene

WHOLE = """
[slack]
client_id = "1.2"
client_secret_env = "A"
signing_secret_env = "B"
"""
ENVIRON = {"A": "client", "B": "signing"}


def test_the_app_is_read_with_its_secrets_from_the_environment() -> None:
    settings = read_identity(WHOLE, ENVIRON)
    slack = settings.slack

    assert slack is not None
    assert (slack.client_id, slack.client_secret, slack.signing_secret) == ("1.2", "client", "signing")
    assert (slack.authorize_url, slack.api_url, slack.scopes) == (AUTHORIZE_URL, API_URL, SCOPES)
    assert not settings.holds_secrets
    assert read_identity("", {}).slack is None


def test_a_file_with_a_secret_in_it_is_known_as_such() -> None:
    for field in ("client_secret", "signing_secret"):
        text = WHOLE.replace(f"{field}_env", field)
        assert read_identity(text, ENVIRON).holds_secrets


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('client_secret_env = "A"', ""),
        ('signing_secret_env = "B"', ""),
        ('signing_secret_env = "B"', 'signing_secret_env = "C"'),
        ('signing_secret_env = "B"', 'signing_secret_env = "B"\nsigning_secret = "x"'),
        ('client_id = "1.2"', ""),
        ('client_id = "1.2"', 'client_id = "1.2"\nwhat = 7'),
        ('client_id = "1.2"', 'client_id = "1.2"\napi_url = "http://slack.example"'),
        ('client_id = "1.2"', 'client_id = "1.2"\nauthorize_url = "ftp://slack.example"'),
    ],
)
def test_a_mistake_in_the_app_is_told(old: str, new: str) -> None:
    with pytest.raises(IdentityMistake, match=r"slack|\$"):
        read_identity(WHOLE.replace(old, new), ENVIRON)


async def test_whatever_slack_answers_the_request_is_posted_in_the_end() -> None:
    answers = [b"[]", b"null", b"", b"\xff", b'{"ok":1}', b'{"ok":"true"}', b'{"ok":true}', b'{"ok":false}']
    answers += [
        b'{"ok":true,"channel":7,"ts":1}',
        b'{"ok":false,"error":7}',
        b'{"ok":false,"error":"\\u0000"}',
    ]
    async with open_scene() as scene:
        await scene.connected()
        gate_id = await scene.ask()
        await scene.posted()
        scene.slack.messages.clear()
        scene.slack.by_client_id.clear()
        scene.slack.raw["chat.postMessage"] = list(answers)
        second = await scene.ask()
        await scene.later(lambda: bool(scene.slack.messages), step_ms=100_000)
        assert scene.slack.raw["chat.postMessage"] == []

        [message] = scene.slack.messages.values()
        assert message.values == [f"approve:{second}", f"deny:{second}"]
        assert (await scene.gate(gate_id))["status"] == "pending"
