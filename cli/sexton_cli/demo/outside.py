"""What stands in for the world that the demo's agents reach: a git server and an API of issues."""

import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sexton_cli.demo.git_server import GitServer, backend, open_git_server
from sexton_cli.demo.issues_api import IssuesApi, open_issues_api

LEDGER: Final = "harbour/ledger"
"""The repository of the issue that the example's event is about."""


@dataclass(frozen=True, slots=True)
class Outside:
    """The servers, and the tokens that they ask for. ``git`` is None where git here cannot serve."""

    api: IssuesApi
    api_token: str = field(repr=False)
    git: GitServer | None
    git_token: str = field(repr=False)

    @property
    def environment(self) -> Mapping[str, str]:
        """What runners are told of it: loopback is refused to agents unless an operator allows it by name."""
        loopback = {"SEXTON_HTTP_ALLOW_LOOPBACK": "1"}
        if self.git is None:
            return loopback
        place = self.git.base_url.removeprefix("https://")
        return loopback | {
            "SEXTON_EGRESS_PRIVATE_HOSTS": place,
            "SEXTON_EGRESS_CA_BUNDLE": str(self.git.certificate),
        }


@asynccontextmanager
async def open_outside(folder: Path) -> AsyncIterator[Outside]:
    """Serve both on loopback, each with a token of its own."""
    api_token, git_token = (f"ghp_{secrets.token_hex(18)}" for _ in range(2))
    program = backend()
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(open_issues_api(LEDGER, api_token))
        git = None
        if program is not None:
            git = await stack.enter_async_context(open_git_server(folder, git_token, program))
        yield Outside(api, api_token, git, git_token)
