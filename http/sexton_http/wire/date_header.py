"""Says the date in each answer; spelled once a second."""

import math
import time
from wsgiref.handlers import format_date_time


class DateHeader:
    """Called for each answer."""

    __slots__ = ("_headers", "_second")

    def __init__(self) -> None:
        self._second = -math.inf
        self._headers: list[tuple[bytes, bytes]] = []

    def __call__(self) -> list[tuple[bytes, bytes]]:
        now = time.time()
        if now - self._second >= 1:
            self._second = math.floor(now)
            self._headers = [(b"date", format_date_time(now).encode("ascii"))]
        return self._headers
