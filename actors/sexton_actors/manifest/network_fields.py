"""Reads where an agent's runs may go, and the variables that their programs find."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from sexton_actors.manifest.fields import Fields
from sexton_actors.manifest.model import NetworkRule
from sexton_actors.manifest.nodes import Scalar, Table

MAX_PARTS: Final = 16
"""Ports, methods and paths of one entry, each."""
MAX_PATH_CHARS: Final = 256
MAX_PORT: Final = 65_535
MAX_ENV: Final = 64
MAX_ENV_CHARS: Final = 4_096

_ENTRY = frozenset({"host", "ports", "methods", "paths"})
_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST = re.compile(rf"(?:\*\.)?{_LABEL}(?:\.{_LABEL})*")
_PORT = re.compile("[1-9][0-9]{0,4}")
_METHOD = re.compile("[A-Z][A-Z-]{0,15}")
# Whole segments as a proxy compares them: nothing that can be spelt in another way, and no way back up.
_PATH = re.compile(r"/|(?:/(?!\.\.?(?:/|$))[A-Za-z0-9._~!$&'()*+,;=:@-]+)+/?")
_VARIABLE = re.compile("[A-Za-z_][A-Za-z0-9_]{0,63}")
_RUNNERS_OWN = re.compile(
    "PATH|HOME|TMPDIR|LANG|IFS|ENV|BASH_ENV|PYTHONPATH|PYTHONHOME|LD_.*|SEXTON_.*|(?i:(?:https?|all|no)_proxy)"
    "|SSL_CERT_FILE|SSL_CERT_DIR|CURL_CA_BUNDLE|GIT_SSL_CAINFO|REQUESTS_CA_BUNDLE|PIP_CERT|NODE_EXTRA_CA_CERTS"
    "|NODE_USE_ENV_PROXY|NPM_CONFIG_CAFILE|AWS_CA_BUNDLE|CARGO_HTTP_CAINFO"
)
"""What the runner sets itself, and what decides which programs and libraries are run."""
_PLACE = re.compile(r"\$\{secrets\.([A-Za-z0-9_-]{1,64})\.([A-Za-z0-9_.-]{1,128})\}")


class Network(NamedTuple):
    """Hosts that are allowed as a whole, and those that are allowed in part."""

    hosts: tuple[str, ...] = ()
    rules: tuple[NetworkRule, ...] = ()


def read_network(fields: Fields | None, *, most: int) -> Network:
    """``network.allow``: host names, and mappings that allow a part of a host."""
    if fields is None:
        return Network()
    fields.only(frozenset({"allow"}))
    hosts: dict[str, None] = {}
    rules: dict[NetworkRule, None] = {}
    for number, node in enumerate(fields.items("allow", most=most)):
        key = f"allow[{number}]"
        if not isinstance(node, Table):
            host = fields.text_of(node, key, most=253, pattern=_HOST).lower()
            rule = NetworkRule(host)
        else:
            rule = _rule(fields.within(node, key))
        if not rule.host:
            continue
        is_whole = rule == NetworkRule(rule.host)
        if rule.host in ({one.host for one in rules} if is_whole else hosts):
            # It would be allowed whole, which its author did not mean.
            fields.wrong(key, f"`{rule.host}` stands both whole and in part; keep one", line=node.line)
        elif is_whole:
            hosts[rule.host] = None
        else:
            rules[rule] = None
    return Network(tuple(hosts), tuple(rules))


def _rule(fields: Fields) -> NetworkRule:
    fields.only(_ENTRY)
    return NetworkRule(
        host=fields.text("host", most=253, pattern=_HOST).lower(),
        ports=_ports(fields),
        methods=_bounding(fields, "methods", 16, _METHOD),
        paths=_bounding(fields, "paths", MAX_PATH_CHARS, _PATH),
    )


def _bounding(fields: Fields, key: str, chars: int, pattern: re.Pattern[str]) -> tuple[str, ...]:
    """An empty list would read as nothing allowed, and mean the contrary: it is refused."""
    return fields.texts(key, least=1, most=MAX_PARTS, chars=chars, pattern=pattern)


def _ports(fields: Fields) -> tuple[int, ...]:
    found: dict[int, None] = {}
    for number, node in enumerate(fields.items("ports", least=1, most=MAX_PARTS)):
        text = node.text if isinstance(node, Scalar) and node.plain else ""
        if not _PORT.fullmatch(text) or int(text) > MAX_PORT:
            fields.wrong(f"ports[{number}]", f"must be a whole number from 1 to {MAX_PORT}", line=node.line)
        else:
            found[int(text)] = None
    return tuple(found)


def variable_fault(name: str) -> str | None:
    """Say why a variable of this name cannot be set for a run's programs; None: it can.

    >>> variable_fault("LOG_LEVEL"), variable_fault("PATH")
    (None, 'is set by the runner; choose another name')
    """
    if not _VARIABLE.fullmatch(name):
        return f"is no name of a variable; it must match {_VARIABLE.pattern}"
    return "is set by the runner; choose another name" if _RUNNERS_OWN.fullmatch(name) else None


def read_env(config: Fields) -> Mapping[str, str]:
    """The variables of ``env``; a place of a secret must name a credential of the same file."""
    fields = config.table("env")
    if fields is None:
        return {}
    entries = fields.entries()
    if len(entries) > MAX_ENV:
        config.wrong("env", f"must have 0 to {MAX_ENV} entries, has {len(entries)}")
        return {}
    named = _names(config, "credentials") | _names(config, "integrations")
    found: dict[str, str] = {}
    for entry in entries:
        if wrong := variable_fault(entry.key):
            fields.wrong(entry.key, wrong)
        elif isinstance(entry.value, Scalar) and not entry.value.text and not entry.value.plain:
            found[entry.key] = ""
        else:
            text = fields.text(entry.key, most=MAX_ENV_CHARS)
            for name, _ in _PLACE.findall(text):
                if name not in named:
                    fields.wrong(entry.key, f"`{name}` is not in `credentials`; add it there")
            found[entry.key] = text
    return found


def _names(config: Fields, key: str) -> frozenset[str]:
    return frozenset(node.text for node in config.items(key, most=MAX_ENV * 16) if isinstance(node, Scalar))
