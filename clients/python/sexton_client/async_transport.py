"""Makes calls on asyncio and on trio."""

import random
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, TypeVar
from uuid import uuid4

import anyio
import httpx2

from sexton_client.async_streams import AsyncStream
from sexton_client.errors import NotUnderstood
from sexton_client.faults import missed
from sexton_client.generated import models, operations
from sexton_client.messages import (
    WORKSPACE,
    Answer,
    Missed,
    Operation,
    Outcome,
    Request,
    build,
    check_base_url,
    check_token,
    read,
)
from sexton_client.retries import Patience, next_wait_s
from sexton_client.transport import MAX_ANSWER_BYTES, TIMEOUT, choose_workspace

T = TypeVar("T")


class AsyncTransport:
    """One server, one token, one pool of connections. Tasks of one event loop may share it."""

    def __init__(
        self,
        base_url: str,
        token: str | None = None,
        *,
        workspace: str | None = None,
        patience: Patience | None = None,
        http: httpx2.AsyncClient | None = None,
    ) -> None:
        """``workspace``: the id or the name of the one that calls are about; None: the only one there is.

        ``http``: whose pool is used, and then is not closed here; by itself it heeds the proxy variables.
        """
        self.base_url = check_base_url(base_url)
        self._token = check_token(token)
        self._workspace = workspace
        self._workspace_id: str | None = None
        self.patience = patience or Patience()
        self._owns_http = http is None
        self._http = http or httpx2.AsyncClient(timeout=TIMEOUT)
        self._sleep: Callable[[float], Awaitable[None]] = anyio.sleep

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.base_url}>"

    async def aclose(self) -> None:
        """Give the connections back."""
        if self._owns_http:
            await self._http.aclose()

    async def call(
        self,
        operation: Operation,
        shape: type[T],
        *,
        path: Mapping[str, str | None],
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | bytes | None = None,
        key: str | None = None,
    ) -> T:
        """Make one call, again where that is safe and may help. Raises SextonError."""
        if operation.keyed and key is None:
            key = str(uuid4())
        filled = await self._filled(path)
        request = build(operation, path=filled, query=query, body=body, key=key)
        outcome = await self.send(request, self._token)
        return read(outcome, shape, self.base_url, now_s=time.time())

    async def send(self, request: Request, token: Mapping[str, str]) -> Outcome:
        """Send it as often as is worth it. Raises NotUnderstood for an answer without end."""
        tries = 0
        while True:
            tries += 1
            outcome = await self._send_once(request, token)
            wait_s = next_wait_s(
                request, tries, outcome, self.patience, now_s=time.time(), dice=random.random()
            )
            if wait_s is None:
                return outcome
            await self._sleep(wait_s)

    async def _send_once(self, request: Request, token: Mapping[str, str]) -> Outcome:
        try:
            async with self._http.stream(
                request.method,
                request.path if "://" in request.path.partition("?")[0] else f"{self.base_url}{request.path}",
                content=request.content,
                headers={**request.headers, **token},
                follow_redirects=False,
            ) as response:
                body = await _bounded(response.aiter_bytes(), self.base_url)
                return Answer(response.status_code, response.headers, body)
        except httpx2.TransportError as fault:
            return missed(fault)
        except httpx2.DecodingError:
            return Missed(sent=True, why="the answer is garbled")

    async def open_stream(
        self,
        operation: Operation,
        *,
        path: Mapping[str, str | None],
        query: Mapping[str, Any],
        last_event_id: str | None,
    ) -> AsyncStream:
        """Follow what happens; see AsyncStream."""
        request = build(operation, path=await self._filled(path), query=query)
        headers = {**request.headers, **self._token}
        stream = AsyncStream(
            self._http,
            self.base_url,
            request.path,
            headers=headers,
            last_event_id=last_event_id,
            patience=self.patience,
        )
        return await stream.open()

    def walk(self, page: Callable[[str | None], Awaitable[Any]]) -> AsyncIterator[Any]:
        """All items of a list, page by page. ``page`` gets one by its cursor."""
        return _Items(page, self.base_url)

    def walk_pages(self, page: Callable[[int], Awaitable[Any]]) -> AsyncIterator[Any]:
        """All items of a list with numbered pages, from the first on."""
        return _NumberedItems(page)

    async def workspace_id(self) -> str:
        """The workspace that calls are about. Raises SextonError where there are several."""
        if self._workspace_id is None:
            found = await self.call(operations.LIST_WORKSPACES, models.WorkspaceList, path={})
            self._workspace_id = choose_workspace(found.items, self._workspace)
        return self._workspace_id

    async def _filled(self, path: Mapping[str, str | None]) -> Mapping[str, str | None]:
        if WORKSPACE not in path or path[WORKSPACE] is not None:
            return path
        return {**path, WORKSPACE: await self.workspace_id()}


class _Items(AsyncIterator[Any]):
    """No generator, so that whoever leaves early has nothing to close."""

    def __init__(self, page: Callable[[str | None], Awaitable[Any]], base_url: str) -> None:
        self._page = page
        self._base_url = base_url
        self._cursor: str | None = None
        self._ahead: deque[Any] = deque()
        self._has_more = True

    async def __anext__(self) -> Any:
        while not self._ahead:
            if not self._has_more:
                raise StopAsyncIteration
            found = await self._page(self._cursor)
            self._ahead.extend(found.items)
            self._has_more = found.next_cursor is not None
            if self._has_more and found.next_cursor == self._cursor:
                raise NotUnderstood(f"{self._base_url} sends the same page again.", "Compare the versions.")
            self._cursor = found.next_cursor
        return self._ahead.popleft()


class _NumberedItems(AsyncIterator[Any]):
    """The same for pages with numbers, of which the last one is empty."""

    def __init__(self, page: Callable[[int], Awaitable[Any]]) -> None:
        self._page = page
        self._number = 0
        self._ahead: deque[Any] = deque()

    async def __anext__(self) -> Any:
        if not self._ahead:
            self._number += 1
            self._ahead.extend((await self._page(self._number)).items)
            if not self._ahead:
                raise StopAsyncIteration
        return self._ahead.popleft()


async def _bounded(pieces: AsyncIterator[bytes], base_url: str) -> bytes:
    body = bytearray()
    async for piece in pieces:
        body += piece
        if len(body) > MAX_ANSWER_BYTES:
            raise NotUnderstood(
                f"{base_url} sends more than {MAX_ANSWER_BYTES} bytes.", "Ask for less at once."
            )
    return bytes(body)


class AsyncResource:
    """A group of calls."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._transport.base_url}>"
