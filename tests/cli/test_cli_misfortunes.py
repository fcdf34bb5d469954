"""What a command does when its surroundings fail it: no answer, no reader, no trust, no patience."""

import http.server
import os
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.worlds.certificates import make_certificate
from tests.worlds.shell import COMMAND, Shell, said, wait_until

TOKEN = "zmb_t_" + "3" * 64


class Empty(http.server.BaseHTTPRequestHandler):
    """A tenant without workspaces and keys."""

    def do_GET(self) -> None:
        body = b'{"items": [], "total": 0}'
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        del format, args


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate that nobody has heard of, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    made = make_certificate(folder, "localhost")
    return made.certificate, made.key


def serving(service: http.server.ThreadingHTTPServer, scheme: str) -> Iterator[str]:
    thread = threading.Thread(target=service.serve_forever)
    thread.start()
    yield f"{scheme}://localhost:{service.server_address[1]}"
    service.shutdown()
    thread.join()
    service.server_close()


@pytest.fixture(scope="module")
def plain() -> Iterator[str]:
    yield from serving(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Empty), "http")


@pytest.fixture(scope="module")
def secure(certificate: tuple[Path, Path]) -> Iterator[str]:
    service = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Empty)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    service.socket = context.wrap_socket(service.socket, server_side=True)
    yield from serving(service, "https")


@pytest.fixture
def deaf() -> Iterator[socket.socket]:
    """Takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


def test_ctrl_c_ends_a_call_that_hangs(bare_shell: Shell, deaf: socket.socket) -> None:
    url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
    with bare_shell.terminal("whoami", "--base-url", url, SEXTON_TOKEN=TOKEN) as terminal:
        connection, _ = deaf.accept()
        with connection:
            assert connection.recv(4096).startswith(b"GET /v1/whoami")

            terminal.interrupt()
            assert terminal.ends() == 130

    assert terminal.screen.strip() in {"", "^C"}


def test_a_server_that_hangs_up_is_no_server(bare_shell: Shell, deaf: socket.socket) -> None:
    def hang_up() -> None:
        deaf.accept()[0].close()

    thread = threading.Thread(target=hang_up)
    thread.start()
    url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
    ended = bare_shell("whoami", "--base-url", url, SEXTON_TOKEN=TOKEN)
    thread.join()

    assert ended.returncode == 69
    assert url in said(ended)
    assert TOKEN not in ended.stderr


def test_a_certificate_of_nobody_is_not_trusted_and_gets_no_token(bare_shell: Shell, secure: str) -> None:
    ended = bare_shell("whoami", "--base-url", secure, SEXTON_TOKEN=TOKEN)

    assert ended.returncode == 76
    assert f"{secure} is not trusted" in said(ended)
    assert "SSL_CERT_FILE" in said(ended)


def test_a_certificate_that_is_vouched_for_is_trusted(
    bare_shell: Shell, secure: str, certificate: tuple[Path, Path]
) -> None:
    trusted = {"SEXTON_TOKEN": TOKEN, "SSL_CERT_FILE": str(certificate[0])}
    assert bare_shell.json("workspace", "list", "--base-url", secure, **trusted)["total"] == 0


def test_a_broken_setting_of_the_network_is_one_clear_line(bare_shell: Shell, plain: str) -> None:
    secure = plain.replace("http:", "https:")
    for base_url, name, value in (
        (secure, "SSL_CERT_FILE", "/nowhere.pem"),
        (plain, "HTTP_PROXY", "ftp://x"),
    ):
        ended = bare_shell("whoami", "--base-url", base_url, "--token", TOKEN, **{name: value})
        assert ended.returncode == 78
        assert "SSL_CERT_FILE" in said(ended)


def test_a_reader_that_has_gone_is_no_traceback(bare_shell: Shell, plain: str) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    ended = subprocess.run(
        [*COMMAND, "workspace", "list", "--json", "--base-url", plain],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        env=bare_shell.environment | {"SEXTON_TOKEN": TOKEN},
    )
    os.close(theirs)

    assert (ended.returncode, ended.stderr) == (1, "")


def test_a_full_disk_is_said(bare_shell: Shell, plain: str) -> None:
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [*COMMAND, "workspace", "list", "--json", "--base-url", plain],
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=bare_shell.environment | {"SEXTON_TOKEN": TOKEN},
        )

    assert ended.returncode == 1
    assert ended.stderr == "sexton: standard output: No space left on device\n"


def test_no_secret_is_among_the_words_that_others_can_read(bare_shell: Shell, deaf: socket.socket) -> None:
    url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
    with subprocess.Popen(
        [*COMMAND, "login", "--token-stdin", "--base-url", url],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=bare_shell.environment,
    ) as process:
        assert process.stdin is not None

        process.stdin.write(TOKEN.encode())
        process.stdin.close()
        connection, _ = deaf.accept()
        with connection:
            assert f"Bearer {TOKEN}".encode() in connection.recv(4096)

            folder = Path(f"/proc/{process.pid}")
            assert TOKEN.encode() not in (folder / "cmdline").read_bytes()
            assert TOKEN.encode() not in (folder / "environ").read_bytes()
        process.kill()
    wait_until(lambda: process.poll() is not None)

    assert not bare_shell.credentials.exists()
