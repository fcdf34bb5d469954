"""JSON-RPC 2.0 as the Model Context Protocol has it over HTTP: one message a body, read and spelled."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
HEADER_MISMATCH: Final = -32020
MISSING_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022
MAX_ID_CHARS: Final = 256
MAX_METHOD_CHARS: Final = 128
MAX_ID: Final = 2**53 - 1

RpcId = int | str


class RpcFault(Exception):
    """A message that gets an error in place of a result."""

    def __init__(self, code: int, text: str, data: Any = None, rpc_id: RpcId | None = None) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code
        self.text = text
        self.data = data
        self.rpc_id = rpc_id
        """The id of the request, where the fault was found before there was a request."""


class RpcRequest(NamedTuple):
    """What wants an answer."""

    id: RpcId
    method: str
    params: Mapping[str, Any]

    @property
    def meta(self) -> Mapping[str, Any]:
        """What stands beside the parameters proper."""
        return object_of(self.params.get("_meta"))


class RpcNote(NamedTuple):
    """What wants none."""

    method: str


class RpcReply(NamedTuple):
    """The client's answer to a question of the server."""

    id: RpcId
    result: Mapping[str, Any]
    """Empty where the client answers with an error."""


class RpcMessage(msgspec.Struct):
    """One JSON-RPC 2.0 message; a batch is not taken."""

    jsonrpc: str
    method: str | msgspec.UnsetType = msgspec.UNSET
    id: int | str | msgspec.UnsetType = msgspec.UNSET
    params: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    result: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


class RpcAnswer(msgspec.Struct):
    """One JSON-RPC 2.0 answer: a result or an error."""

    jsonrpc: str
    id: int | str | None = None
    result: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    error: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


def object_of(value: Any) -> Mapping[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def read_message(raw: bytes) -> RpcRequest | RpcNote | RpcReply:
    """Raises RpcFault for what is no single message.

    >>> read_message(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}')
    RpcRequest(id=1, method='ping', params={})
    >>> read_message(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}')
    RpcNote(method='notifications/initialized')
    >>> read_message(b"[]")
    Traceback (most recent call last):
    sexton_http.routes.mcp.messages.RpcFault: -32600: a batch is not taken; send one message at a time
    """
    try:
        message = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise RpcFault(PARSE_ERROR, "the body is no JSON") from fault
    if isinstance(message, list):
        raise RpcFault(INVALID_REQUEST, "a batch is not taken; send one message at a time")
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise RpcFault(INVALID_REQUEST, "the body is no JSON-RPC 2.0 message")
    if "method" not in message:
        if "id" not in message or not {"result", "error"} & message.keys():
            raise RpcFault(INVALID_REQUEST, "the message has neither a method nor a result")
        return RpcReply(_id_of(message["id"]), object_of(message.get("result")))
    method, params = message["method"], message.get("params", {})
    rpc_id = _id_of(message["id"]) if "id" in message else None
    if not isinstance(method, str) or not 1 <= len(method) <= MAX_METHOD_CHARS:
        raise RpcFault(INVALID_REQUEST, "the method is no name", rpc_id=rpc_id)
    if not isinstance(params, dict):
        raise RpcFault(INVALID_PARAMS, "params is no object", rpc_id=rpc_id)
    return RpcNote(method) if rpc_id is None else RpcRequest(rpc_id, method, params)


def _id_of(value: Any) -> RpcId:
    if isinstance(value, str) and len(value) <= MAX_ID_CHARS:
        return value
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MAX_ID:
        return value
    raise RpcFault(
        INVALID_REQUEST, f"an id is a whole number, or a text of at most {MAX_ID_CHARS} characters"
    )


def spell_result(rpc_id: RpcId, result: Mapping[str, Any]) -> bytes:
    """Give the answer to a request."""
    return msgspec.json.encode({"jsonrpc": "2.0", "id": rpc_id, "result": result})


def spell_fault(rpc_id: RpcId | None, fault: RpcFault) -> bytes:
    """Give the error in place of an answer; the id is null where it could not be read."""
    error = {"code": fault.code, "message": fault.text}
    if fault.data is not None:
        error["data"] = fault.data
    return msgspec.json.encode({"jsonrpc": "2.0", "id": rpc_id, "error": error})


def spell_note(method: str, params: Mapping[str, Any], rpc_id: RpcId | None = None) -> bytes:
    """Give a notification of the server; with an id, a question."""
    asks = {} if rpc_id is None else {"id": rpc_id}
    return msgspec.json.encode({"jsonrpc": "2.0", **asks, "method": method, "params": params})


def as_event(message: bytes) -> bytes:
    r"""Give the message as a server-sent event.

    >>> as_event(b"{}")
    b'event: message\ndata: {}\n\n'
    """
    return b"event: message\ndata: %b\n\n" % message
