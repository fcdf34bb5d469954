"""Examples of requests and answers, as the tests' server took and gave them."""

from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

import msgspec


class Example(msgspec.Struct, frozen=True, omit_defaults=True):
    """The examples of one route."""

    request: Any = msgspec.UNSET
    """What was sent with the first of the answers."""
    answers: dict[str, Any] = {}
    """By status."""


def _load() -> dict[str, Example]:
    text = files("sexton_http.describe").joinpath("examples.json").read_bytes()
    return msgspec.json.decode(text, type=dict[str, Example])


EXAMPLES: Final[Mapping[str, Example]] = _load()
"""By the name of the operation."""
