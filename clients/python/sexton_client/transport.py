"""Makes calls one at a time, for programs without an event loop."""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar
from uuid import uuid4

import httpx2

from sexton_client.errors import NotUnderstood, SextonError
from sexton_client.faults import missed
from sexton_client.frames import SILENCE_S
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
from sexton_client.streams import Stream

T = TypeVar("T")

TIMEOUT: Final = httpx2.Timeout(SILENCE_S, connect=5.0)
"""The server ends ordinary requests after 30 s, and long polls of this client after as long."""
MAX_ANSWER_BYTES: Final = 256 * 1024 * 1024


class Transport:
    """One server, one token, one pool of connections. Threads may share it."""

    def __init__(
        self,
        base_url: str,
        token: str | None = None,
        *,
        workspace: str | None = None,
        patience: Patience | None = None,
        http: httpx2.Client | None = None,
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
        self._http = http or httpx2.Client(timeout=TIMEOUT)
        self._sleep: Callable[[float], None] = time.sleep

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.base_url}>"

    def close(self) -> None:
        """Give the connections back."""
        if self._owns_http:
            self._http.close()

    def call(
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
        filled = self._filled(path)
        request = build(operation, path=filled, query=query, body=body, key=key)
        outcome = self.send(request, self._token)
        return read(outcome, shape, self.base_url, now_s=time.time())

    def send(self, request: Request, token: Mapping[str, str]) -> Outcome:
        """Send it as often as is worth it. Raises NotUnderstood for an answer without end."""
        tries = 0
        while True:
            tries += 1
            outcome = self._send_once(request, token)
            wait_s = next_wait_s(
                request, tries, outcome, self.patience, now_s=time.time(), dice=random.random()
            )
            if wait_s is None:
                return outcome
            self._sleep(wait_s)

    def _send_once(self, request: Request, token: Mapping[str, str]) -> Outcome:
        try:
            with self._http.stream(
                request.method,
                request.path if "://" in request.path.partition("?")[0] else f"{self.base_url}{request.path}",
                content=request.content,
                headers={**request.headers, **token},
                follow_redirects=False,
            ) as response:
                body = _bounded(response.iter_bytes(), self.base_url)
                return Answer(response.status_code, response.headers, body)
        except httpx2.TransportError as fault:
            return missed(fault)
        except httpx2.DecodingError:
            return Missed(sent=True, why="the answer is garbled")

    def open_stream(
        self,
        operation: Operation,
        *,
        path: Mapping[str, str | None],
        query: Mapping[str, Any],
        last_event_id: str | None,
    ) -> Stream:
        """Follow what happens; see Stream."""
        request = build(operation, path=self._filled(path), query=query)
        headers = {**request.headers, **self._token}
        return Stream(
            self._http,
            self.base_url,
            request.path,
            headers=headers,
            last_event_id=last_event_id,
            patience=self.patience,
            sleep=self._sleep,
        )

    def walk(self, page: Callable[[str | None], Any]) -> Iterator[Any]:
        """All items of a list, page by page. ``page`` gets one by its cursor."""
        cursor: str | None = None
        while True:
            found = page(cursor)
            yield from found.items
            if found.next_cursor is None:
                return
            if found.next_cursor == cursor:
                raise NotUnderstood(f"{self.base_url} sends the same page again.", "Compare the versions.")
            cursor = found.next_cursor

    def walk_pages(self, page: Callable[[int], Any]) -> Iterator[Any]:
        """All items of a list with numbered pages, from the first on."""
        number = 1
        while found := page(number).items:
            yield from found
            number += 1

    @property
    def workspace_id(self) -> str:
        """The workspace that calls are about. Raises SextonError where there are several."""
        if self._workspace_id is None:
            found = self.call(operations.LIST_WORKSPACES, models.WorkspaceList, path={})
            self._workspace_id = choose_workspace(found.items, self._workspace)
        return self._workspace_id

    def _filled(self, path: Mapping[str, str | None]) -> Mapping[str, str | None]:
        if WORKSPACE not in path or path[WORKSPACE] is not None:
            return path
        return {**path, WORKSPACE: self.workspace_id}


def choose_workspace(found: list[Any], wanted: str | None) -> str:
    """The id of the one that is wanted, by id or name, or that is the only one. Raises SextonError."""
    if wanted is None and len(found) == 1:
        return str(found[0].workspace_id)
    for row in found:
        if wanted in {row.workspace_id, row.name}:
            return str(row.workspace_id)
    names = ", ".join(sorted(str(row.name) for row in found[:20]))
    if wanted is None:
        raise SextonError(f"No workspace is chosen, and there are {len(found)}.", f"Choose one of: {names}.")
    raise SextonError(f"There is no workspace {wanted!r}.", f"There are: {names}.")


def _bounded(pieces: Iterator[bytes], base_url: str) -> bytes:
    body = bytearray()
    for piece in pieces:
        body += piece
        if len(body) > MAX_ANSWER_BYTES:
            raise NotUnderstood(
                f"{base_url} sends more than {MAX_ANSWER_BYTES} bytes.", "Ask for less at once."
            )
    return bytes(body)


class Resource:
    """A group of calls."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._transport.base_url}>"
