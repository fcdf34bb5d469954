"""The sign-in link of a start, and what it leads to, over stops and crashes of a real server."""

import re
from pathlib import Path

import httpx2
import pytest

from tests.fakes.login_terminal import Party
from tests.worlds.server_process import ServerProcess, open_server
from tests.worlds.shell import run_command

SESSIONS = "/v1/auth/sessions"
OURS = {"sec-fetch-site": "same-origin"}
CODE = {"verification_code": "042137"}


def links(server: ServerProcess) -> list[str]:
    return re.findall(r"^  sign in +(http\S+) \(", server.log(), re.MULTILINE)


async def test_the_first_start_prints_a_link_and_what_it_signs_in_outlives_a_crash(tmp_path: Path) -> None:
    async with open_server(tmp_path, "--port", "0", "--runners", "0") as server:
        base = server.ready["base_url"]
        (link,) = links(server)
        assert link.startswith(f"{base}/auth/sign-in/")

        terminal, browser = Party(), Party()
        async with httpx2.AsyncClient(base_url=base, timeout=30) as client:
            assert (await client.get(link)).status_code == 200
            assert (await client.post(link, headers=OURS)).status_code == 303

            cookie = client.cookies["sexton"]
            made = (await client.post(SESSIONS, json={"public_key": terminal.public_key})).json()
            at = f"{SESSIONS}/{made['session_id']}"
            wish = {"session_id": made["session_id"]}
            token = (await client.post("/auth/token", headers=OURS, json=wish)).json()["token"]
            ciphertext, nonce = browser.encrypt(token, terminal.public_key)
            body = {
                "dashboard_public_key": browser.public_key,
                "ciphertext": ciphertext,
                "nonce": nonce,
                **CODE,
            }
            bearer = {"authorization": f"Bearer {token}"}
            assert (await client.patch(f"{at}/approve", json=body, headers=bearer)).status_code == 200
        server.kill()
        await server.start()
        base = server.ready["base_url"]
        async with httpx2.AsyncClient(base_url=base, timeout=30) as client:
            kept = {"cookie": f"sexton={cookie}"}
            assert "local:admin" in (await client.get("/", headers=kept)).text

            given = (await client.post(f"{at}/verify", json=CODE)).json()
            opened = terminal.decrypt(given["ciphertext"], given["nonce"], given["dashboard_public_key"])
            assert opened == token

            me = {"authorization": f"Bearer {opened}"}
            assert (await client.get("/v1/tenants/me/workspaces", headers=me)).status_code == 200

            used = link.rsplit("/", 1)[1]
            assert (await client.post(f"/auth/sign-in/{used}", headers=OURS)).status_code == 410
        assert links(server) == [link], "a later start prints none"


@pytest.mark.parametrize(
    ("text", "mode", "words"),
    [
        ("[[provider]]\nname = 'x'", 0o600, "client_id"),
        (
            "[[provider]]\nname='x'\nclient_id='c'\nclient_secret='s'\nissuer='https://id.example.com'\nadmit=['*']",
            0o644,
            "chmod 600",
        ),
    ],
)
def test_a_mistake_about_whom_to_trust_stops_the_start(
    tmp_path: Path, text: str, mode: int, words: str
) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    file = data / "identity.toml"
    file.write_text(text)
    file.chmod(mode)
    ended = run_command(["serve", "--data", str(data), "--port", "0"], {"PATH": "/usr/bin:/bin"})
    assert ended.returncode == 78, ended.stderr

    last = ended.stderr.splitlines()[-1]
    assert last.startswith("sexton: UZ-STARTUP-002: ")
    assert words in ended.stderr
