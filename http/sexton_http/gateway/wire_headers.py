"""The headers of an answer as they are sent, the same from either mount."""

from sexton_http.answers import Answer, StreamAnswer
from sexton_http.gateway.pipeline import NO_CONTENT


def wire_headers(answer: Answer | StreamAnswer) -> list[tuple[bytes, bytes]]:
    """The answer's headers, and the length of its body. A stream has no length, and neither has 204."""
    headers = list(answer.headers)
    if isinstance(answer, Answer) and answer.status != NO_CONTENT:
        headers.append((b"content-length", b"%d" % len(answer.body)))
    return headers
