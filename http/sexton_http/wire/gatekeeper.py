"""What an app says to a request at once, by its head alone, for whoever reads the connection."""

from collections.abc import Callable
from typing import Any, Final, Protocol, runtime_checkable

from sexton_http.answers import Answer

Refuse = Callable[[dict[str, Any]], Answer | None]
"""Takes the scope; the answer of a request that is not let in, None for any other."""
SKIPPED_BYTES: Final = 64 * 1024
"""The rest of a body up to this size is read and thrown away, which costs less than a new connection."""


@runtime_checkable
class Gatekeeper(Protocol):
    """An app that need not run to say no."""

    def refuse_early(self, scope: dict[str, Any]) -> Answer | None:
        """Waits for nothing, and takes microseconds."""
        ...


def refuse_nobody(_: dict[str, Any]) -> Answer | None:
    return None


def gatekeeper_of(app: Any) -> Refuse:
    return app.refuse_early if isinstance(app, Gatekeeper) else refuse_nobody
