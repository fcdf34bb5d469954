"""Compiles the patterns of conditions, within bounds that keep every match short.

RE2 takes time in the length of the text, whatever the pattern; so the bounds are on the size of both.
"""

from functools import lru_cache
from typing import Any

import re2

MAX_PATTERN_CHARS = 256
MAX_PATTERN_STEPS = 512
"""Steps of the compiled pattern: counted repetitions make a short pattern a long program."""
MAX_MATCHED_CHARS = 16_384
"""A text that is longer counts as matching: what cannot be judged in time does not pass."""

_MEMORY_BYTES = 1 << 20
_CACHED = 256  # Each may use as much as ``_MEMORY_BYTES`` for its states.


@lru_cache(maxsize=_CACHED)
def compile_pattern(text: str) -> Any | str:
    """The compiled pattern, or a text that says what is wrong with it.

    >>> compile_pattern("a(b")
    'a pattern that RE2 cannot read: missing ): a(b'
    """
    if len(text) > MAX_PATTERN_CHARS:
        return f"a pattern of more than {MAX_PATTERN_CHARS} characters"
    options = re2.Options()
    options.max_mem = _MEMORY_BYTES
    options.log_errors = False
    options.never_capture = True  # only whether it matches is asked
    try:
        compiled = re2.compile(text, options)
    except (re2.error, UnicodeEncodeError) as fault:
        return f"a pattern that RE2 cannot read: {_told(fault)}"
    if compiled.programsize > MAX_PATTERN_STEPS:
        return "a pattern that is too large when its repetitions are counted out"
    return compiled


def matches(pattern: str, text: str) -> bool:
    """Whether the pattern is found anywhere in the text; ``^`` and ``$`` hold it to the ends.

    >>> matches("^v[0-9]+$", "v12"), matches("^v[0-9]+$", "rev12")
    (True, False)
    """
    compiled = compile_pattern(pattern)
    if isinstance(compiled, str) or len(text) > MAX_MATCHED_CHARS:
        return True
    # Text from elsewhere may hold half a pair of surrogates, which is no UTF-8.
    return compiled.search(text.encode("utf-8", "replace").decode()) is not None


def _told(fault: Exception) -> str:
    said = fault.args[0] if fault.args else ""
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(fault)
