"""Holds names to the whole of their pattern."""

import msgspec

from sexton_http.answers import Problem


def fitting(pattern: str) -> msgspec.Meta:
    r"""For a field that is to fit a pattern to its end; the documents show it with its dollar again.

    >>> from typing import Annotated
    >>> msgspec.convert("ab\n", Annotated[str, fitting("^[a-z]+$")])
    Traceback (most recent call last):
    msgspec.ValidationError: Expected `str` matching regex '^[a-z]+\\Z'
    """
    # Only in Python does a dollar let a line feed follow.
    return msgspec.Meta(pattern=pattern.removesuffix("$") + r"\Z")


def shown(text: str, pointer: str) -> str:
    """The text, if people can see all of it: printable, and no blank at an end. Raises Problem UZ-REQ-001.

    >>> shown("my team", "/name")
    'my team'
    """
    if not text.isprintable() or text != text.strip():
        detail = f"{pointer}: printable characters, without a blank at either end"
        raise Problem("UZ-REQ-001", detail, facts={"pointer": pointer})
    return text
