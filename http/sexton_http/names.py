"""Holds names to the whole of their pattern."""

import re

from sexton_http.answers import Problem


def whole(pattern: str, text: str, pointer: str) -> str:
    """The text, if all of it fits: ``$`` alone would let a line feed follow. Raises Problem UZ-REQ-001.

    >>> whole("^[a-z]+$", "ab", "/name")
    'ab'
    """
    if re.fullmatch(pattern.removesuffix("$"), text) is None:
        raise Problem("UZ-REQ-001", f"{pointer}: does not fit {pattern}", facts={"pointer": pointer})
    return text
