"""What a workspace may declare of an MCP server, and how a run is given it."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from sexton_actors.manifest.known_names import MCP_SERVER, mcp_server
from sexton_actors.manifest.network_fields import variable_fault

MAX_URL_CHARS: Final = 1_024
MAX_VALUES: Final = 16
"""Headers, and variables, each."""
MAX_VALUE_CHARS: Final = 2_048
MAX_TOOLS: Final = 128
MAX_TOOL_CHARS: Final = 128
MAX_PORT: Final = 65_535
_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
# As a proxy compares it: no user, no query, and nothing that can be spelt in another way.
_URL = re.compile(
    rf"(https?)://({_LABEL}(?:\.{_LABEL})*)(:[1-9][0-9]{{0,4}})?((?:/(?!\.\.?(?:/|\Z))[A-Za-z0-9._~@=+-]+)*/?)"
)
_HEADER = re.compile("[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
_VALUE = re.compile(r"[\x20-\x7e]*")
_PLACE = re.compile(r"\$\{secrets\.([A-Za-z0-9_-]{1,64})\.([A-Za-z0-9_.-]{1,128})\}")
_OF_HTTP: Final = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect"}
    | {"accept", "accept-encoding", "content-type", "proxy-authorization", "proxy-connection"}
    | {"mcp-session-id", "mcp-protocol-version", "last-event-id"}
)
"""Headers that the client of the protocol sets itself."""
_LOOPBACK: Final = re.compile(r"localhost|127(?:\.[0-9]{1,3}){3}")


class Place(NamedTuple):
    """Where a secret stands: a field of a credential."""

    credential: str
    field: str

    def __str__(self) -> str:
        return f"{self.credential}.{self.field}"


def places(values: Mapping[str, Any]) -> list[Place]:
    """The secrets that these values name, each once.

    >>> [str(place) for place in places({"authorization": "Bearer ${secrets.hub.token}", "x-plain": "1"})]
    ['hub.token']
    """
    found = (_PLACE.findall(str(value)) for value in values.values())
    return list(dict.fromkeys(Place(*one) for several in found for one in several))


def host_of(url: str) -> str:
    """The host of a declared address, in lower case.

    >>> host_of("https://MCP.example.com:8443/mcp")
    'mcp.example.com'
    """
    return urlsplit(url).hostname or ""


def may_go(host: str, named: Sequence[str]) -> bool:
    """Whether a credential whose owner named hosts may go to this one; none were named: to any.

    >>> (
    ...     may_go("mcp.example.com", ["*.Example.com"]),
    ...     may_go("example.com", ["*.example.com"]),
    ...     may_go("a.b", []),
    ... )
    (True, False, True)
    """
    hosts = [one.lower() for one in named]
    return not hosts or any(one == host or (one.startswith("*.") and host.endswith(one[1:])) for one in hosts)


def fault(
    name: str,
    *,
    url: str,
    command: str,
    headers: Mapping[str, str],
    env: Mapping[str, str],
    tools: Sequence[str],
) -> tuple[str, str] | None:
    """What is wrong with a declaration: the field and a sentence; None: it can be kept.

    >>> fault("a", url="https://x.com/mcp", command="", headers={}, env={}, tools=())
    >>> fault("a", url="", command="", headers={}, env={}, tools=())
    ('url', 'give either a url or a command')
    >>> fault("a", url="https://x.com/?k=1", command="", headers={}, env={}, tools=())[0]
    'url'
    """
    if not MCP_SERVER.fullmatch(name):
        return "name", f"must match {MCP_SERVER.pattern}"
    if bool(url) == bool(command):
        return "url", "give either a url or a command"
    if url:
        return _fault_of_address(url, headers, env) or _fault_of_tools(tools)
    if not MCP_SERVER.fullmatch(command):
        return "command", f"is the name of a server that runners offer; it must match {MCP_SERVER.pattern}"
    if headers:
        return "headers", "a command is sent no headers"
    return _fault_of_env(env) or _fault_of_tools(tools)


def _fault_of_address(url: str, headers: Mapping[str, str], env: Mapping[str, str]) -> tuple[str, str] | None:
    found = _URL.fullmatch(url)
    if found is None or len(url) > MAX_URL_CHARS or int((found[3] or ":1")[1:]) > MAX_PORT:
        return "url", "must be https://HOST/PATH, perhaps with a port; no user, query or escaped characters"
    if env:
        return "env", "a server with a url is given no variables"
    if len(headers) > MAX_VALUES:
        return "headers", f"at most {MAX_VALUES}"
    for header, value in headers.items():
        if not _HEADER.fullmatch(header) or header.lower() in _OF_HTTP:
            return "headers", f"{header[:64]!r} cannot be set"
        if wrong := _fault_of_value(value):
            return "headers", f"{header}: {wrong}"
    if len({header.lower() for header in headers}) < len(headers):
        return "headers", "a header stands there twice"
    if found[1] == "http" and places(headers) and not _LOOPBACK.fullmatch(found[2].lower()):
        return "url", "a secret goes out over https only"
    return None


def _fault_of_env(env: Mapping[str, str]) -> tuple[str, str] | None:
    if len(env) > MAX_VALUES:
        return "env", f"at most {MAX_VALUES}"
    for name, value in env.items():
        if wrong := variable_fault(name) or _fault_of_value(value):
            return "env", f"{name[:64]}: {wrong}"
    return None


def _fault_of_value(value: str) -> str | None:
    if len(value) > MAX_VALUE_CHARS or not _VALUE.fullmatch(value):
        return f"must be at most {MAX_VALUE_CHARS} printable ASCII characters"
    if "${" in _PLACE.sub("", value):
        return "a secret is written ${secrets.NAME.FIELD}"
    return None


def _fault_of_tools(tools: Sequence[str]) -> tuple[str, str] | None:
    wrong = [one for one in tools if not (1 <= len(one) <= MAX_TOOL_CHARS and one.isprintable())]
    if wrong or len(tools) > MAX_TOOLS:
        return "tools", f"at most {MAX_TOOLS} names of 1 to {MAX_TOOL_CHARS} characters"
    return None


def not_allowed(name: str, allowed: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """The tools of a server that an agent names, and that its workspace does not allow.

    >>> not_allowed("hub", ["read"], ["hub.read", "hub.drop", "mcp:hub", "other.x"])
    ['drop']
    """
    named = [
        one.partition(".")[2] for one in wanted if mcp_server(one) == name and not one.startswith("mcp:")
    ]
    return [one for one in named if allowed and one not in allowed]
