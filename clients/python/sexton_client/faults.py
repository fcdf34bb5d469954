"""Turns what the HTTP library raises into what this client says."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx2

from sexton_client.errors import ConnectionFailed, NotUnderstood
from sexton_client.messages import Missed

_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


def missed(fault: httpx2.TransportError) -> Missed:
    """Its text, not its request: that bears the token."""
    return Missed(sent=not isinstance(fault, _NOT_SENT), why=str(fault) or type(fault).__name__)


@contextmanager
def stream_faults(base_url: str) -> Iterator[None]:
    """Let a cut stream raise ConnectionFailed, and one that cannot be read NotUnderstood."""
    try:
        yield
    except httpx2.SSEError as fault:
        raise NotUnderstood(f"{base_url}: {fault}", "Look for a proxy in between.") from None
    except httpx2.DecodingError:
        raise NotUnderstood(f"{base_url}: the stream is garbled.", "Look for a proxy in between.") from None
    except httpx2.TransportError as fault:
        why = missed(fault).why
        raise ConnectionFailed(
            f"{base_url} gave no answer: {why}.", "Look whether the server runs."
        ) from None
