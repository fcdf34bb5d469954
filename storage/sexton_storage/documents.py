"""Free JSON and free text on their way into a row and out again."""

from collections.abc import Mapping
from typing import Any, overload

import msgspec

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()


def to_json(document: Mapping[str, Any]) -> str:
    """Spell a document for a ``json`` column.

    Unlike ``jsonb`` that keeps it as it is, an escaped NUL included.
    """
    return _encoder.encode(document).decode()


def from_json(text: str) -> Any:
    return _decoder.decode(text)


def json_or_none(document: Mapping[str, Any] | None) -> str | None:
    return None if document is None else to_json(document)


def copied(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give what would come back from a row: plain JSON that shares nothing with the original."""
    plain: Mapping[str, Any] = from_json(to_json(document))
    return plain


@overload
def storable(text: str) -> str: ...
@overload
def storable(text: None) -> None: ...
def storable(text: str | None) -> str | None:
    r"""Replace what no text column can hold: NUL and lone surrogates.

    What an agent wrote must not make its own report unsavable.

    >>> storable("a\x00b"), storable("\ud800"), storable("plain")
    ('a\ufffdb', '?', 'plain')
    """
    if text is None or (text.isascii() and "\x00" not in text):
        return text
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()


Json = Mapping[str, Any]
