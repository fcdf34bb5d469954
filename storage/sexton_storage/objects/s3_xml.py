"""The few documents that S3 speaks: errors, uploads, lists."""

import xml.etree.ElementTree as ET
from collections.abc import Iterable
from typing import Final
from xml.sax.saxutils import escape

from sexton_storage.objects.store import ObjectStoreFault

_WORDS: Final = 200


class Document:
    """One that was read; names of elements without their namespaces."""

    def __init__(self, body: bytes) -> None:
        """Read it. Raises ObjectStoreFault for what is none, or declares entities of its own."""
        if b"<!" in body:
            raise ObjectStoreFault("the S3 store answered with a document type, which it has no need of")
        try:
            # Without declarations no entity can grow, and the caller has bounded the length.
            self._root = ET.fromstring(body)  # noqa: S314
        except ET.ParseError as fault:
            raise ObjectStoreFault(f"the S3 store answered with what is no XML: {fault}") from fault

    @property
    def name(self) -> str:
        return _bare(self._root.tag)

    def texts(self, name: str) -> list[str]:
        """Give the texts of all elements of this name, in their order."""
        return [one.text or "" for one in self._root.iter() if _bare(one.tag) == name]

    def text(self, name: str) -> str:
        """Give the first of them; "" without one."""
        return next(iter(self.texts(name)), "")

    def rows(self, within: str, first: str, second: str) -> Iterable[tuple[str, str]]:
        """Give two texts of each element ``within``."""
        for one in self._root.iter():
            if _bare(one.tag) == within:
                found = {_bare(child.tag): child.text or "" for child in one}
                yield found.get(first, ""), found.get(second, "")


def said(body: bytes) -> str:
    r"""Give what an error document says, in a few words; "" for what is none.

    >>> said(b"<Error><Code>AccessDenied</Code><Message>No\nway</Message><Key>x</Key></Error>")
    'AccessDenied: No way'
    >>> said(b"<html>")
    ''
    """
    try:
        document = Document(body)
    except ObjectStoreFault:
        return ""
    words = f"{document.text('Code')}: {document.text('Message')}"
    return " ".join(word for word in words.split() if word.isprintable())[:_WORDS].strip(": ")


def parts_document(etags: Iterable[str]) -> bytes:
    """Spell which parts make an object.

    >>> parts_document(['"a"'])
    b'<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>"a"</ETag></Part></CompleteMultipartUpload>'
    """
    parts = "".join(
        f"<Part><PartNumber>{number}</PartNumber><ETag>{escape(etag)}</ETag></Part>"
        for number, etag in enumerate(etags, 1)
    )
    return f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()


def _bare(tag: str) -> str:
    return tag.rpartition("}")[2]
