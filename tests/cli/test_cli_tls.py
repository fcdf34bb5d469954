"""A server with a certificate of its own: its runner, the command line, and what goes wrong."""

import hashlib
import os
import signal
import ssl
from pathlib import Path

import httpx2
import pytest
import trio
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

from tests.cli.test_cli_up import CONFIG, sexton
from tests.patience import PATIENCE_S
from tests.worlds.certificates import make_certificate
from tests.worlds.server_process import open_server
from tests.worlds.shell import Shell, said

PROTOCOL = 76


async def test_a_local_runner_and_the_command_line_trust_what_their_server_shows(tmp_path: Path) -> None:
    """The certificate is for another name than the address, and of nobody that anyone knows."""
    tls = make_certificate(tmp_path, "agents.example.com")
    options = ("--port", "0", "--runners", "1", "--sandbox", "none")
    files = ("--tls-cert", str(tls.certificate), "--tls-key", str(tls.key))
    async with open_server(tmp_path, *options, *files) as server:
        base_url = server.ready["base_url"]
        assert base_url.startswith("https://127.0.0.1:")

        trusting = ssl.create_default_context(cafile=str(tls.certificate))
        trusting.check_hostname = False
        bearer = {"authorization": f"Bearer {server.ready['admin_token']}"}
        async with httpx2.AsyncClient(verify=trusting, http2=True, trust_env=False) as http:
            fleet = await http.get(f"{base_url}/v1/fleet/runners", headers=bearer)
        assert fleet.http_version == "HTTP/2"
        assert [runner["liveness"] for runner in fleet.json()["items"]] == ["online"]

        known = Shell(
            tmp_path,
            SEXTON_BASE_URL=base_url,
            SEXTON_TOKEN=server.ready["api_key"],
            SEXTON_DATA=str(tmp_path / "data"),
        )
        ended = await trio.to_thread.run_sync(lambda: known("workspace", "list"))
        assert ended.returncode == 0, ended.stderr

        stranger = Shell(tmp_path, SEXTON_BASE_URL=base_url, SEXTON_TOKEN=server.ready["api_key"])
        ended = await trio.to_thread.run_sync(lambda: stranger("workspace", "list"))
        assert ended.returncode == PROTOCOL

        shown = hashlib.sha256(ssl.PEM_cert_to_DER_cert(tls.certificate.read_text())).digest()
        assert shown.hex(":").upper() in said(ended)
        assert "SSL_CERT_FILE" in said(ended)

        renewed = make_certificate(tmp_path, "agents.example.com").certificate.read_text()
        os.kill(server.ready["pids"]["server"], signal.SIGHUP)
        address = ("127.0.0.1", int(base_url.rpartition(":")[2]))
        with trio.fail_after(PATIENCE_S):
            while await trio.to_thread.run_sync(ssl.get_server_certificate, address) != renewed:
                await trio.sleep(0.05)
        # What the command line goes by, at the same address, is renewed with it.
        ended = await trio.to_thread.run_sync(lambda: known("workspace", "list"))
        assert ended.returncode == 0, ended.stderr


async def test_a_runner_that_does_not_trust_its_server_says_so_at_once_and_how_to(tmp_path: Path) -> None:
    tls = make_certificate(tmp_path, "localhost")
    files = ("--tls-cert", str(tls.certificate), "--tls-key", str(tls.key))
    async with open_server(tmp_path, "--port", "0", "--runners", "0", *files) as server:
        local = server.ready["base_url"].replace("127.0.0.1", "localhost")
        words = ("runner", "--base-url", local, "--state-dir", str(tmp_path / "r"), "--sandbox", "none")

        def run(**environment: str) -> str:
            ended = sexton(*words, SEXTON_ENROLMENT_TOKEN="zre_" + 64 * "0", **environment)
            return f"{ended.returncode} {ended.stderr.splitlines()[-1]}"

        refused = await trio.to_thread.run_sync(run)
        assert refused.startswith(f"{CONFIG} sexton runner: UZ-STARTUP-002: ")
        assert "self-signed certificate" in refused
        assert "SSL_CERT_FILE" in refused
        assert "--server-cert" in refused

        # Trusted, it gets as far as its token: on loopback too the variable counts.
        trusting = await trio.to_thread.run_sync(lambda: run(SSL_CERT_FILE=str(tls.certificate)))
        assert trusting.startswith("77 ")


@pytest.mark.parametrize("wrong", ["no such file", "no key", "another's key", "a key with a password"])
def test_a_certificate_that_cannot_be_shown_is_named_before_anything_is_served(
    tmp_path: Path, wrong: str
) -> None:
    tls = make_certificate(tmp_path, "localhost")
    certificate, key = tls.certificate, tls.key
    match wrong:
        case "no such file":
            certificate = tmp_path / "nowhere.pem"
        case "no key":
            key = certificate
        case "another's key":
            (tmp_path / "other").mkdir()
            key = make_certificate(tmp_path / "other", "localhost").key
        case _:
            sealed = ec.generate_private_key(ec.SECP256R1()).private_bytes(
                Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"word")
            )
            key.write_bytes(sealed)
    files = ("--tls-cert", str(certificate), "--tls-key", str(key))
    ended = sexton("serve", "--data", str(tmp_path / "data"), "--port", "0", *files)
    assert ended.returncode == CONFIG

    line = ended.stderr.splitlines()[-1]
    assert line.startswith("sexton: UZ-STARTUP-002: ")
    assert str(certificate) in line
    assert "--tls-cert" in line
    assert "Traceback" not in ended.stderr
