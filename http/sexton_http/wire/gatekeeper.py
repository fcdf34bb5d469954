"""What an app says to a request at once, by its head alone, for whoever reads the connection."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

from sexton_http.answers import Answer

Refuse = Callable[[dict[str, Any]], Answer | None]
"""Takes the scope; the answer of a request that is not let in, None for any other."""
SKIPPED_BYTES: Final = 64 * 1024
"""The rest of a body up to this size is read and thrown away, which costs less than a new connection."""


class Prepared(NamedTuple):
    """An answer of HTTP/1.1 as it is sent, around the date."""

    line: bytes
    """The status line."""
    rest: bytes
    """Headers that need not be made for this answer, and the body."""


RefuseBytes = Callable[[bytes, str], Prepared | None]
"""Takes what was read and the client's address; None: the parser has to say what it is."""


@runtime_checkable
class Gatekeeper(Protocol):
    """An app that need not run to say no."""

    def refuse_early(self, scope: dict[str, Any]) -> Answer | None:
        """Waits for nothing, and takes microseconds."""
        ...


@runtime_checkable
class ByteGatekeeper(Protocol):
    """One that need not even have the request parsed, where it came whole."""

    def refuse_bytes(self, data: bytes, client: str) -> Prepared | None:
        """The same; ``data`` is all that was read since the last answer."""
        ...


def refuse_nobody(_: dict[str, Any]) -> Answer | None:
    return None


def pass_on(_data: bytes, _client: str) -> Prepared | None:
    return None


def gatekeeper_of(app: Any) -> Refuse:
    return app.refuse_early if isinstance(app, Gatekeeper) else refuse_nobody


def byte_gatekeeper_of(app: Any) -> RefuseBytes:
    return app.refuse_bytes if isinstance(app, ByteGatekeeper) else pass_on
