"""Cuts the bytes of an HTTP/1.1 connection into requests; refuses what could be read in two ways."""

from collections import deque
from urllib.parse import unquote

import httptools

from sexton_http.wire.heads import MAX_HEAD_BYTES, check_head

FRAMING = frozenset({b"content-length", b"transfer-encoding"})
"""Say where a body ends; a head has one of them at most."""


class Request:
    """One request whose head has been read; its body may still be on the way."""

    __slots__ = (
        "awaits_go",
        "begun",
        "body",
        "complete",
        "declared",
        "discarding",
        "ended",
        "headers",
        "keep_alive",
        "method",
        "path",
        "query",
        "raw_path",
        "version",
    )

    def __init__(self, method: str, target: bytes, version: str, headers: list[tuple[bytes, bytes]]) -> None:
        self.method = method
        self.raw_path, _, self.query = target.partition(b"?")
        path = self.raw_path.decode("ascii")
        self.path = unquote(path) if "%" in path else path
        self.version = version
        self.headers = headers
        self.keep_alive = True
        self.awaits_go = False
        """It waits for ``100 Continue`` before it sends its body."""
        self.declared = 0
        """How long it says that its body is, if it does."""
        self.body: list[bytes] = []
        """What has come of the body and was not taken yet."""
        self.complete = False
        """All of the body has come."""
        self.discarding = False
        """Nobody is to be given the rest of the body."""
        self.begun = False
        """A part of the body was handed on."""
        self.ended = False
        """The end of the body was handed on."""

    def take_whole(self) -> bytes | None:
        """The body, if all of it is here and nothing of it was handed on; then it is taken."""
        if not self.complete or self.ended or self.discarding or self.begun:
            return None
        body = self.body[0] if len(self.body) == 1 else b"".join(self.body)
        self.body.clear()
        self.ended = True
        return body


class _BodyAlone:
    """Reads one body, for a request that offers another protocol: llhttp ends such a one at its head."""

    __slots__ = ("_parser", "_request")

    def __init__(self, parser: "Parser", request: Request) -> None:
        self._parser = parser
        self._request = request

    def on_message_begin(self) -> None:
        if self._request.complete:
            raise httptools.HttpParserError("nothing is read after a request that offers another protocol")

    def on_body(self, part: bytes) -> None:
        self._request.body.append(part)

    def on_message_complete(self) -> None:
        self._parser.on_message_complete()
        self._parser.broken = self._parser.upgraded = True


class Parser:
    """Feeds llhttp, which is strict by default, and adds what it leaves to its users."""

    __slots__ = (
        "_head_bytes",
        "_headers",
        "_in_head",
        "_llhttp",
        "_target",
        "broken",
        "is_between",
        "requests",
        "upgraded",
        "why",
    )

    def __init__(self) -> None:
        self._llhttp = httptools.HttpRequestParser(self)
        self._target = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._in_head = True
        self._head_bytes = 0
        self.requests: deque[Request] = deque()
        """In order of arrival; the last may not be complete."""
        self.broken = False
        """Nothing after the requests that are here can be understood as HTTP/1.1."""
        self.why = "this is no request of HTTP/1.1 that can be read in one way only"
        self.upgraded = False
        """The last request offered another protocol, and what follows it may be of that."""
        self.is_between = True
        """The last request is here to its end, and no byte of another."""

    def feed(self, data: bytes) -> None:
        """Take bytes as they come; never raises."""
        if self.broken:
            return
        if self._in_head:
            self._head_bytes += len(data)
        try:
            try:
                self._llhttp.feed_data(data)
            except httptools.HttpParserUpgrade as offer:
                self._pass_over(data[offer.args[0] :])
        except httptools.HttpParserInvalidMethodError:
            self.broken, self.why = True, "there is no such method"
        except (httptools.HttpParserError, UnicodeError):
            self.broken = True
        if self._head_bytes > MAX_HEAD_BYTES:
            self.broken, self.why = True, f"the head is over {MAX_HEAD_BYTES} bytes"

    def _pass_over(self, rest: bytes) -> None:
        """Have the request answered as if it offered nothing, body and all; nothing after it is read."""
        request = self.requests[-1]
        request.keep_alive = False
        framing = next((one for one in request.headers if one[0] in FRAMING), None)
        if framing is None or framing == (b"content-length", b"0"):
            self.broken = self.upgraded = True
            return
        request.complete = self.is_between = self._in_head = False
        self._llhttp = httptools.HttpRequestParser(_BodyAlone(self, request))
        self._llhttp.feed_data(b"POST / HTTP/1.1\r\nHost: x\r\n%b: %b\r\n\r\n" % framing)
        self._llhttp.feed_data(rest)

    # --- called by llhttp -----------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._target, self._headers, self._in_head = b"", [], True
        self.is_between = False

    def on_url(self, part: bytes) -> None:
        self._target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # Trailers are read over.
            # llhttp leaves the blanks behind a value to its users; they are no part of it (RFC 9110, 5.5).
            self._headers.append((name.lower(), value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._head_bytes = 0
        version = self._llhttp.get_http_version()
        method = self._llhttp.get_method()
        why = check_head(method, self._target, version, self._headers)
        if why:
            self.why = why
            raise httptools.HttpParserError(why)
        request = Request(method.decode("ascii"), self._target, version, self._headers)
        request.keep_alive = self._llhttp.should_keep_alive()
        for name, value in self._headers:
            if name == b"content-length":  # One there is at most: llhttp takes no second.
                request.declared = int(value) if value.isdigit() else 0
            elif name == b"expect" and version == "1.1" and value.lower() == b"100-continue":
                request.awaits_go = True
        self.requests.append(request)

    def on_body(self, part: bytes) -> None:
        self.requests[-1].body.append(part)

    def on_message_complete(self) -> None:
        self.requests[-1].complete = True
        self._in_head = True
        self.is_between = True
