"""Agents that are woken by schedules in several time zones, two of them with budgets that are soon spent."""

from __future__ import annotations

from typing import Final, NamedTuple


class Planned(NamedTuple):
    """One schedule."""

    schedule: str
    timezone: str


class SlowAgent(NamedTuple):
    """What its TRIGGER.md says."""

    planned: tuple[Planned, ...]
    daily_nanos: int | None = None
    monthly_nanos: int | None = None
    model: str = ""
    is_written_to: bool = True
    """Deliveries go to it too. One whose budget is spent would make their senders wait for midnight."""

    def config(self) -> str:
        """Further lines of TRIGGER.md; gates wait for people for six hours."""
        lines = ["gates: {timeout_ms: 21600000}"]
        if self.daily_nanos is not None:
            dollars = f"daily_dollars: {self.daily_nanos / 1e9:.9f}"
            if self.monthly_nanos is not None:
                dollars += f", monthly_dollars: {self.monthly_nanos / 1e9:.9f}"
            lines.append(f"budget: {{{dollars}}}")
        triggers = "".join(
            f'\n  - type: cron\n    schedule: "{schedule}"\n    timezone: {timezone}'
            for schedule, timezone in self.planned
        )
        return triggers + "\n" + "\n".join(lines)


AGENTS: Final = (
    SlowAgent(
        (
            Planned("0 * * * *", "UTC"),
            Planned("30 2 * * *", "Europe/Berlin"),
            Planned("45 23 29 2 *", "UTC"),
        )
    ),
    SlowAgent(
        (
            Planned("30 1 * * *", "America/New_York"),
            Planned("15 2 * * *", "America/New_York"),
            Planned("0 9 * * 1", "Asia/Tokyo"),
            Planned("10 */6 * * *", "Australia/Lord_Howe"),
            Planned("15 12 1 * *", "UTC"),
        )
    ),
    SlowAgent((Planned("10,50 * * * *", "UTC"),), daily_nanos=2_500_000, is_written_to=False),
    SlowAgent(
        (Planned("5 */2 * * *", "UTC"),),
        daily_nanos=1_000_000_000,
        monthly_nanos=20_000_000,
        is_written_to=False,
    ),
)
"""Runs cost 100,000 nanos a second: a day's budget is spent after some three runs, a month's in two days."""
