"""Real proxies before a real server, with the very configurations that the how-to shows."""

import hashlib
import hmac
import os
import re
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest
import trio

from tests.worlds.certificates import make_certificate
from tests.worlds.server_process import ServerProcess
from tests.worlds.shell import wait_until

NAME = "agents.example.com"
HOW_TO = Path(__file__).parents[2] / "docs" / "how-to" / "serve-over-tls.md"
SKILL = "---\nname: {0}\ndescription: d\nversion: 1.0.0\ntags: [{0}]\n---\nLook.\n"
TRIGGER = (
    "---\nname: {0}\ntriggers:\n  - {{type: webhook, source: shop, "
    "signature: {{secret_ref: hook, header: X-Signature}}}}\n---\n"
)
POLLS = "/v1/runners/me/leases"
Connect = Callable[[], httpx2.Client]
CLIENT = "127.0.0.2"
"""An address of this machine that is not the proxy's."""


def configuration(language: str) -> str:
    """The block of this language in the how-to."""
    found = re.search(rf"```{language}\n(.*?)```", HOW_TO.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


def caddy(folder: Path, port: int, upstream: str) -> list[str]:
    text = configuration("caddy").replace("127.0.0.1:8300", upstream)
    tls = f"\ttls {folder / 'cert.pem'} {folder / 'key.pem'}\n"
    text = text.replace(f"{NAME} {{\n", f"https://{NAME}:{port} {{\n{tls}")
    file = folder / "Caddyfile"
    file.write_text("{\n\tadmin off\n\tauto_https disable_redirects\n}\n" + text)
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(file)]


def nginx(folder: Path, port: int, upstream: str) -> list[str]:
    text = configuration("nginx").replace("127.0.0.1:8300", upstream).replace("listen 443", f"listen {port}")
    text = text.replace(f"/etc/ssl/{NAME}.pem", str(folder / "cert.pem"))
    text = text.replace(f"/etc/ssl/{NAME}.key", str(folder / "key.pem"))
    paths = "".join(
        f"{kind}_temp_path {folder / kind};\n"
        for kind in ("proxy", "client_body", "fastcgi", "uwsgi", "scgi")
    )
    file = folder / "nginx.conf"
    # Its workers write bodies to the folder of this test, which is its owner's alone.
    user = "user root;\n" if os.geteuid() == 0 else ""
    file.write_text(
        f"{user}daemon off;\npid {folder / 'pid'};\nerror_log stderr;\nworker_processes 1;\n"
        f"events {{}}\nhttp {{\naccess_log off;\n{paths}{text}}}\n"
    )
    return ["nginx", "-c", str(file), "-e", "stderr"]


def haproxy(folder: Path, port: int, upstream: str) -> list[str]:
    both = folder / "both.pem"
    both.write_bytes((folder / "cert.pem").read_bytes() + (folder / "key.pem").read_bytes())
    text = configuration("haproxy").replace("127.0.0.1:8300", upstream).replace(":443", f"127.0.0.1:{port}")
    file = folder / "haproxy.cfg"
    file.write_text(text.replace(f"/etc/ssl/{NAME}.pem", str(both)))
    return ["haproxy", "-f", str(file)]


PROXIES: dict[str, Callable[[Path, int, str], list[str]]] = {
    "caddy": caddy,
    "nginx": nginx,
    "haproxy": haproxy,
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    options = ("--public-url", f"https://{NAME}", "--trusted-proxy", "127.0.0.1", "--access-log")
    process = ServerProcess(tmp_path_factory.mktemp("server"), "--port", "0", "--runners", "0", *options)
    trio.run(process.start)
    yield process
    assert trio.run(process.stop) == 0


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


@pytest.fixture(params=PROXIES)
def connect(request: pytest.FixtureRequest, server: ServerProcess, tmp_path: Path) -> Iterator[Connect]:
    """Makes clients of the proxy, which they know by its name and its certificate."""
    name = request.param
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed here")
    make_certificate(tmp_path, NAME)
    port = free_port()
    upstream = f"127.0.0.1:{port_of(server)}"
    words = PROXIES[name](tmp_path, port, upstream)
    with (tmp_path / "log").open("wb") as log:
        proxy = subprocess.Popen(
            words, stdout=log, stderr=log, env={"PATH": "/usr/sbin:/usr/bin:/bin", "HOME": str(tmp_path)}
        )
    trusting = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
    headers = {"host": NAME, "authorization": f"Bearer {server.ready['api_key']}"}

    def dial() -> httpx2.Client:
        transport = httpx2.HTTPTransport(verify=trusting, http2=True, local_address=CLIENT)
        return Through(transport=transport, base_url=f"https://127.0.0.1:{port}", headers=headers, timeout=60)

    def up() -> bool:
        assert proxy.poll() is None, (tmp_path / "log").read_text()
        try:
            with dial() as client:
                return client.get("/readyz").status_code == 200
        except httpx2.TransportError:
            return False

    try:
        wait_until(up)
        yield dial
    finally:
        proxy.terminate()
        proxy.wait(30)


class Through(httpx2.Client):
    """Dials an address and asks for a name, as a resolver would have it."""

    def build_request(self, *args: Any, **rest: Any) -> httpx2.Request:
        rest["extensions"] = {**(rest.get("extensions") or {}), "sni_hostname": NAME}
        return super().build_request(*args, **rest)


def port_of(server: ServerProcess) -> int:
    """Where it listens, which its public address does not tell."""
    [up] = [line for line in log_of(server) if line["event"] == "server_up"]
    return int(up["local"].rpartition(":")[2])


def test_streams_polls_and_signed_bodies_come_through_at_once(
    connect: Connect, server: ServerProcess, request: pytest.FixtureRequest
) -> None:
    name = f"behind-{request.node.callspec.params['connect']}"
    workspace = f"/v1/workspaces/{server.ready['workspace_id']}"
    admin = {"authorization": f"Bearer {server.ready['admin_token']}"}
    # Odd blanks and letters: whatever rewrote this on its way would break the signature.
    raw = b'{"type": "order.paid",\t"n":1.10 , "who": "Zo\\u00eb \xc3\xab"}\n' + b" " * 900_000
    signed = {"x-signature": hmac.digest(b"s", raw, hashlib.sha256).hex()}
    polled: list[httpx2.Response] = []

    with connect() as http, connect() as runner, connect() as watcher:
        assert http.get("/readyz").http_version == "HTTP/2"

        http.post(f"{workspace}/credentials", json={"name": "hook", "data": {"webhook_secret": "s"}})
        files = {"source_markdown": SKILL.format(name), "trigger_markdown": TRIGGER.format(name)}
        made = http.post(f"{workspace}/zombies", json=files).json()
        body = {"host_id": name, "sandbox_tier": "bubblewrap", "labels": [name], "slots": 1}
        enrolled = http.post("/v1/runners", json=body, headers=admin).json()
        runner.headers["authorization"] = f"Bearer {enrolled['runner_token']}"
        wish = {"max": 1, "wait_ms": 25_000}
        poll = threading.Thread(target=lambda: polled.append(runner.post(POLLS, json=wish)))
        poll.start()
        with watcher.stream("GET", f"{workspace}/zombies/{made['zombie_id']}/events/stream") as events:
            assert events.status_code == 200

            lines = events.iter_lines()
            taken = http.post(f"/v1/webhooks/{made['zombie_id']}/shop", content=raw, headers=signed)
            assert taken.status_code == 202, taken.text
            # The stream stays open: what is read here has not been held back until its end.
            assert next(line for line in lines if line.startswith("event:")) == "event: event_received"
        poll.join(60)
    [lease] = polled[0].json()["leases"]
    assert lease["event"]["event_id"] == taken.json()["event_id"]

    [line] = [line for line in log_of(server) if line.get("request_id") == taken.json()["request_id"]]
    assert line["client"] == CLIENT


def log_of(server: ServerProcess) -> list[dict[str, Any]]:
    lines = (server.folder / "server.log").read_text().splitlines()
    return [orjson.loads(line) for line in lines if line.startswith("{")]
