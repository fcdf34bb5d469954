"""What one process of clients has to do, as it is told on its first line."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

SECRET: Final = "what the senders sign with"
CREDENTIAL: Final = "github"
SLOTS: Final = 128
"""Leases that one holder has at most."""
OPS_OF_A_LIFE: Final = 10**9
PROCESSES_OF_A_LIFE: Final = 10**6
PROCESSES_OF_A_CALLER: Final = 10**3
STOP: Final = b"stop"
CLOSE: Final = b"close"
OPEN: Final = b"open"


class Role(StrEnum):
    SENDERS = "senders"
    HOLDER = "holder"
    WATCHERS = "watchers"
    """People who decide at gates, and who follow streams."""


class Site(msgspec.Struct, frozen=True):
    """One tenant, and what is its own."""

    tenant: str
    workspace: str
    key: str
    agents: tuple[str, ...]
    """Of the holders."""
    commands: tuple[str, ...] = ()
    """Of the real runners."""


class Task(msgspec.Struct, frozen=True):
    """Everything is in here: a process that was killed is started again with the same, as another life."""

    role: Role
    life: int
    """No two processes of a run have the same."""
    seed: int
    bases: tuple[str, ...]
    """Where the nodes are reached, over links that can be cut."""
    sites: tuple[Site, ...]
    history: str
    token: str = ""
    """A holder's."""
    count: int = 0
    """How many senders."""
    every_s: float = 1.0
    """Between two deliveries of one sender, or two renewals of a lease."""


class Progress(msgspec.Struct, frozen=True):
    """What a process says of itself from time to time."""

    events: int
    renewals: int
