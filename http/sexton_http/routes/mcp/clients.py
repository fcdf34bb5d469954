"""Who is at the other end of the MCP endpoint: which revision it speaks, and whether it can ask a person."""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from sexton_http.answers import RequestHead
from sexton_http.identity.auth_keys import AuthKeys
from sexton_http.routes.mcp.messages import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
    RpcFault,
    RpcRequest,
    object_of,
)

STATELESS: Final = ("2026-07-28",)
"""Revisions whose every request says who asks and what the client can do."""
WITH_HANDSHAKE: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Older ones, which begin with ``initialize``."""
VERSION_HEADER: Final = b"mcp-protocol-version"
SESSION_HEADER: Final = b"mcp-session-id"
SESSION_MS: Final = 7 * 24 * 3_600_000
_SESSION: Final = b"mcp session "
_META: Final = "io.modelcontextprotocol/"
_BASE64: Final = re.compile(r"=\?base64\?(?P<text>[A-Za-z0-9+/=]*)\?=")
_STATUSES: Final[Mapping[int, int]] = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}


class SessionOver(Exception):
    """The session of a request is none of ours, or too old: the client begins again."""


class McpClient(NamedTuple):
    """What is known of the client by one request."""

    version: str
    can_ask: bool
    """It can put a question to the person who uses it, as a form."""

    @property
    def is_stateless(self) -> bool:
        return self.version in STATELESS


class _Session(msgspec.Struct, array_like=True):
    """What a session id says: no server keeps anything of a session, so any server serves it."""

    by: str
    version: str
    can_ask: bool
    begun_at: int


def status_of(fault: RpcFault, *, is_stateless: bool) -> int:
    """The status of an answer with an error: older revisions send those of a request as an ordinary answer.

    >>> status_of(RpcFault(METHOD_NOT_FOUND, ""), is_stateless=True)
    404
    >>> status_of(RpcFault(METHOD_NOT_FOUND, ""), is_stateless=False)
    200
    """
    if is_stateless or fault.code in {PARSE_ERROR, INVALID_REQUEST, UNSUPPORTED_VERSION}:
        return _STATUSES.get(fault.code, 200)
    return 200


def says_stateless(head: RequestHead) -> bool:
    """Whether the head names a revision without a handshake, or one that nobody knows."""
    version = head.header(VERSION_HEADER)
    return version is not None and version not in WITH_HANDSHAKE


def begin_session(request: RpcRequest, keys: AuthKeys, by: str, now_ms: int) -> tuple[McpClient, str]:
    """The client of an ``initialize``, and the id of its session: what the client can do, signed."""
    asked = request.params.get("protocolVersion")
    if not isinstance(asked, str):
        raise RpcFault(INVALID_PARAMS, "protocolVersion is missing")
    version = asked if asked in WITH_HANDSHAKE else WITH_HANDSHAKE[-1]
    client = McpClient(version, _can_ask(request.params.get("capabilities")))
    session = _Session(by, version, client.can_ask, now_ms)
    return client, keys.sign(_SESSION + msgspec.json.encode(session))


def client_of(head: RequestHead, request: RpcRequest, keys: AuthKeys, by: str, now_ms: int) -> McpClient:
    """The client of any other request. Raises RpcFault and SessionOver."""
    if says_stateless(head):
        return _stateless_client(head, request)
    signed = head.header(SESSION_HEADER)
    if signed is None:
        # Older clients that drop the header are served; only that they can ask a person is not known.
        return McpClient(head.header(VERSION_HEADER) or WITH_HANDSHAKE[1], can_ask=False)
    session = _read_session(signed, keys)
    if session.by != by or not 0 <= now_ms - session.begun_at <= SESSION_MS:
        raise SessionOver
    return McpClient(session.version, session.can_ask)


def _read_session(signed: str, keys: AuthKeys) -> _Session:
    payload = keys.check(signed) if signed.isascii() else None
    if payload is None or not payload.startswith(_SESSION):
        raise SessionOver
    try:
        return msgspec.json.decode(payload.removeprefix(_SESSION), type=_Session)
    except msgspec.MsgspecError:
        raise SessionOver from None


def _stateless_client(head: RequestHead, request: RpcRequest) -> McpClient:
    meta, named = request.meta, head.header(VERSION_HEADER)
    if named not in STATELESS and _META + "protocolVersion" not in meta:
        raise RpcFault(UNSUPPORTED_VERSION, "unsupported protocol version", _unsupported(named))
    lacking = [name for name in ("protocolVersion", "clientCapabilities") if _META + name not in meta]
    if lacking:
        raise RpcFault(INVALID_PARAMS, f"params._meta lacks {_META}{lacking[0]}")
    version = meta[_META + "protocolVersion"]
    if named != version:
        raise RpcFault(HEADER_MISMATCH, "the header MCP-Protocol-Version differs from the body")
    if head.header(b"mcp-method") != request.method:
        raise RpcFault(HEADER_MISMATCH, "the header Mcp-Method differs from the body")
    name = request.params.get("name")
    if request.method == "tools/call" and name is not None and _plain(head.header(b"mcp-name")) != name:
        raise RpcFault(HEADER_MISMATCH, "the header Mcp-Name differs from the body")
    if version not in STATELESS:
        raise RpcFault(UNSUPPORTED_VERSION, "unsupported protocol version", _unsupported(version))
    return McpClient(version, _can_ask(meta[_META + "clientCapabilities"]))


def _unsupported(version: Any) -> dict[str, Any]:
    return {"supported": [*STATELESS, *WITH_HANDSHAKE], "requested": str(version)[:64]}


def _plain(header: str | None) -> str | None:
    """A header's value, which may be base64 where it is no ASCII.

    >>> _plain("event_get"), _plain("=?base64?ZXZlbnQ=?=")
    ('event_get', 'event')
    """
    found = None if header is None else _BASE64.fullmatch(header)
    if found is None:
        return header
    try:
        return base64.b64decode(found["text"], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def _can_ask(capabilities: Any) -> bool:
    """Whether a client's capabilities have questions as forms; older clients name no kinds.

    >>> [
    ...     _can_ask(c)
    ...     for c in ({"elicitation": {}}, {"elicitation": {"form": {}}}, {"elicitation": {"url": {}}}, {})
    ... ]
    [True, True, False, False]
    """
    asks = object_of(capabilities).get("elicitation")
    return isinstance(asks, dict) and (not asks or "form" in asks)
