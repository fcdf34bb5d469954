"""The demo's git server, with one repository, and a page that says back what it was asked with."""

import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sexton_cli.demo import git_server as demo
from sexton_cli.demo.stand_in import Reply

SHOP = "shop"
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


class GitServer(demo.GitServer):
    """It lets in bearers of the token, too. ``heard`` is what came in: method, path, and who it was by."""

    def __init__(self, folder: Path, token: str, program: Path) -> None:
        super().__init__(folder, token, program)
        self.heard: list[tuple[str, str, str]] = []

    @property
    def port(self) -> int:
        return urlsplit(self.base_url).port or 0

    def admits(self, who: str) -> bool:
        """Tell whether it is of somebody who knows the token."""
        return super().admits(who) or who == f"Bearer {self.token}"

    async def answer(self, scope: Mapping[str, Any], headers: Mapping[str, str], body: bytes) -> Reply:
        """Answer as the demo's, and ``/echo`` with what was sent."""
        who = headers.get("authorization", "")
        self.heard.append((scope["method"], scope["path"], who))
        if scope["path"] == "/echo" and self.admits(who):
            coded = base64.b64encode(who.encode()).decode()
            return Reply(200, [], f"you said {who}, in base64 {coded}".encode())
        return await super().answer(scope, headers, body)

    def log(self, branch: str) -> list[str]:
        """Give the subjects of a branch's commits, the newest first."""
        return self.git(SHOP, "log", "--format=%s", branch).splitlines()


@asynccontextmanager
async def open_git_server(folder: Path, token: str) -> AsyncIterator[GitServer]:
    """Serve ``shop.git``, which has one commit."""
    program = demo.backend()
    assert program is not None, "git has no http-backend here"
    server = GitServer(folder / "repositories", token, program)
    async with demo.serving_git(server):
        (server.folder / f"{SHOP}.git").mkdir()
        server.git(SHOP, "init", "--quiet", "--bare", "--initial-branch=main", ".")
        commit = server.git(SHOP, "commit-tree", server.git(SHOP, "mktree"), "-m", "The first")
        server.git(SHOP, "update-ref", "refs/heads/main", commit)
        yield server
