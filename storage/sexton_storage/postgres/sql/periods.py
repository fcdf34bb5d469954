"""The UTC day of a moment and the month around it, as columns of a statement."""

from functools import lru_cache
from typing import NamedTuple

from sexton_storage.periods import day_of, month_of
from sexton_storage.postgres.sql.columns import Int4


class Period(NamedTuple):
    """Days since 1970: the day, the first of its month, and the first of the next month."""

    day: Int4
    month: Int4
    next_month: Int4


def period_of(now: int) -> Period:
    """Give the period of Unix milliseconds.

    >>> period_of(86_400_000 * 31)
    Period(day=31, month=31, next_month=59)
    """
    return _of_day(day_of(now))


@lru_cache(maxsize=64)
def _of_day(day: int) -> Period:
    month = month_of(day)
    return Period(day, month.first_day, month.end_day)
