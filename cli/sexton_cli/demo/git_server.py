"""A git server of the demo's own: git's http-backend over TLS, which lets in who knows a token."""

import base64
import hmac
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import trio

from sexton_cli.demo.certificate import make_certificate
from sexton_cli.demo.stand_in import Reply, StandIn, serving

BACKEND_S: Final = 30.0
USER: Final = "x-access-token"
AS_DEPLOYER: Final = ("-c", "user.name=octo-deployer", "-c", "user.email=octo-deployer@example.org")


def backend() -> Path | None:
    """Where git keeps its server for HTTP; None where there is no git, or one without it.

    Debian's and Fedora's packages hold it; some minimal ones leave it out.
    """
    git = shutil.which("git")
    if git is None:
        return None
    told = subprocess.run([git, "--exec-path"], capture_output=True, text=True, check=False)
    found = Path(told.stdout.strip()) / "git-http-backend"
    return found if told.returncode == 0 and found.is_file() else None


class GitServer(StandIn):
    """Bare repositories below a folder."""

    max_body_bytes = 64 << 20

    def __init__(self, folder: Path, token: str, program: Path) -> None:
        super().__init__()
        self.folder, self.token, self._program = folder, token, program
        self._git = shutil.which("git") or "git"
        self.certificate = Path()

    def __repr__(self) -> str:
        return f"<GitServer of {self.folder}, {len(self.asked)} asked>"

    def git(self, repository: str, *words: str, given: str = "") -> str:
        """Run git in a repository, and give what it prints. Raises ``CalledProcessError``."""
        where, command = self.folder / f"{repository}.git", [self._git, *AS_DEPLOYER, *words]
        done = subprocess.run(
            command, cwd=where, env=_clean(), input=given, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def admits(self, who: str) -> bool:
        """Whether this header ``authorization`` is of somebody who knows the token."""
        wanted = f"Basic {base64.b64encode(f'{USER}:{self.token}'.encode()).decode()}"
        return hmac.compare_digest(who.encode(), wanted.encode())

    async def answer(self, scope: Mapping[str, Any], headers: Mapping[str, str], body: bytes) -> Reply:
        """Let git answer whoever knows the token."""
        if not self.admits(headers.get("authorization", "")):
            return Reply(401, [(b"www-authenticate", b'Basic realm="git"')], b"who are you\n")
        environment = {
            **_clean(),
            "GIT_PROJECT_ROOT": str(self.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REMOTE_USER": USER,
            "REMOTE_ADDR": "127.0.0.1",
            "REQUEST_METHOD": scope["method"],
            "PATH_INFO": scope["path"],
            "QUERY_STRING": scope["query_string"].decode("latin-1"),
            "CONTENT_TYPE": headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": headers.get("content-encoding", ""),
            "GIT_PROTOCOL": headers.get("git-protocol", ""),
        }
        with trio.move_on_after(BACKEND_S):
            done = await trio.run_process(
                [str(self._program)], stdin=body, env=environment, capture_stdout=True, check=False
            )
            return _parted(done.stdout)
        return Reply(504, [], b"git took too long\n")


def _parted(output: bytes) -> Reply:
    r"""The status, headers and body of what a CGI program wrote.

    >>> _parted(b"Status: 404 Not Found\r\nX-A: b\r\n\r\nno")
    Reply(status=404, headers=[(b'x-a', b'b')], content=b'no')
    """
    head, _, content = output.partition(b"\r\n\r\n")
    pairs = [line.partition(b":") for line in head.split(b"\r\n") if line]
    known = [(name.strip().lower(), value.strip()) for name, _, value in pairs]
    status = next((int(value[:3]) for name, value in known if name == b"status"), 200)
    return Reply(status, [(n, v) for n, v in known if n not in {b"status", b"content-length"}], content)


def _clean() -> dict[str, str]:
    """Without whatever else the environment would have git do."""
    return {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
    }


@asynccontextmanager
async def open_git_server(folder: Path, token: str, program: Path) -> AsyncIterator[GitServer]:
    """Serve the repositories below ``folder`` on a free port of loopback, by the name localhost."""
    server = GitServer(folder / "repositories", token, program)
    async with serving_git(server):
        yield server


@asynccontextmanager
async def serving_git(server: GitServer) -> AsyncIterator[None]:
    """Serve it over TLS; its certificate stands beside its folder."""
    server.folder.mkdir(parents=True)
    tls = make_certificate(server.folder.parent, "localhost")
    server.certificate = tls.certificate
    async with serving(server, tls):
        yield


def make_repository(server: GitServer, name: str) -> str:
    """Make a repository whose last commit breaks the deployment; give that commit's id.

    It is a merge, as the event of the example says, of a branch that changed one file.
    """
    (server.folder / f"{name}.git").mkdir(parents=True)
    server.git(name, "init", "--quiet", "--bare", "--initial-branch=main", ".")
    server.git(name, "config", "http.receivepack", "true")
    good = _commit(server, name, "batch_size = 1\n", "Print labels one by one")
    bad = _commit(server, name, "batch_size = 50\n", "Print labels in batches of fifty", good)
    tree = server.git(name, "rev-parse", f"{bad}^{{tree}}")
    subject = "Merge pull request #482 from octo-org/label-batching"
    merged = server.git(name, "commit-tree", tree, "-p", good, "-p", bad, "-m", subject)
    server.git(name, "update-ref", "refs/heads/main", merged)
    return merged


def _commit(server: GitServer, name: str, content: str, message: str, *parents: str) -> str:
    blob = server.git(name, "hash-object", "-w", "--stdin", given=content)
    tree = server.git(name, "mktree", given=f"100644 blob {blob}\tlabels.toml\n")
    words = [word for parent in parents for word in ("-p", parent)]
    return server.git(name, "commit-tree", tree, *words, "-m", message)
