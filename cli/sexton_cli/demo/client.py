"""A client of the HTTP interface, as any user could write one."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import orjson

TIMEOUT_S = 40.0


class Answer(NamedTuple):
    status: int
    body: dict[str, Any]


class StreamFrame(NamedTuple):
    id: str
    kind: str
    data: dict[str, Any]


class Client:
    """Calls with one bearer token; answers are values, whatever their status."""

    def __init__(self, http: httpx2.AsyncClient, token: str | None) -> None:
        self.http = http
        self.headers = {"authorization": f"Bearer {token}"} if token else {}

    async def get(self, path: str) -> Answer:
        return _answer(await self.http.get(path, headers=self.headers))

    async def post(self, path: str, body: Mapping[str, Any] | None = None) -> Answer:
        content = orjson.dumps(body or {})
        headers = self.headers | {"content-type": "application/json"}
        return _answer(await self.http.post(path, content=content, headers=headers))

    async def put(self, path: str, body: Mapping[str, Any]) -> Answer:
        headers = self.headers | {"content-type": "application/json"}
        return _answer(await self.http.put(path, content=orjson.dumps(body), headers=headers))

    async def patch(self, path: str, body: Mapping[str, Any]) -> Answer:
        headers = self.headers | {"content-type": "application/json"}
        return _answer(await self.http.patch(path, content=orjson.dumps(body), headers=headers))

    async def post_raw(self, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        return _answer(await self.http.post(path, content=body, headers=dict(headers)))

    async def post_files(self, path: str, message: str, files: Sequence[Path]) -> Answer:
        """Send a message that brings files, each under its own name."""
        with ExitStack() as stack:
            parts = [(file.name, (file.name, stack.enter_context(file.open("rb")))) for file in files]
            answer = await self.http.post(path, data={"message": message}, files=parts, headers=self.headers)
        return _answer(answer)

    async def stream(self, path: str, last_id: str | None = None) -> AsyncIterator[StreamFrame]:
        """The frames of an event stream until the server ends it."""
        headers = self.headers | ({"last-event-id": last_id} if last_id else {})
        timeout = httpx2.Timeout(TIMEOUT_S, read=None)
        async with self.http.sse(path, headers=headers, timeout=timeout) as source:
            async for event in source:
                if event.data:
                    yield StreamFrame(event.id, event.event, orjson.loads(event.data))


def _answer(response: httpx2.Response) -> Answer:
    body: dict[str, Any] = orjson.loads(response.content) if response.content else {}
    return Answer(response.status_code, body)
