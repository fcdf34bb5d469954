"""Reads the amounts that a person types: exact nanos for the server."""

from decimal import Decimal, InvalidOperation
from typing import Final

from sexton_cli.exits import USAGE, Fault

BILLING: Final = "/v1/tenants/me/billing"
NANOS_PER_DOLLAR: Final = 10**9


def nanos_of(dollars: str) -> int:
    """Exact nanos of an amount. Raises Fault.

    >>> nanos_of("2.5")
    2500000000
    """
    try:
        nanos = Decimal(dollars) * NANOS_PER_DOLLAR
        amount = int(nanos)
    except (InvalidOperation, ValueError, OverflowError):
        raise Fault(f"{dollars!r} is not an amount of dollars", "Write 10 or 2.50.", status=USAGE) from None
    if amount <= 0 or amount != nanos:
        raise Fault(f"{dollars!r} is not an amount that can be added", "Write 10 or 2.50.", status=USAGE)
    return amount
