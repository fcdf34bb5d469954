"""The UTC days and months that an agent's spend is counted by."""

from datetime import UTC, datetime
from functools import lru_cache

from msgspec import Struct

DAY_MS = 86_400_000


class Month(Struct, frozen=True):
    """Days since 1970, the last one excluded."""

    first_day: int
    end_day: int


def day_of(now: int) -> int:
    """Give the UTC day of Unix milliseconds, in days since 1970.

    >>> day_of(86_400_000)
    1
    """
    return now // DAY_MS


@lru_cache(maxsize=64)
def month_of(day: int) -> Month:
    """Give the UTC month that the day is in.

    >>> month_of(30), month_of(31)
    (Month(first_day=0, end_day=31), Month(first_day=31, end_day=59))
    """
    first = datetime.fromtimestamp(day * 86_400, UTC).replace(day=1)
    following = first.replace(year=first.year + first.month // 12, month=first.month % 12 + 1)
    return Month(int(first.timestamp()) // 86_400, int(following.timestamp()) // 86_400)
