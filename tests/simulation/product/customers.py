"""Customers whom deliveries are about: each has an address of mail, which runs repeat in what they write."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

CUSTOMERS: Final = tuple(f"customer-{number}@example.org" for number in range(12))
PATH: Final = "raw.customer.email"
"""Where a request has the address of the customer that it is about."""
NAMES_ANOTHER: Final = 4
"""One delivery in this number names another customer too."""
NOBODY: Final = "nobody"


class Parts(NamedTuple):
    """A request, taken apart."""

    customer: str
    named: str
    """Another customer, whose event it is not."""
    rest: Mapping[str, Any]


def about(delivery: str) -> Mapping[str, Any]:
    """What the body of a delivery says of customers; its name decides, no chance is drawn for it.

    >>> about("sender-0-10")
    {'customer': {'email': 'customer-0@example.org'}, 'cc': 'customer-1@example.org'}
    """
    number = zlib.crc32(delivery.encode())
    customer = CUSTOMERS[number % len(CUSTOMERS)]
    said = {"customer": {"email": customer}}
    if (number >> 8) % NAMES_ANOTHER:
        return said
    return {**said, "cc": CUSTOMERS[(number + 1) % len(CUSTOMERS)]}


def parts_of(request: Any) -> Parts:
    """Take a request apart, which is a text or an object.

    >>> parts_of('{"raw": {"n": 1, "customer": {"email": "customer-1@example.org"}}}')
    Parts(customer='customer-1@example.org', named='nobody', rest={'raw': {'n': 1}})
    >>> parts_of({"erased": True})
    Parts(customer='nobody', named='nobody', rest={'erased': True})
    """
    fields = dict(orjson.loads(request) if isinstance(request, str) else request)
    if "raw" not in fields:
        return Parts(NOBODY, NOBODY, fields)
    raw = fields["raw"] = dict(fields["raw"])
    customer, named = raw.pop("customer", {"email": NOBODY}), raw.pop("cc", NOBODY)
    return Parts(customer["email"], named, fields)
