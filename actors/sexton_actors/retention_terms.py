"""How long a server keeps what it has."""

from dataclasses import dataclass
from typing import Final

DAY_MS: Final = 24 * 3600 * 1000
DEFAULT_SLICE_DAYS: Final = 7


@dataclass(frozen=True, slots=True)
class RetentionTerms:
    """What the operator has decided for the whole installation."""

    slice_days: int = DEFAULT_SLICE_DAYS
    """Days after which the metering rows of a day's events become one for each attempt; 0: never."""

    @property
    def slices_ms(self) -> int | None:
        """The same in ms; None: never.

        >>> RetentionTerms(2).slices_ms, RetentionTerms(0).slices_ms
        (172800000, None)
        """
        return self.slice_days * DAY_MS or None
