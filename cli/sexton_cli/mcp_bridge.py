"""Carries the messages of an assistant that speaks MCP over standard input and output to the server."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from sexton_cli.client import Client
from sexton_cli.exchange import Response
from sexton_cli.exits import Fault

AT_ONCE: Final = 32
"""Calls under way; one more waits for its turn."""
LINE_BYTES: Final = 256 * 1024
"""What the server takes as one message."""
ACCEPT: Final = {"accept": "application/json, text/event-stream"}
SESSION: Final = "mcp-session-id"
INTERNAL: Final = -32603
PARSE_ERROR: Final = -32700
BAD_REQUESTS: Final = 400
META: Final = "io.modelcontextprotocol/protocolVersion"
NAMES: Final[Mapping[str, str]] = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""By the method: the parameter that is repeated in a header."""


class Bridge:
    """One assistant's connection. Each call has a thread, for it may wait for what a later message says."""

    def __init__(self, client: Client, path: str, write: Callable[[bytes], None]) -> None:
        """``write`` takes one message; it is never called by two threads at once."""
        self._client = client
        self._path = path
        self._write = write
        self._lock = threading.Lock()
        self._room = threading.BoundedSemaphore(AT_ONCE)
        self._session: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"<Bridge to {self._path}>"

    def run(self, lines: Iterable[bytes]) -> None:
        """Carry every line until there are no more, and wait for the answers that are still to come."""
        threads: list[threading.Thread] = []
        for line in lines:
            if not line.strip():
                continue
            message = _read(line)
            if message is None:
                self._fail(None, PARSE_ERROR, f"a line is one JSON object of at most {LINE_BYTES} bytes")
                continue
            if message.get("method") == "initialize" or "id" not in message or "method" not in message:
                self._carry(message)  # What comes after it may depend on it.
                continue
            threads = [thread for thread in threads if thread.is_alive()]
            self._room.acquire()
            threads.append(threading.Thread(target=self._carry_in_turn, args=(message,), daemon=True))
            threads[-1].start()
        for thread in threads:
            thread.join()

    def _carry_in_turn(self, message: Mapping[str, Any]) -> None:
        try:
            self._carry(message)
        finally:
            self._room.release()

    def _carry(self, message: Mapping[str, Any]) -> None:
        asked = message.get("id") if "method" in message else None
        try:
            headers = {**ACCEPT, **self._session, **headers_of(message)}
            with self._client.opened(self._path, msgspec.json.encode(message), headers) as response:
                answered = False
                for found in _messages(response):
                    answered = True
                    self._note_session(response, found)
                    self._send(found)
                if not answered and asked is not None:
                    self._fail(asked, INTERNAL, f"the server answered HTTP {response.status_code}")
        except Fault as fault:
            if asked is not None:
                self._fail(asked, INTERNAL, fault.line())

    def _note_session(self, response: Response, found: bytes) -> None:
        session = response.headers.get(SESSION)
        if session is None:
            return
        result = (_read(found) or {}).get("result")
        version = result.get("protocolVersion") if isinstance(result, dict) else None
        named = {"mcp-protocol-version": version} if isinstance(version, str) else {}
        self._session = {SESSION: session, **named}

    def _fail(self, asked: Any, code: int, text: str) -> None:
        error = {"jsonrpc": "2.0", "id": asked, "error": {"code": code, "message": text}}
        self._send(msgspec.json.encode(error))

    def _send(self, message: bytes) -> None:
        with self._lock:
            self._write(message)


def headers_of(message: Mapping[str, Any]) -> dict[str, str]:
    """What a request of a revision without a handshake repeats in its headers.

    >>> headers_of({"method": "tools/list", "params": {"_meta": {META: "2026-07-28"}}})
    {'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list'}
    >>> headers_of({"method": "tools/list"})
    {}
    """
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    version = meta.get(META) if isinstance(meta, dict) else None
    if not isinstance(params, dict) or not isinstance(version, str):
        return {}
    method = str(message.get("method"))
    named = params.get(NAMES.get(method, ""))
    name = {"mcp-name": named} if isinstance(named, str) and named.isascii() else {}
    return {"mcp-protocol-version": version, "mcp-method": method, **name}


def _read(line: bytes) -> dict[str, Any] | None:
    if len(line) > LINE_BYTES:
        return None
    try:
        message = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def _messages(response: Response) -> Iterator[bytes]:
    """Each message of an answer, a line each. What the server refuses as a request becomes an error."""
    media = response.headers.get("content-type", "").partition(";")[0].strip()
    if media == "text/event-stream":
        for line in response.iter_lines():
            if line.startswith("data:"):
                yield line.removeprefix("data:").strip().encode()
    elif media == "application/json":
        yield response.read().replace(b"\n", b" ")
    elif response.status_code >= BAD_REQUESTS:
        problem = _read(response.read()) or {}
        why = f"{problem.get('error_code', response.status_code)}: {problem.get('detail', 'refused')}"
        raise Fault(why, status=1)
