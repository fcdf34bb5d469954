"""Who was signed in a moment ago, for pages that are open and ask for their parts again and again."""

from collections.abc import Callable
from typing import Final
from uuid import UUID

from sexton_http.identity.principals import SignedIn

KNOWN_S: Final = 15.0
"""How long one is known without another look. Of a change there is word; this is for word that got lost."""
MOST: Final = 1024
"""Browsers that are known at once; of more the oldest ones go."""


class RecentSignIns:
    """Browsers by the hash of their cookie's token."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._known: dict[bytes, tuple[float, SignedIn]] = {}
        self.changes = 0
        """How often somebody's access has changed so far."""

    def __repr__(self) -> str:
        return f"<RecentSignIns of {len(self._known)} browsers>"

    def get(self, hashed: bytes) -> SignedIn | None:
        """None for one that has to be looked up."""
        found = self._known.get(hashed)
        if found is None or self._monotonic() - found[0] >= KNOWN_S:
            return None
        return found[1]

    def keep(self, hashed: bytes, who: SignedIn, changes: int) -> None:
        """``changes`` as it was before the look: what changed meanwhile may not be in ``who``."""
        if changes != self.changes:
            return
        self._known.pop(hashed, None)
        self._known[hashed] = self._monotonic(), who
        while len(self._known) > MOST:
            del self._known[next(iter(self._known))]

    def forget(self, ids: frozenset[UUID]) -> None:
        """Forget the people and sign-ins of these ids."""
        self.changes += 1
        self._known = {
            hashed: known
            for hashed, known in self._known.items()
            if ids.isdisjoint((known[1].user.id, known[1].session.id))
        }
