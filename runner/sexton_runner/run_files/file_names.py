"""What a file of a run may be called, and the media type that its name tells."""

import mimetypes
import unicodedata
from typing import Final

NAME_BYTES: Final = 1_024
PART_BYTES: Final = 255
DEFAULT_TYPE: Final = "application/octet-stream"
_TYPES: Final = mimetypes.MimeTypes()  # Python's own: what a host adds does not change what is told.
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Classes of characters that nobody sees, or that turn what is beside them round."""


def media_type_of(name: str) -> str:
    """Give the media type of a file by the end of its name.

    >>> media_type_of("out/report.html"), media_type_of("core")
    ('text/html', 'application/octet-stream')
    """
    return _TYPES.guess_type(name)[0] or DEFAULT_TYPE


def fault_of_name(name: str) -> str | None:
    """Say why a file may not be called so; None: it may. Servers judge the names of artefacts alike.

    >>> fault_of_name("out/a b.txt") is None, fault_of_name("../a")
    (True, 'the name is a relative path, without empty parts, . and ..')
    """
    # First, as what has no spelling in UTF-8 has no length there either.
    if any(unicodedata.category(character) in _HIDDEN for character in name):
        return "the name has characters that cannot be seen"
    if "\\" in name:
        return "the parts of a path are divided by slashes"
    if len(name.encode()) > NAME_BYTES:
        return f"the name is longer than {NAME_BYTES} bytes"
    parts = name.split("/")
    if any(part in {"", ".", ".."} for part in parts):
        return "the name is a relative path, without empty parts, . and .."
    if any(len(part.encode()) > PART_BYTES for part in parts):
        return f"a part of the path is longer than {PART_BYTES} bytes"
    return None
