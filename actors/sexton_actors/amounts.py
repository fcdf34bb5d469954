"""Sums of money in words."""

from typing import Final

NANOS_PER_DOLLAR: Final = 1_000_000_000


def dollars(nanos: int) -> str:
    """A sum with as many places as it needs, two at least.

    >>> [dollars(nanos) for nanos in (0, 21_400_000, 4_180_000_000, 1_234_500_000_000, -5, 85_000)]
    ['$0.00', '$0.0214', '$4.18', '$1,234.50', '-$0.000000005', '$0.000085']
    """
    whole, rest = divmod(abs(nanos), NANOS_PER_DOLLAR)
    places = f"{rest:09}".rstrip("0").ljust(2, "0")
    return f"{'-' if nanos < 0 else ''}${whole:,}.{places}"
