"""Reads the names of hosts in one way only, so that no second spelling passes for another host."""

import ipaddress
import re

MAX_NAME_CHARS = 253
MAX_PORT = 65_535
DEFAULT_PORTS = {"http": 80, "https": 443}
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PORT = re.compile(r"[0-9]{1,5}")


def read_host(text: str) -> str:
    """Give the one spelling of a host: lower case, no trailing dot, an address in its shortest form.

    Names are ASCII: what is international comes as its ``xn--`` form. A name whose last label is a number is
    an address to many programs, so anything but four plain decimal numbers is refused there. Raises
    ``ValueError`` with what is wrong.

    >>> read_host("API.GitHub.com."), read_host("[::0001]"), read_host("127.0.0.1")
    ('api.github.com', '::1', '127.0.0.1')
    >>> read_host("0x7f.1")
    Traceback (most recent call last):
    ValueError: an address must be four plain decimal numbers
    """
    if text.startswith("["):
        if not text.endswith("]") or "%" in text:
            raise ValueError("this is not an IPv6 address in brackets")
        return str(ipaddress.IPv6Address(text[1:-1]))
    if not text.isascii():
        raise ValueError("an international name must be written in its xn-- form")
    name = text.lower().removesuffix(".")
    labels = name.split(".")
    if len(name) > MAX_NAME_CHARS or not all(_LABEL.fullmatch(label) for label in labels):
        raise ValueError("this is not the name of a host")
    if _NUMBER.fullmatch(labels[-1]):
        try:
            return str(ipaddress.IPv4Address(text))
        except ValueError:
            raise ValueError("an address must be four plain decimal numbers") from None
    return name


def read_authority(text: str, default_port: int | None = None) -> tuple[str, int]:
    """Read ``host:port``; without a default the port must be there. Raises ``ValueError``.

    >>> read_authority("example.org:8443"), read_authority("[::1]", 80)
    (('example.org', 8443), ('::1', 80))
    >>> read_authority("user@example.org:443")
    Traceback (most recent call last):
    ValueError: this is not the name of a host
    """
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        if default_port is None:
            raise ValueError("the port is missing")
        return read_host(text), default_port
    if not _PORT.fullmatch(port) or not 0 < int(port) <= MAX_PORT:
        raise ValueError("there is no such port")
    return read_host(host), int(port)


def is_address(host: str) -> bool:
    """Tell an address from a name; ``host`` is as ``read_host`` gives it.

    >>> is_address("::1"), is_address("10.0.0.1"), is_address("example.org")
    (True, True, False)
    """
    return ":" in host or host.rpartition(".")[2].isdigit()


def write_authority(host: str, port: int, scheme: str) -> str:
    """Give the value of a ``Host`` header.

    >>> write_authority("::1", 8443, "https"), write_authority("example.org", 443, "https")
    ('[::1]:8443', 'example.org')
    """
    name = f"[{host}]" if ":" in host else host
    return name if port == DEFAULT_PORTS[scheme] else f"{name}:{port}"
