"""What is told when an agent has spent its budget, and when it may come again."""

from sexton_actors.refusal import Refusal
from sexton_storage.periods import DAY_MS, day_of, month_of


def seconds_to_midnight(now: int) -> int:
    """Milliseconds until the next UTC day, when the daily budget starts again; at least one.

    >>> seconds_to_midnight(DAY_MS - 1)
    1
    >>> seconds_to_midnight(DAY_MS)
    86400
    """
    return max(1, -(-(DAY_MS - now % DAY_MS) // 1000))


def seconds_to_next_month(now: int) -> int:
    """Milliseconds until the next UTC month, when the monthly budget starts again; at least one.

    >>> seconds_to_next_month(31 * DAY_MS - 1), seconds_to_next_month(31 * DAY_MS)
    (1, 2419200)
    """
    end = month_of(day_of(now)).end_day * DAY_MS
    return max(1, -(-(end - now) // 1000))


def over_budget(now: int, period: str, *, status: int | None) -> Refusal:
    """The agent has spent what it may in this ``period``, day or month; or its tenant's plan allows no more.

    ``status`` is 503 for webhooks, whose senders come again by themselves.
    """
    if period == "plan":
        detail = "The plan allows no more events today (UTC)."
        return Refusal("UZ-ENTL-003", detail, retry_after_s=seconds_to_midnight(now), status=status)
    retry_after_s = seconds_to_midnight(now) if period == "day" else seconds_to_next_month(now)
    detail = f"The agent has spent its budget for this {period}."
    return Refusal("UZ-ZMB-001", detail, retry_after_s=retry_after_s, status=status)
