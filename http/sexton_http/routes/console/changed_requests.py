"""Reads what a form of a replay wants changed of the old request."""

from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec

from sexton_http.answers import Problem
from sexton_http.bodies.lenient import decoder_of
from sexton_http.bodies.shapes import Body

MOST_CHARS: Final = 8192


class _Document(Body):
    document: dict[str, Any]


class ChangedRequest(NamedTuple):
    """What a replay asks in place of the old request, or what is merged into it; None and None: nothing."""

    request: dict[str, Any] | None = None
    merge: dict[str, Any] | None = None


Change = Annotated[str, msgspec.Meta(max_length=MOST_CHARS)]
"""The field `change`: an object as JSON; empty changes nothing."""
How = Literal["merge", "replace"]
_DECODER: Final = decoder_of(_Document)


def changed_request(change: str, how: How) -> ChangedRequest:
    """Read the field. Raises Problem UZ-REQ-001, which names it.

    >>> changed_request('{"dry": true}', "merge"), changed_request(" ", "replace")
    (ChangedRequest(request=None, merge={'dry': True}), ChangedRequest(request=None, merge=None))
    >>> changed_request("[]", "replace")
    Traceback (most recent call last):
    sexton_http.answers.Problem: UZ-REQ-001: change: an object as JSON, such as {"dry_run": true}
    """
    if not change.strip():
        return ChangedRequest()
    try:
        document = _DECODER.decode(b'{"document":' + change.encode() + b"}").document
    except Problem as problem:
        detail = 'change: an object as JSON, such as {"dry_run": true}'
        raise Problem("UZ-REQ-001", detail, facts={"parameter": "change"}) from problem
    return ChangedRequest(merge=document) if how == "merge" else ChangedRequest(request=document)
