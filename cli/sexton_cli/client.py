"""Calls a server on behalf of a person at a terminal, one call at a time."""

import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from http import HTTPStatus
from importlib import import_module
from typing import Any, Final

import msgspec

from sexton_cli.exchange import Connection, Reply, Response, SentEvent
from sexton_cli.exits import PROTOCOL, Fault
from sexton_cli.problems import NotSexton, Refused, read_problem

CONNECTIONS: Final = "sexton_cli.connection"
"""It imports HTTP, which takes longer than all else that help needs: only when a call is made."""
MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024
TRIES: Final = 3
SECONDS: Final = re.compile(r"[0-9]{1,6}")
MAX_RETRY_AFTER_S: Final = 10.0
"""Who is to wait longer is told so instead of being kept."""
IDEMPOTENT: Final = frozenset({"GET", "PUT", "DELETE"})
WAITED_OUT: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
BAD_REQUESTS: Final = 400
NAMED: Final = {"user-agent": "sexton-cli"}
STREAM: Final = "text/event-stream"
BYTES: Final = "application/octet-stream"
EXPIRED: Final = "UZ-AUTH-003"

Renew = Callable[[], str]
"""Gets a fresh token in place of one that has expired; may raise Fault."""
OpenConnection = Callable[[str], AbstractContextManager[Connection]]


class Client:
    """Calls with one bearer token. Raises Refused, Unreachable or NotSexton.

    A call that may be made twice is made again when the server says when; any other never is.
    """

    def __init__(
        self,
        connection: Connection,
        base_url: str,
        token: str | None,
        *,
        sleep: Callable[[float], None],
        renew: Renew | None = None,
    ) -> None:
        self._connection = connection
        self._base_url = base_url
        self._token = _bearing(token)
        self._sleep = sleep
        self._renew = renew

    def __repr__(self) -> str:
        return f"<Client of {self._base_url}>"

    def get(self, path: str) -> dict[str, Any]:
        return self._call("GET", path, None)

    def post(self, path: str, body: Mapping[str, Any], *, key: str = "") -> dict[str, Any]:
        """With a ``key`` the same call may be made again, and is one."""
        return self._call("POST", path, body, key)

    def patch(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return self._call("PATCH", path, body)

    def put(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return self._call("PUT", path, body)

    def put_bytes(self, path: str, body: bytes) -> dict[str, Any]:
        """Send a part of a file."""
        return self._call("PUT", path, body)

    def delete(self, path: str) -> dict[str, Any]:
        """What the server says of it; often nothing."""
        return self._call("DELETE", path, None)

    def follow(self, path: str, last_id: str | None) -> Iterator[SentEvent]:
        """What a stream says until it ends or is cut, from after ``last_id``."""
        try:
            yield from self._follow(path, last_id)
        except Refused as refusal:
            # It refuses at once or not at all, so nothing is said twice.
            if refusal.code != EXPIRED or not self._has_renewed():
                raise
            yield from self._follow(path, last_id)

    def _follow(self, path: str, last_id: str | None) -> Iterator[SentEvent]:
        resumed = {} if last_id is None else {"last-event-id": last_id}
        with self._connection.events(path, {**NAMED, **self._token, **resumed}) as source:
            response = source.response
            if response.status_code != HTTPStatus.OK:
                raise read_problem(self._base_url, response.status_code, self._bounded(response.iter_bytes()))
            if not response.headers.get("content-type", "").startswith(STREAM):
                raise NotSexton(self._base_url, "the answer is no event stream")
            yield from source

    def download(self, path: str) -> Iterator[bytes]:
        """A file piece by piece, however long it is; whoever reads it checks that all of it came."""
        headers = {**NAMED, **self._token, "accept-encoding": "identity"}
        with self._connection.stream("GET", path, None, headers) as response:
            if response.status_code != HTTPStatus.OK:
                raise read_problem(self._base_url, response.status_code, self._bounded(response.iter_bytes()))
            yield from response.iter_bytes()

    def deliver(self, path: str, body: bytes, headers: Mapping[str, str]) -> dict[str, Any]:
        """Send a webhook as its sender would: these bytes, these headers, no token."""
        reply = self._send("POST", path, body, headers)
        if reply.status >= BAD_REQUESTS:
            raise read_problem(self._base_url, reply.status, reply.body)
        return self._document(reply.body)

    @contextmanager
    def opened(self, path: str, body: bytes, headers: Mapping[str, str]) -> Iterator[Response]:
        """A POST whose answer, whatever its status, is read by whoever asked, as it comes."""
        sent = {**NAMED, "content-type": "application/json", **headers}
        for tries_left in (1, 0):
            with self._connection.stream("POST", path, body, sent | self._token) as response:
                expired = response.status_code == HTTPStatus.UNAUTHORIZED and self._renew is not None
                if not expired or not tries_left or not self._has_expired(response):
                    yield response
                    return

    def _has_expired(self, response: Response) -> bool:
        """Whether the token has run out, and another is here now."""
        reply = Reply(response.status_code, response.headers, response.read())
        return _is_expired(reply) and self._has_renewed()

    def look(self, path: str) -> Reply:
        """One answer as it comes, without the token: for what tells about the server itself."""
        return self._send("GET", path, None, {})

    def _call(
        self, method: str, path: str, body: Mapping[str, Any] | bytes | None, key: str = ""
    ) -> dict[str, Any]:
        keyed = {"idempotency-key": key} if key else {}
        reply = self._send(method, path, body, self._token | keyed)
        if _is_expired(reply) and self._has_renewed():
            # A token that has expired was looked at before anything else, so nothing was done yet.
            reply = self._send(method, path, body, self._token | keyed)
        for _ in range(TRIES - 1):
            wait = _wait_s("PUT" if key else method, reply)
            if wait is None:
                break
            sys.stderr.write(f"sexton: the server asks to wait for {wait:g} s\n")
            self._sleep(wait)
            reply = self._send(method, path, body, self._token | keyed)
        if reply.status >= BAD_REQUESTS:
            raise read_problem(self._base_url, reply.status, reply.body)
        if reply.status >= HTTPStatus.MULTIPLE_CHOICES:
            # A token is never carried to where a redirect points.
            raise NotSexton(self._base_url, f"it redirects to {reply.headers.get('location', 'nowhere')}")
        return {} if reply.status == HTTPStatus.NO_CONTENT else self._document(reply.body)

    def _has_renewed(self) -> bool:
        if self._renew is None:
            return False
        self._token = _bearing(self._renew())
        return True

    def _document(self, body: bytes) -> dict[str, Any]:
        try:
            document = msgspec.json.decode(body)  # Whole numbers of any size: senders' bodies have such.
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise NotSexton(self._base_url, "the answer is no JSON object")
        return document

    def _send(
        self, method: str, path: str, body: Mapping[str, Any] | bytes | None, headers: Mapping[str, str]
    ) -> Reply:
        content = body if body is None or isinstance(body, bytes) else msgspec.json.encode(body)
        media = BYTES if method == "PUT" and isinstance(body, bytes) else "application/json"
        typed = {} if body is None else {"content-type": media}
        with self._connection.stream(method, path, content, {**NAMED, **headers, **typed}) as response:
            return Reply(response.status_code, response.headers, self._bounded(response.iter_bytes()))

    def _bounded(self, pieces: Iterator[bytes]) -> bytes:
        body = bytearray()
        for piece in pieces:
            body += piece
            if len(body) > MAX_ANSWER_BYTES:
                raise NotSexton(self._base_url, f"the answer is longer than {MAX_ANSWER_BYTES} bytes")
        return bytes(body)


def _bearing(token: str | None) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"} if token else {}


def _is_expired(reply: Reply) -> bool:
    if reply.status != HTTPStatus.UNAUTHORIZED:
        return False
    fault = read_problem("", reply.status, reply.body)
    return isinstance(fault, Refused) and fault.code == EXPIRED


def _wait_s(method: str, reply: Reply) -> float | None:
    """How long to wait before the same call; None for not at all."""
    if method not in IDEMPOTENT or reply.status not in WAITED_OUT:
        return None
    given = reply.headers.get("retry-after", "")
    if not SECONDS.fullmatch(given) or float(given) > MAX_RETRY_AFTER_S:
        return None
    return float(given)


@contextmanager
def open_client(
    base_url: str,
    token: str | None,
    *,
    sleep: Callable[[float], None] = time.sleep,
    renew: Renew | None = None,
) -> Iterator[Client]:
    """A client of this address; ``token`` None calls as nobody."""
    open_connection: OpenConnection = import_module(CONNECTIONS).open_connection
    with open_connection(base_url) as connection:
        yield Client(connection, base_url, token, sleep=sleep, renew=renew)


Row = Mapping[str, Any]


def field(document: Row, name: str, kind: type) -> Any:
    """A member that a Sexton server always gives; raises Fault when it is missing or of another kind."""
    value = document.get(name)
    if not isinstance(value, kind):
        raise Fault(f"the answer has no {name!r}", "Check the server's version.", status=PROTOCOL)
    return value


def rows(document: Row, kinds: Mapping[str, type]) -> list[Row]:
    """The items of a list, each with the members that are relied upon; raises Fault."""
    items: list[Row] = field(document, "items", list)
    for item in items:
        for name, kind in kinds.items():
            field(item if isinstance(item, dict) else {}, name, kind)
    return items
