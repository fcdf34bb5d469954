"""What a handler is given of a request, and what it gives back."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any

import msgspec

from sexton_http.problems import CODES
from sexton_http.retry_after import jittered_s

Headers = tuple[tuple[bytes, bytes], ...]

JSON_TYPE = (b"content-type", b"application/json")
PROBLEM_TYPE = (b"content-type", b"application/problem+json")
UNAUTHORIZED = 401
CHALLENGE = b'Bearer realm="sexton"'
WAS_VALID = frozenset({"UZ-AUTH-003", "UZ-APIKEY-004", "UZ-RUN-009", "UZ-RUN-015"})
"""These are said of a token that was good once: the client is to get another, and not to send it again."""


class RequestHead(msgspec.Struct, frozen=True):
    """All of a request but its body; header names are in lower case, the last of a name counts."""

    method: str
    path: str
    query: bytes
    headers: Mapping[bytes, bytes]
    client: str
    """The sender's address, without its port."""
    via: str = ""
    """The interface that asks in the sender's name; empty: the sender asks directly."""

    def header(self, name: bytes) -> str | None:
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")


class Answer(msgspec.Struct, frozen=True):
    """A whole answer; the server adds the length and the date."""

    status: int
    headers: Headers
    body: bytes


class StreamAnswer(msgspec.Struct, frozen=True):
    """An answer whose body comes bit by bit, for as long as the client reads."""

    headers: Headers
    chunks: AsyncGenerator[bytes, None]
    status: int = 200


class Problem(Exception):
    """A request that is turned down with a code of the table; ends as a problem document.

    ``facts`` become members of the document and the ``details`` of its ``error``. ``wait_s`` becomes
    Retry-After, which is never less and has jitter.
    """

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        facts: Mapping[str, Any] | None = None,
        wait_s: int | None = None,
        headers: Headers = (),
        status: int | None = None,
    ) -> None:
        super().__init__(f"{code}: {detail}")
        self.row = CODES[code]
        self.status = self.row.status if status is None else status
        """The code's own, but where the one who asks needs another."""
        self.detail = detail
        self.facts = {} if facts is None else dict(facts)
        self.wait_s = wait_s
        self.headers = headers

    @property
    def code(self) -> str:
        return self.row.code

    def document(self, base_url: str, request_id: str) -> dict[str, Any]:
        """RFC 9457 with the members that both kinds of client look for; facts never replace one of them."""
        row = self.row
        link = f"{base_url}/docs/errors#{row.code}"
        return {
            **self.facts,
            "docs_uri": link,
            "title": row.title,
            "detail": self.detail,
            "error_code": row.code,
            "request_id": request_id,
            "type": link,
            "status": self.status,
            "error": {"code": row.code, "message": self.detail, "details": self.facts},
        }

    def answer(self, base_url: str, request_id: str) -> Answer:
        headers = (PROBLEM_TYPE, *self.headers)
        if self.status == UNAUTHORIZED:
            more = b', error="invalid_token"' if self.code in WAS_VALID else b""
            headers = (*headers, (b"www-authenticate", CHALLENGE + more))
        if self.wait_s is not None:
            headers = (*headers, (b"retry-after", b"%d" % jittered_s(self.wait_s)))
        body = msgspec.json.encode(self.document(base_url, request_id))
        return Answer(self.status, headers, body)
