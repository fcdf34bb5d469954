"""The headers of an answer as they are sent, the same from either mount."""

from typing import Final

from sexton_http.answers import Answer, StreamAnswer
from sexton_http.gateway.pipeline import NO_CONTENT

NOT_MODIFIED: Final = 304


def wire_headers(answer: Answer | StreamAnswer) -> list[tuple[bytes, bytes]]:
    """The answer's headers, with the length of its body; 204 and 304 have none, and a stream says its own."""
    headers = list(answer.headers)
    if isinstance(answer, Answer) and answer.status not in {NO_CONTENT, NOT_MODIFIED}:
        headers.append((b"content-length", b"%d" % len(answer.body)))
    return headers
