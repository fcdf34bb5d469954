"""What a file of a run may be called."""

import re
import unicodedata
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

NAME_BYTES: Final = 1024
SEGMENT_BYTES: Final = 255
MEDIA_TYPE_CHARS: Final = 127
NESTED: Final = 32
DEFAULT_MEDIA_TYPE: Final = "application/octet-stream"
_TOKEN: Final = r"[A-Za-z0-9!#$&^_.+-]+"  # noqa: S105 - of the grammar of media types
_MEDIA_TYPE: Final = re.compile(rf"{_TOKEN}/{_TOKEN}(; ?{_TOKEN}={_TOKEN})?")
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Classes of characters that nobody sees, or that turn what is beside them round."""


def fault_of_name(name: str) -> str | None:
    r"""Say why this is no name of a file; None: it is one.

    It is a relative path with slashes, in its shortest form.

    >>> fault_of_name("build/report.html") is None, fault_of_name("\u00e9t\u00e9/a b") is None
    (True, True)
    >>> [
    ...     fault_of_name(name) is None
    ...     for name in ("", "/a", "a/", "a//b", ".", "a/../b", "a\x00", "a\u202eb", "a\\b")
    ... ]
    [False, False, False, False, False, False, False, False, False]
    >>> fault_of_name("a" * 256)
    'a part of the path is longer than 255 bytes'
    """
    if any(unicodedata.category(character) in _HIDDEN for character in name):
        return "the name has characters that cannot be seen"
    if "\\" in name:
        return "the parts of a path are divided by slashes"
    if len(name.encode()) > NAME_BYTES:
        return f"the name is longer than {NAME_BYTES} bytes"
    parts = name.split("/")
    if any(part in {"", ".", ".."} for part in parts):
        return "the name is a relative path, without empty parts, . and .."
    if any(len(part.encode()) > SEGMENT_BYTES for part in parts):
        return f"a part of the path is longer than {SEGMENT_BYTES} bytes"
    return None


def fault_of_names(names: Sequence[str]) -> tuple[int, str] | None:
    """Say which of several names in one folder cannot be, and why; None: all can.

    >>> fault_of_names(["a/b", "a/c", "ab"]) is None
    True
    >>> fault_of_names(["a", "../b"])
    (1, 'the name is a relative path, without empty parts, . and ..')
    >>> fault_of_names(["a", "a"]), fault_of_names(["a/b", "a"]), fault_of_names(["a", "a/b/c"])
    ((1, 'there are two of this name'), (1, 'it is a folder of another'), (1, 'a folder of it is a file'))
    """
    files: set[str] = set()
    folders: set[str] = set()
    for place, name in enumerate(names):
        parts = name.split("/")
        above = {"/".join(parts[:depth]) for depth in range(1, len(parts))}
        fault = fault_of_name(name)
        if fault is None and name in files:
            fault = "there are two of this name"
        if fault is None and name in folders:
            fault = "it is a folder of another"
        if fault is None and above & files:
            fault = "a folder of it is a file"
        if fault is None and len(parts) > NESTED:
            fault = f"it lies in more than {NESTED} folders"
        if fault is not None:
            return place, fault
        files.add(name)
        folders |= above
    return None


def is_media_type(text: str) -> bool:
    """Whether it can be sent as a Content-Type.

    >>> (
    ...     is_media_type("text/plain; charset=utf-8"),
    ...     is_media_type("text"),
    ...     is_media_type("text/plain; a=b; c=d"),
    ... )
    (True, False, False)
    """
    return len(text) <= MEDIA_TYPE_CHARS and _MEDIA_TYPE.fullmatch(text) is not None


def disposition(name: str) -> bytes:
    r"""Have a browser keep the file under its last part, and show nothing of it: runs write what they like.

    >>> disposition('a/b "1"\u00e9.txt')
    b'attachment; filename="b _1__.txt"; filename*=UTF-8\'\'b%20%221%22%C3%A9.txt'
    """
    last = name.rpartition("/")[2]
    plain = re.sub(r"[^A-Za-z0-9 ._+()=@-]", "_", last).replace('"', "_")
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(last, safe='')}".encode("ascii")
