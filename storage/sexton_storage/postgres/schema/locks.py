"""What each step was seen to lock: measured on a database with rows, kept beside the files."""

from collections.abc import Mapping
from importlib import resources
from typing import Final

import msgspec

FILE: Final = "locks.json"
STRONG: Final = frozenset({"SHARE", "SHARE ROW EXCLUSIVE", "EXCLUSIVE", "ACCESS EXCLUSIVE"})
"""The modes that keep others from writing, the last of them from reading too."""


class StepLocks(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a step does to others."""

    creates: tuple[str, ...] = ()
    """Tables that nobody knows yet: whatever is done to them holds nobody up."""
    locks: dict[str, str] = {}
    """The strongest mode on each table that was there; tables that are only read are left out."""
    goes_through: tuple[str, ...] = ()
    """Tables that were there and whose rows it reads or writes one after the other: it takes as long as
    they are large."""


def measured_locks() -> Mapping[str, StepLocks]:
    """What this release's steps were seen to do, by the names of their files."""
    raw = (resources.files("sexton_storage.migrations") / FILE).read_bytes()
    return msgspec.json.decode(raw, type=dict[str, StepLocks])


def holds_up(found: StepLocks) -> bool:
    """Whether others wait for as long as a table is large.

    >>> holds_up(StepLocks(locks={"events": "ACCESS EXCLUSIVE"}))
    False
    >>> holds_up(StepLocks(locks={"events": "ACCESS EXCLUSIVE"}, goes_through=("events",)))
    True
    >>> holds_up(StepLocks(locks={"events": "ROW EXCLUSIVE"}, goes_through=("events",)))
    False
    """
    return bool(found.goes_through) and any(mode in STRONG for mode in found.locks.values())
