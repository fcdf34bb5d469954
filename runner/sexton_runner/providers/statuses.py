"""Maps a provider's HTTP status to an error; one rule for all providers."""

import email.utils
import time
from collections.abc import Mapping

from sexton_runner.providers.faults import (
    KeyRefused,
    ModelAway,
    ModelFault,
    ModelRefused,
    QuotaUsed,
    WindowFull,
)

UNAUTHORISED = frozenset({401, 403})
PAYMENT_REQUIRED = 402
QUOTA_CODES = frozenset({"billing_error", "insufficient_quota"})
REDIRECTS = range(300, 400)
PASSING = frozenset({408, 409, 425, 429})
SERVER_FAULT = 500
MAX_TEXT_CHARS = 500
# Words of an error's type or code, not of its message: those are kept stable by the providers.
WINDOW_CODES = frozenset(
    {"context_length_exceeded", "model_context_window_exceeded", "exceed_context_size_error"}
)
KEY_CODES = frozenset({"authentication_error", "permission_error", "invalid_api_key"})
PASSING_CODES = frozenset(
    {"overloaded_error", "rate_limit_error", "api_error", "timeout_error", "server_error"}
)
# The two largest providers tell a full window by the message alone when the code is only "bad request".
WINDOW_PHRASES = (
    "prompt is too long",
    "maximum context length",
    "context window",
    "exceeds the available context",
)


def fault_of(status: int, codes: frozenset[str], message: str, headers: Mapping[str, str]) -> ModelFault:
    """Classify an error answer; ``status`` 200 is one that came within a stream.

    >>> fault_of(529, frozenset({"overloaded_error"}), "Overloaded", {})
    ModelAway('529 overloaded_error: Overloaded')
    >>> fault_of(401, frozenset(), "", {})
    KeyRefused('401')
    """
    told = f"{status} {' '.join(sorted(codes))}".strip()
    text = f"{told}: {message[:MAX_TEXT_CHARS]}" if message else told
    if status in REDIRECTS:
        return ModelRefused(f"{status}: the provider points elsewhere, and the key is not taken there")
    if codes & WINDOW_CODES or any(phrase in message.lower() for phrase in WINDOW_PHRASES):
        return WindowFull(text)
    if status == PAYMENT_REQUIRED or codes & QUOTA_CODES:
        return QuotaUsed(text)
    if status in UNAUTHORISED or codes & KEY_CODES:
        return KeyRefused(text)
    if status >= SERVER_FAULT or status in PASSING or codes & PASSING_CODES:
        return ModelAway(text, retry_after(headers), busy=True)
    return ModelRefused(text)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the answer asks to wait, spelt in ms, in seconds or as a date; None when it says nothing.

    >>> retry_after({"retry-after": "3"}), retry_after({"retry-after-ms": "250"}), retry_after({})
    (3.0, 0.25, None)
    """
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        text = headers.get(name, "")
        if text.replace(".", "", 1).isdecimal() and text.isascii():
            return float(text) / scale
    try:
        until = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    return max(0.0, until.timestamp() - time.time())
