"""Which headers of a delivery are kept, and which of their values a person may see."""

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

MAX_HEADERS: Final = 64
MAX_NAME_CHARS: Final = 128
MAX_VALUE_CHARS: Final = 8_192
_TOKEN = re.compile(r"authorization|cookie|token|secret|passw|api-?key|credential|session|bearer")
"""Names under which senders put what opens something by itself: no such value is kept."""
_SIGNATURE = re.compile(r"signature|hmac|digest|-sign\b|-sig\b")
"""Names of signatures: kept, so that they can be verified again, and shown to nobody."""


def kept_headers(headers: Mapping[str, str], signed_by: Collection[str]) -> dict[str, Any]:
    """The headers as they are kept; ``signed_by`` names those that the trigger verifies by, in lower case.

    >>> kept_headers({"x-check": "9f", "authorization": "Bearer x", "x-event": "push"}, ["x-check"])
    ... # doctest: +NORMALIZE_WHITESPACE
    {'authorization': {'value': '', 'is_secret': True, 'chars': 8},
     'x-check': {'value': '9f', 'is_secret': True, 'chars': 2},
     'x-event': {'value': 'push', 'is_secret': False, 'chars': 4}}
    """
    kept: dict[str, Any] = {}
    for name in sorted(headers)[:MAX_HEADERS]:
        value, short = headers[name], name[:MAX_NAME_CHARS]
        is_signature = name in signed_by or _SIGNATURE.search(name) is not None
        is_token = name not in signed_by and _TOKEN.search(name) is not None
        kept[short] = {
            "value": "" if is_token else value[:MAX_VALUE_CHARS],
            "is_secret": is_signature or is_token,
            "chars": len(value),
        }
    return kept


def sent_headers(kept: Mapping[str, Any]) -> dict[str, str]:
    """As they were sent, as far as they are kept: what a delivery is verified again by.

    >>> sent_headers({"x-event": {"value": "push", "is_secret": False, "chars": 4}})
    {'x-event': 'push'}
    """
    return {name: header["value"] for name, header in kept.items() if header["value"]}


def shown_headers(kept: Mapping[str, Any]) -> dict[str, str]:
    """As people see them.

    >>> shown_headers({"x-hub-signature": {"value": "sha1=9f", "is_secret": True, "chars": 7}})
    {'x-hub-signature': '*** (7 characters)'}
    """
    return {
        name: f"*** ({header['chars']} characters)" if header["is_secret"] else header["value"]
        for name, header in kept.items()
    }
