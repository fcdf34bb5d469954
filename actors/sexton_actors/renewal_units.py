"""The renewals of one request: decided one by one, written and answered as one."""

from typing import Any

from sexton_engine import Hold
from sexton_storage.writes import RenewLease


class RenewalUnit:
    """What the handlers of one burst have decided, each with its held message, in order."""

    __slots__ = ("asked", "at", "holds", "writes")

    def __init__(self, at: int) -> None:
        self.at = at
        """The time of all decisions of the burst: Unix ms by the database's clock."""
        self.holds: list[Hold] = []
        self.asked: list[Any] = []
        """What the lease wing needs to finish each."""
        self.writes: list[RenewLease] = []

    def __repr__(self) -> str:
        return f"<RenewalUnit of {len(self.writes)}>"

    def add(self, hold: Hold, asked: Any, write: RenewLease) -> None:
        self.holds.append(hold)
        self.asked.append(asked)
        self.writes.append(write)


class RenewalUnits:
    """Where a node's leases find the unit of their burst; nothing is awaited while it is open."""

    __slots__ = ("open",)

    def __init__(self) -> None:
        self.open: RenewalUnit | None = None
        """None outside of a burst."""

    def __repr__(self) -> str:
        return f"<RenewalUnits, open: {self.open}>"

    def begin(self, at: int) -> None:
        self.open = RenewalUnit(at)

    def end(self) -> RenewalUnit | None:
        """Give the unit, if it has any renewals."""
        unit, self.open = self.open, None
        return unit if unit is not None and unit.writes else None
