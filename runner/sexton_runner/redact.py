"""Takes secrets out of whatever leaves a run."""

import base64
import functools
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

import re2

MIN_SECRET_CHARS = 6  # Shorter values would blank out ordinary words.
MASK = "[redacted]"
HEAD_BYTES = MIN_SECRET_CHARS  # Every form has as many bytes at least.
MAX_AUTOMATON_BYTES = 64 << 20  # RE2 keeps to it, and becomes slower where it does not suffice.
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

    The leftmost match wins, then the longest: no half of a secret is left over. The time it takes is linear
    in the text, however many secrets there are and whatever a run prints: one automaton finds where a secret
    may begin, and only there the secrets with that beginning are compared.
    """

    def __init__(self, secrets: Mapping[str, Any], api_key: str | None = None) -> None:
        self.secrets: tuple[str, ...] = ()
        self._by_head: dict[bytes, list[bytes]] = {}
        self._short_tails: frozenset[bytes] = frozenset()
        self._heads: re2._Regexp | None = None
        self.learn({"lease": secrets, "key": api_key or ""})

    def __repr__(self) -> str:
        return f"<Redactor of {len(self.secrets)}>"

    def learn(self, secrets: Mapping[str, Any]) -> None:
        """Take further secrets out from now on."""
        found = {value for value in _strings(secrets) if len(value) >= MIN_SECRET_CHARS} - set(self.secrets)
        if not found:
            return
        self.secrets = tuple(sorted(found | set(self.secrets), key=lambda value: (-len(value), value)))
        for form in {form.encode("utf-8", "surrogatepass") for one in found for form in forms(one)}:
            alike = self._by_head.setdefault(form[:HEAD_BYTES], [])
            if form not in alike:
                alike.append(form)
                alike.sort(key=len, reverse=True)
        self._short_tails = frozenset(
            head[:count] for head in self._by_head for count in range(1, HEAD_BYTES)
        )
        self._heads = re2.compile(b"|".join(map(re2.escape, self._by_head)), _options())

    def text(self, text: str) -> str:
        """Replace each secret in ``text``, and NUL, which a database's text cannot hold.

        >>> Redactor({"github": {"token": "hunter22"}}).text("token=hunter22!")
        'token=[redacted]!'
        """
        if self._heads is not None:
            done = self._sift(text.encode("utf-8", "surrogatepass"), more=False)[0]
            text = done.decode("utf-8", "surrogatepass")
        return text.replace("\0", "\N{REPLACEMENT CHARACTER}")

    @property
    def longest(self) -> int:
        """Give the length in bytes of the longest thing that is looked for; 0 without secrets."""
        return max((len(form) for alike in self._by_head.values() for form in alike), default=0)

    def is_in(self, content: bytes) -> bool:
        r"""Tell whether bytes that need be no text hold a secret, in any of its forms.

        >>> Redactor({"a": "hunter22"}).is_in(b"\xff68756e7465723232")
        True
        """
        at = 0
        while (place := self._next_head(content, at)) is not None:
            if self._match(content, place, more=False):
                return True
            at = place + 1
        return False

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

    def begin(self, text: str) -> tuple[str, str]:
        """Redact what no further text can turn into part of a secret; give that, and the rest as it is.

        >>> Redactor({"a": "hunter22"}).begin("hunter22 hunt")
        ('[redacted] ', 'hunt')
        """
        if self._heads is None:
            return self.text(text), ""
        done, rest = self._sift(text.encode("utf-8", "surrogatepass"), more=True)
        told = done.decode("utf-8", "surrogatepass").replace("\0", "\N{REPLACEMENT CHARACTER}")
        return told, rest.decode("utf-8", "surrogatepass")

    def begin_bytes(self, data: bytes, *, more: bool = True) -> tuple[bytes, bytes]:
        r"""Do as ``begin`` does, for data of any kind: each mask is as long as what it covers.

        >>> Redactor({"a": "hunter22"}).begin_bytes(b"\xff hunter22 hunt")
        (b'\xff [redacte ', b'hunt')
        """
        return (data, b"") if self._heads is None else self._sift(data, more=more, mask=_cover)

    def certain(self, text: str) -> int:
        """Count the characters of ``text`` that no further text can turn into part of a secret."""
        return len(text) - len(self.begin(text)[1])

    def _sift(
        self, text: bytes, *, more: bool, mask: Callable[[int], bytes] = lambda _: MASK.encode()
    ) -> tuple[bytes, bytes]:
        parts: list[bytes] = []
        kept = at = 0
        hold = len(text)
        while (place := self._next_head(text, at)) is not None:
            length = self._match(text, place, more=more)
            if length is None:
                hold = place
                break
            if length:
                parts += [text[kept:place], mask(length)]
                kept = at = place + length
            else:
                at = place + 1
        else:
            # What is shorter than a head was not looked for yet.
            tails = range(max(at, len(text) - HEAD_BYTES + 1), len(text)) if more else ()
            hold = next((place for place in tails if text[place:] in self._short_tails), len(text))
        parts.append(text[kept:hold])
        return b"".join(parts), text[hold:]

    def _next_head(self, text: bytes, at: int) -> int | None:
        found = None if self._heads is None else self._heads.search(text, at)
        return None if found is None else found.start()

    def _match(self, text: bytes, place: int, *, more: bool) -> int | None:
        """Give how long the secret at ``place`` is, 0 without one, None when it may be a longer one yet."""
        left = len(text) - place
        for form in self._by_head[text[place : place + HEAD_BYTES]]:
            if left < len(form):
                if more and form.startswith(text[place:]):
                    return None
            elif text.startswith(form, place):
                return len(form)
        return 0


class StreamRedactor:
    """Redacts a text that arrives in pieces, holding back what may be the beginning of a secret."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = ""

    def feed(self, piece: str) -> str:
        """Give as much redacted text as is certain."""
        done, self._held = self._redactor.begin(self._held + piece)
        return done

    def flush(self) -> str:
        """Give the rest, at the end of the text."""
        rest, self._held = self._redactor.text(self._held), ""
        return rest


def _cover(length: int) -> bytes:
    return MASK.encode()[:length].ljust(length, b"*")


@functools.cache
def _options() -> re2.Options:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # Of bytes: a secret's place is counted in bytes.
    options.log_errors = False
    options.max_mem = MAX_AUTOMATON_BYTES
    return options


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
