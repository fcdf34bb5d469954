"""Takes secrets out of whatever leaves a run."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

MIN_SECRET_CHARS = 6  # Shorter values would blank out ordinary words.
MASK = "[redacted]"


class Redactor:
    """Knows the secrets of one lease.

    The leftmost match wins, then the longest: no half of a secret is left over.
    """

    def __init__(self, secrets: Mapping[str, Any], api_key: str | None = None) -> None:
        found = {value for value in (*_strings(secrets), api_key or "") if len(value) >= MIN_SECRET_CHARS}
        self.secrets = tuple(sorted(found, key=lambda value: (-len(value), value)))
        self._pattern = re.compile("|".join(map(re.escape, self.secrets))) if found else None

    def __repr__(self) -> str:
        return f"<Redactor of {len(self.secrets)}>"

    def text(self, text: str) -> str:
        """Replace each secret in ``text``, and NUL, which a database's text cannot hold.

        >>> Redactor({"github": {"token": "hunter22"}}).text("token=hunter22!")
        'token=[redacted]!'
        """
        text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
        return text if self._pattern is None else self._pattern.sub(MASK, text)

    def json(self, value: object) -> Any:
        """Redact every string of a JSON value, keys included."""
        match value:
            case str():
                return self.text(value)
            case dict():
                return {self.text(str(key)): self.json(inner) for key, inner in value.items()}
            case list():
                return [self.json(inner) for inner in value]
            case _:
                return value

    def certain(self, text: str) -> int:
        """Count the characters of ``text`` that no further text can turn into part of a secret."""
        start = 0
        while (hold := self._first_beginning(text, start)) < len(text):
            match = self._pattern.search(text, start) if self._pattern is not None else None
            if match is None or match.start() >= hold:
                return hold
            start = match.end()
        return len(text)

    def _first_beginning(self, text: str, start: int) -> int:
        longest = len(self.secrets[0]) if self.secrets else 0
        for place in range(max(start, len(text) - longest + 1), len(text)):
            tail = text[place:]
            if any(len(tail) < len(secret) and secret.startswith(tail) for secret in self.secrets):
                return place
        return len(text)


class StreamRedactor:
    """Redacts a text that arrives in pieces, holding back what may be the beginning of a secret."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = ""

    def feed(self, piece: str) -> str:
        """Give as much redacted text as is certain."""
        text = self._held + piece
        cut = self._redactor.certain(text)
        self._held = text[cut:]
        return self._redactor.text(text[:cut])

    def flush(self) -> str:
        """Give the rest, at the end of the text."""
        rest, self._held = self._redactor.text(self._held), ""
        return rest


def _strings(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for inner in value.values():
                yield from _strings(inner)
        case list() | tuple():
            for inner in value:
                yield from _strings(inner)
        case _:
            return
