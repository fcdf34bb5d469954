"""Takes secrets out of whatever leaves a run."""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

MIN_SECRET_CHARS = 6  # Shorter values would blank out ordinary words.
MASK = "[redacted]"
BASE64_GROUP = 3
MIN_LINE_CHARS = 16  # Of a key in several lines each line is one.


def forms(secret: str) -> set[str]:
    """Give the spellings of a secret that are taken out beside the secret itself.

    Those that tools produce by the way: percent and form encoding, JSON escapes, hexadecimal, and base64
    wherever in a longer text the secret may stand. What is split, reversed, compressed or encrypted on
    purpose has no form of its own; that such a thing cannot be made is the business of keeping secrets out
    of the sandbox and of the model's sight.

    >>> "aHVudGVyMj" in forms("hunter22"), "68756e7465723232" in forms("hunter22")
    (True, True)
    """
    raw = secret.encode("utf-8", "surrogatepass")
    found = {secret, quote(raw, safe=""), quote(raw), quote_plus(raw), raw.hex(), raw.hex().upper()}
    found |= {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    found |= {line for line in secret.splitlines() if len(line) >= MIN_LINE_CHARS}
    for offset in range(BASE64_GROUP):
        # Only the characters that no neighbour of the secret has a bit of.
        coded = base64.b64encode(bytes(offset) + raw).decode().rstrip("=")
        whole = (offset + len(raw)) * 8 // 6
        core = coded[-(-offset * 8 // 6) : whole]
        found |= {core, core.translate({43: "-", 47: "_"})}
    return {form for form in found if len(form) >= MIN_SECRET_CHARS}


class Redactor:
    """Knows the secrets of one lease.

    The leftmost match wins, then the longest: no half of a secret is left over.
    """

    def __init__(self, secrets: Mapping[str, Any], api_key: str | None = None) -> None:
        self.secrets: tuple[str, ...] = ()
        self._forms: tuple[str, ...] = ()
        self._by_first: dict[str, list[str]] = {}
        self._pattern: re.Pattern[str] | None = None
        self.learn({"lease": secrets, "key": api_key or ""})

    def __repr__(self) -> str:
        return f"<Redactor of {len(self.secrets)}>"

    def learn(self, secrets: Mapping[str, Any]) -> None:
        """Take further secrets out from now on."""
        found = {value for value in _strings(secrets) if len(value) >= MIN_SECRET_CHARS}
        self.secrets = _longest_first(found | set(self.secrets))
        self._forms = _longest_first({form for secret in self.secrets for form in forms(secret)})
        self._by_first = {}
        for form in self._forms:
            self._by_first.setdefault(form[0], []).append(form)
        self._pattern = re.compile("|".join(map(re.escape, self._forms))) if self._forms else None

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
        longest = len(self._forms[0]) if self._forms else 0
        for place in range(max(start, len(text) - longest + 1), len(text)):
            tail = text[place:]
            near = self._by_first.get(tail[0], ())
            if any(len(tail) < len(form) and form.startswith(tail) for form in near):
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


def _longest_first(values: set[str]) -> tuple[str, ...]:
    return tuple(sorted(values, key=lambda value: (-len(value), value)))


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
