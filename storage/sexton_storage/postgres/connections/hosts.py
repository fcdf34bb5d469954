"""The hosts of a database's address, one of which takes writes."""

import re
from typing import NamedTuple
from urllib.parse import parse_qs, unquote

DEFAULT_PORT = 5432


class Host(NamedTuple):
    """A name, an IP address, or the folder of a Unix socket."""

    name: str
    port: int

    def __str__(self) -> str:
        return self.name if self.name.startswith("/") else f"{self.name}:{self.port}"


def hosts_of(dsn: str) -> tuple[Host, ...]:
    """All that the address names, in order; none where it leaves that to the environment.

    >>> [str(host) for host in hosts_of("postgresql://u:p@db1,db2:6432,[::1]:7000/sexton")]
    ['db1:5432', 'db2:6432', '::1:7000']
    >>> [str(host) for host in hosts_of("postgresql:///sexton?host=/run/a,/run/b&user=sexton")]
    ['/run/a', '/run/b']
    >>> hosts_of("postgresql:///sexton")
    ()
    """
    _, _, listed, rest = _parts(dsn)
    query = parse_qs(rest.partition("?")[2])
    named = listed or ",".join(query.get("host", []))
    ports = ",".join(query.get("port", [])).split(",")
    hosts = []
    for position, host in enumerate(named.split(",") if named else []):
        given = ports[min(position, len(ports) - 1)]
        hosts.append(_host(unquote(host), int(given) if given.isdecimal() else DEFAULT_PORT))
    return tuple(hosts)


def without_hosts(dsn: str) -> str:
    """The address without its hosts, for a connection to one of them that is given beside it.

    >>> without_hosts("postgresql://u:p@db1,[::1]:7000/sexton?sslmode=require")
    'postgresql://u:p@/sexton?sslmode=require'
    >>> without_hosts("postgresql:///sexton?host=/run/a&user=sexton")
    'postgresql:///sexton?host=/run/a&user=sexton'
    """
    scheme, user, _, rest = _parts(dsn)
    return f"{scheme}://{user}{rest}"


def _parts(dsn: str) -> tuple[str, str, str, str]:
    """The scheme, the user with its ``@``, the hosts, and the rest.

    Not by ``urlsplit``: many Pythons refuse a list of hosts with an address in brackets.
    """
    scheme, _, address = dsn.partition("://")
    authority = re.split("[/?#]", address, maxsplit=1)[0]
    user, at, listed = authority.rpartition("@")
    return scheme, user + at, listed, address[len(authority) :]


def _host(text: str, port: int) -> Host:
    if text.startswith("/"):
        return Host(text, port)
    if text.startswith("["):
        name, _, after = text[1:].partition("]")
        given = after.removeprefix(":")
    else:
        name, _, given = text.partition(":")
    return Host(name, int(given) if given.isdecimal() else port)
