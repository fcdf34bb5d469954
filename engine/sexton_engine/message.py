"""What a message is, and in which lane it travels."""

from __future__ import annotations

from enum import IntEnum
from typing import Generic, TypeVar

__all__ = ["Lane", "Message"]

R_co = TypeVar("R_co", covariant=True)


class Message(Generic[R_co]):
    """Base of all messages; the parameter is the type of the reply.

    ``class Renew(Message[Renewed | LeaseLost])`` makes ``await system.ask("lease", key, Renew())``
    a ``Renewed | LeaseLost``. Subclasses are frozen, slotted dataclasses in the imperative.
    """

    __slots__ = ()


class Lane(IntEnum):
    """The order of delivery: all of a lower lane before any of a higher one."""

    CONTROL = 0
    SUPERVISION = 1
    USER = 2
