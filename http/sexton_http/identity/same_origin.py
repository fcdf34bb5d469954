"""Tells a request of our own pages from one that another site made a browser send."""

from typing import Final
from urllib.parse import urlsplit

from sexton_http.answers import Problem, RequestHead

_OURS: Final = b"same-origin"
_BY_HAND: Final = b"none"


def is_same_origin(head: RequestHead, base_url: str) -> bool:
    """What the browser says of where the request comes from; silence is no proof.

    ``Sec-Fetch-Site`` is a header that no page can set. Browsers send it to HTTPS and to this machine only,
    so elsewhere ``Origin`` has to be ours: by its host, or as links spell us.

    >>> head = RequestHead("POST", "/", b"", {b"origin": b"http://x:1", b"host": b"x:1"}, "")
    >>> is_same_origin(head, "http://y")
    True
    """
    site = head.headers.get(b"sec-fetch-site")
    if site == _OURS:
        return True
    origin = head.headers.get(b"origin")
    if site not in {None, _BY_HAND} or origin is None:
        return False
    text = origin.decode("latin-1").lower()
    theirs, ours = urlsplit(text), urlsplit(base_url.lower())
    host = (head.header(b"host") or "").lower()
    return bool(theirs.netloc) and (theirs.netloc == host or (theirs[:2] == ours[:2]))


def check_same_origin(head: RequestHead, base_url: str) -> None:
    """Raises Problem UZ-AUTH-001."""
    if not is_same_origin(head, base_url):
        raise Problem("UZ-AUTH-001", "this may only be asked by a page of this server")
