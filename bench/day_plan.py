"""What the processes of the mixed day are told."""

from typing import Final, NamedTuple

from bench.day_clients import Phase
from bench.product import Delivery, Site

WEBHOOK: Final = "webhook"
STEER: Final = "steer"
PAGE: Final = "page"


class Plan(NamedTuple):
    """All that the processes are told; it can be pickled."""

    site: Site
    phases: tuple[Phase, ...]
    rates: dict[str, float]
    """Requests a second of each kind at 1 x."""
    deliveries: tuple[Delivery, ...]
    agents: tuple[str, ...]
    runners: tuple[str, ...]
    """Their tokens."""
    slots: int
    streams: int

    @property
    def end_ns(self) -> int:
        return self.phases[-1].end_ns
