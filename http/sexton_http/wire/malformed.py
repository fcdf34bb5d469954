"""What an app says to bytes that are no request, for whoever reads the connection."""

from typing import Any, Final, Protocol, runtime_checkable

from sexton_http.answers import Answer

BARE: Final = Answer(400, (), b"")
"""Said where the app has no words for it."""


@runtime_checkable
class Speaker(Protocol):
    """An app that has."""

    def say_malformed(self, detail: str) -> Answer:
        """The answer to what could not be read; the connection ends with it."""
        ...


def malformed(app: Any, detail: str) -> Answer:
    return app.say_malformed(detail) if isinstance(app, Speaker) else BARE
