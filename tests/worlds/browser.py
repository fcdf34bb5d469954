"""A person's browser, as far as HTTP shows one: it keeps cookies and says where its requests come from."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from sexton_http.identity.browsers import Browsers
from tests.worlds.answer_checks import check_answer
from tests.worlds.http import HttpWorld
from tests.worlds.trust import TRUST

ACCEPT = {"accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


class Visitor:
    """One browser."""

    def __init__(self, world: HttpWorld, client: httpx2.AsyncClient) -> None:
        self.world = world
        self.client = client

    @property
    def cookies(self) -> dict[str, str]:
        return {cookie.name: cookie.value or "" for cookie in self.client.cookies.jar}

    async def get(self, path: str, **rest: Any) -> httpx2.Response:
        answer = await self.client.get(path, **rest)
        await check_answer(answer)
        return answer

    async def post(self, path: str, site: str = "same-origin", **rest: Any) -> httpx2.Response:
        headers = {"sec-fetch-site": site, **rest.pop("headers", {})}
        answer = await self.client.post(path, headers=headers, **rest)
        await check_answer(answer)
        return answer

    async def link(self) -> str:
        """The path of a fresh sign-in link of the admin."""
        url = await Browsers(self.world.ctx).offer(self.world.installation.user_id)
        return url.removeprefix(self.world.base_url)

    async def sign_in(self) -> "Visitor":
        answer = await self.post(await self.link())
        assert answer.status_code == 303, answer.text
        return self

    async def token(self, **body: Any) -> str:
        rest: dict[str, Any] = {"json": body} if body else {}
        answer = await self.post("/auth/token", **rest)
        assert answer.status_code == 200, answer.text
        token: str = answer.json()["token"]
        return token

    async def is_signed_in(self) -> bool:
        return "Signed in as" in (await self.get("/")).text


@asynccontextmanager
async def visiting(world: HttpWorld) -> AsyncIterator[Visitor]:
    async with httpx2.AsyncClient(
        base_url=world.base_url, timeout=15, headers=ACCEPT, verify=TRUST
    ) as client:
        yield Visitor(world, client)


def text_of(page: str) -> str:
    """What a page says, without its markup."""
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())
