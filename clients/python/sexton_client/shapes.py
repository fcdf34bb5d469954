"""What all shapes of the interface share: they pass over what they do not know."""

from enum import StrEnum
from typing import Self

import msgspec


class Model(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A JSON object. Members that this version does not know are left out, so a newer server can be read."""


class Word(StrEnum):
    """One of a set of words. A word that this version does not know is kept as it came.

    >>> class Status(Word):
    ...     ACTIVE = "active"
    >>> Status("active") is Status.ACTIVE, Status("asleep") == "asleep", Status("asleep").is_known
    (True, True, False)
    """

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str):
            return None
        word = str.__new__(cls, value)
        word._name_ = value
        word._value_ = value
        return word

    @property
    def is_known(self) -> bool:
        """Whether this version of the client knows the word."""
        return self._name_ in type(self).__members__
