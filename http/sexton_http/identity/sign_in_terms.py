"""How long a browser or a terminal stays signed in, with use and without."""

from typing import Final

import msgspec

from sexton_storage.records.sign_ins import BrowserSession, SignInKind

HOUR_MS: Final = 3600 * 1000
DAY_MS: Final = 24 * HOUR_MS
IDLE_MS: Final = 7 * DAY_MS
"""How long a browser may be unused before it is signed out. It covers a weekend: without a provider one needs
a link from the server to come in again."""
LIFE_MS: Final = 30 * DAY_MS
"""How long any sign-in lasts, however much it is used."""
TERMINAL_IDLE_MS: Final = 30 * DAY_MS
"""How long a terminal may be unused before it is signed out."""
TERMINAL_LIFE_MS: Final = 365 * DAY_MS
_UNITS: Final = ((DAY_MS, "day"), (HOUR_MS, "hour"), (60_000, "minute"))


def in_words(span_ms: int) -> str:
    """A whole number of minutes, hours or days, in the largest of these that fits.

    >>> in_words(TERMINAL_LIFE_MS), in_words(36 * HOUR_MS), in_words(60_000)
    ('365 days', '36 hours', '1 minute')
    """
    unit_ms, unit = next((one for one in _UNITS if span_ms % one[0] == 0), _UNITS[-1])
    count = span_ms // unit_ms
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"


class SignInTerms(msgspec.Struct, frozen=True):
    """What the operator allows at most; None: as long as is usual for the kind.

    >>> SignInTerms(life_ms=12 * HOUR_MS).life_of(SignInKind.TERMINAL) // HOUR_MS
    12
    >>> SignInTerms(life_ms=9_000 * HOUR_MS).life_of(SignInKind.BROWSER) // DAY_MS
    30
    """

    life_ms: int | None = None
    idle_ms: int | None = None

    def life_of(self, kind: SignInKind) -> int:
        """From the sign-in to its end, however much it is used."""
        usual = LIFE_MS if kind is SignInKind.BROWSER else TERMINAL_LIFE_MS
        return usual if self.life_ms is None else min(usual, self.life_ms)

    def idle_of(self, kind: SignInKind) -> int:
        """From the last use to the end."""
        usual = IDLE_MS if kind is SignInKind.BROWSER else TERMINAL_IDLE_MS
        return usual if self.idle_ms is None else min(usual, self.idle_ms)

    def ends_at(self, session: BrowserSession) -> int:
        """When it ends if nobody uses it any more; sign-ins of before are held to these terms too."""
        return min(
            session.idle_ends_at,
            session.ends_at,
            session.created_at + self.life_of(session.kind),
            session.seen_at + self.idle_of(session.kind),
        )


USUAL_TERMS: Final = SignInTerms()
