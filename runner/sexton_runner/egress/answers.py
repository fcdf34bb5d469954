"""Passes the answers of servers on, with the secrets of the run taken out."""

from collections.abc import Iterator
from http import HTTPStatus

import h11

from sexton_runner.body_masks import BodyMask, Unreadable
from sexton_runner.egress.heads import Headers, end_to_end
from sexton_runner.egress.refusals import Refusal, Refused
from sexton_runner.egress.seen import Reason
from sexton_runner.redact import Redactor

_ABOUT_THE_BODY = frozenset({b"content-length", b"content-encoding"})
_WITHOUT_BODY = frozenset({HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})


class AnswerFilter:
    """Filters one answer. Without secrets in the run, it goes through as it came."""

    def __init__(self, redactor: Redactor, *, method: bytes, secret_sent: bool) -> None:
        self._redactor = redactor
        self._method = method
        self._secret_sent = secret_sent
        self._mask: BodyMask | None = None

    @property
    def unpacks(self) -> bool:
        """Tell whether more may come out than went in."""
        return self._mask is not None and self._mask.unpacks

    def head(self, response: h11.Response) -> h11.Response:
        """Give the head for the program. Raises ``Refused`` for a body that could not be searched."""
        headers = end_to_end(response.headers.raw_items())
        if not self._redactor.secrets:
            return h11.Response(status_code=response.status_code, headers=headers, reason=response.reason)
        if self._secret_sent and response.status_code == HTTPStatus.PARTIAL_CONTENT:
            # Nobody asked for a part. A secret that comes in two parts is found in neither.
            raise _unsearchable("the server sent a part of what was asked for")
        if self._method != b"HEAD" and response.status_code not in _WITHOUT_BODY:
            headers = self._open_body(headers)
        return h11.Response(
            status_code=response.status_code,
            headers=[masked for name, value in headers if (masked := self._header(name, value))],
            reason=self._covered(response.reason),
        )

    def data(self, data: bytes) -> Iterator[bytes]:
        """Give what is certain by now. Raises ``Refused``."""
        if self._mask is None:
            yield data
            return
        try:
            yield from self._mask.feed(data)
        except Unreadable as fault:
            raise _unsearchable(str(fault)) from fault

    def end(self) -> bytes:
        """Give the rest. Raises ``Refused``."""
        if self._mask is None:
            return b""
        try:
            return self._mask.end()
        except Unreadable as fault:
            raise _unsearchable(str(fault)) from fault

    def _open_body(self, headers: Headers) -> Headers:
        coding = b",".join(value for name, value in headers if name.lower() == b"content-encoding")
        try:
            self._mask = BodyMask(self._redactor, coding.decode("latin-1"))
        except Unreadable as fault:
            raise _unsearchable(str(fault)) from fault
        if not self._mask.unpacks:
            return headers
        return [(name, value) for name, value in headers if name.lower() not in _ABOUT_THE_BODY]

    def _header(self, name: bytes, value: bytes) -> tuple[bytes, bytes] | None:
        # A name can hold no mask, so a header with a secret in its name is left out.
        return (name, self._covered(value)) if self._covered(name) == name else None

    def _covered(self, text: bytes) -> bytes:
        return self._redactor.begin_bytes(text, more=False)[0]


def _unsearchable(why: str) -> Refused:
    return Refused(
        Refusal(
            status=HTTPStatus.BAD_GATEWAY,
            reason=Reason.ANSWER,
            why=f"{why}, so it cannot be searched for secrets",
            advice="Ask for the whole of it, without compression",
        )
    )
