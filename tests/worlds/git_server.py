"""A git server over TLS on loopback, by git's own http-backend, which lets in who knows a token."""

import base64
import os
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.worlds.certificates import make_certificate

CLEAN = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
BACKEND = ("git", "http-backend")
AS_SOMEBODY = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")

NO_OTHER_NAME = "export NO_PROXY= no_proxy=  # The server of the test has no other name than localhost."

CLONE_AND_PUSH = f"""\
Work.
```sh
set -e
{NO_OTHER_NAME}
cd "$HOME"
git clone --quiet "https://x-access-token:$HUB_TOKEN@localhost:$PORT/shop.git" work
cd work
echo "made by a run" > report.txt
git add report.txt
git -c user.name=Run -c user.email=run@example.org commit --quiet -m "Report"
git push --quiet origin HEAD:refs/heads/agent
curl -sS -H "Authorization: Bearer ${{secrets.hub.token}}" "https://localhost:$PORT/echo" | tee echo.txt; echo
curl -sS "http://elsewhere.example/x?y"; echo
curl -sS "https://elsewhere.example/" || echo "curl: $?"
env | tee env.txt
cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n' > processes.txt
printf %s "$BACKWARDS" | rev > ../needle
echo "looked for $(wc -c < ../needle) characters"
echo "found in: [$(grep -rlF -f ../needle . "$SEXTON_RUN" 2>/dev/null)]"
```
"""
"""A command that works with the server, and then looks for the token in all that it can read.

It needs the variables HUB_TOKEN, PORT, and BACKWARDS: the token as no redactor knows it.
"""


@dataclass
class GitServer:
    """One repository, ``shop.git``; ``asked`` is what came in, in order: method, path, and who it was by."""

    folder: Path
    token: str
    port: int = 0
    ca: Path = Path()
    asked: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def repository(self) -> Path:
        return self.folder / "repositories" / "shop.git"

    def git(self, *words: str) -> str:
        done = subprocess.run(
            ["git", *AS_SOMEBODY, *words], cwd=self.repository, env=CLEAN, capture_output=True, check=True
        )
        return done.stdout.decode()


@contextmanager
def open_git_server(folder: Path, token: str) -> Iterator[GitServer]:
    """Serve a repository with one commit; ``/echo`` says back what it was asked with."""
    server = GitServer(folder, token)
    server.repository.mkdir(parents=True)
    server.git("init", "--bare", "--quiet", ".")
    tree = server.git("mktree").strip()
    commit = server.git("commit-tree", tree, "-m", "The first").strip()
    server.git("update-ref", "refs/heads/main", commit)
    tls = make_certificate(folder, "localhost")
    server.ca = tls.certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tls.certificate, tls.key)
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(server)) as http:
        http.daemon_threads = True
        http.socket = context.wrap_socket(http.socket, server_side=True)
        server.port = http.server_address[1]
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()


def _handler(server: GitServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def log_message(self, *_: object) -> None:
            """Write nothing."""

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            path, _, query = self.path.partition("?")
            who = self.headers.get("authorization", "")
            server.asked.append((self.command, path, who))
            if who not in (_basic(server.token), f"Bearer {server.token}"):
                self._send(401, b"who are you", [("www-authenticate", 'Basic realm="shop"')])
            elif path == "/echo":
                self._send(200, f"you said {who}, in base64 {_coded(who)}".encode(), [])
            else:
                self._backend(path, query, body)

        def _backend(self, path: str, query: str, body: bytes) -> None:
            env = {
                **CLEAN,
                "GIT_PROJECT_ROOT": str(server.folder / "repositories"),
                "GIT_HTTP_EXPORT_ALL": "1",
                "REMOTE_USER": "agent",
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("content-type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("content-encoding", ""),
                "GIT_PROTOCOL": self.headers.get("git-protocol", ""),
            }
            done = subprocess.run(BACKEND, input=body, env=env, capture_output=True, check=True)
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            pairs = [line.split(": ", 1) for line in head.decode().split("\r\n")]
            status = next((int(value[:3]) for name, value in pairs if name == "Status"), 200)
            self._send(status, content, [(n, v) for n, v in pairs if n not in ("Status", "Content-Length")])

        def _send(self, status: int, body: bytes, headers: list[tuple[str, str]]) -> None:
            self.send_response(status)
            for name, value in (*headers, ("content-length", str(len(body)))):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    return Handler


def _basic(token: str) -> str:
    return f"Basic {_coded(f'x-access-token:{token}')}"


def _coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
