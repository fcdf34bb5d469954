"""The domain's no: a code of the table, what happened here, and the facts that go with it."""

from collections.abc import Mapping
from typing import Any

import msgspec


class Refusal(msgspec.Struct, frozen=True):
    """A reply, never an exception: the request was understood and is refused.

    ``code`` is a row of the table of codes (``UZ-…``); ``facts`` become members of the problem document;
    ``retry_after_s`` becomes the header, in whole seconds.
    """

    code: str
    detail: str
    facts: Mapping[str, Any] = msgspec.field(default_factory=dict)
    retry_after_s: int | None = None
    status: int | None = None
    """The HTTP status where it is not the code's own: 503 for a webhook over its agent's budget."""
