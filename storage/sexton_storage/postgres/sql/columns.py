"""The columns of a batch's rows, as parameters of one statement."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final
from uuid import UUID

import msgspec

_encoder = msgspec.json.Encoder()
_CODED: Final = frozenset({"text", "bytea"})
"""Types whose literals need escapes."""


def array_literal(values: Sequence[int | UUID | None]) -> str:
    """Spell an array as PostgreSQL reads it.

    The driver's own coding of an array takes three times as long as this, and is the dearest part of a batch
    for the thread that all batches share. Not for texts: their escapes differ.

    >>> array_literal([1, None, 3])
    '{1,null,3}'
    >>> array_literal([UUID(int=7)])
    '{"00000000-0000-0000-0000-000000000007"}'
    """
    return f"{{{_encoder.encode(values)[1:-1].decode()}}}"


class Columns:
    """The columns of a batch's rows: a parameter each, numbers, ids and truth values as literals.

    >>> columns = Columns("int text", first=3)
    >>> columns.unnest
    'unnest($3::text::int[], $4::text[])'
    >>> columns.arrays([(1, "one"), (2, None)])
    ['{1,2}', ['one', None]]
    """

    def __init__(self, types: str, first: int = 1) -> None:
        names = types.split()
        spelled = (f"{'' if name in _CODED else 'text::'}{name}[]" for name in names)
        self.unnest: Final = f"unnest({', '.join(f'${i}::{name}' for i, name in enumerate(spelled, first))})"
        self._spell: Final[list[Callable[[Any], Any]]] = [
            list if name in _CODED else array_literal for name in names
        ]

    def arrays(self, rows: Iterable[Sequence[Any]]) -> list[Any]:
        """One argument a column; there is at least one row."""
        return [spell(c) for spell, c in zip(self._spell, zip(*rows, strict=True), strict=True)]
