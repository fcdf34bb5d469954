"""Where a server listens by default, and what an address may look like."""

from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8300
DEFAULT_BASE_URL: Final = f"http://{DEFAULT_HOST}:{DEFAULT_PORT}"
LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


def read_base_url(text: str) -> str:
    """Spell an address in one way, for tokens are kept by it. Raises ValueError with the reason.

    >>> read_base_url("HTTPS://Sexton.example:8443/prefix/")
    'https://sexton.example:8443/prefix'
    >>> read_base_url("http://[::1]:8300")
    'http://[::1]:8300'
    """
    if not text.isprintable() or " " in text:
        raise ValueError("an address has no blanks")
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("an address begins with http:// or https:// and a host")
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError("an address has no user, query or fragment")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    port = "" if parts.port is None else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens there.

    >>> is_loopback("127.0.0.2"), is_loopback("::1"), is_loopback("0.0.0.0"), is_loopback("db.internal")
    (True, True, False, False)
    """
    try:
        return host in LOOPBACK or ip_address(host).is_loopback
    except ValueError:
        return False


def in_the_open(base_url: str) -> bool:
    """Whether a token sent there can be read on the way.

    >>> in_the_open("http://sexton.example"), in_the_open("http://127.0.0.1:8300"), in_the_open("https://a.b")
    (True, False, False)
    """
    parts = urlsplit(base_url)
    return parts.scheme == "http" and parts.hostname not in LOOPBACK
