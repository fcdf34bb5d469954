"""Spells the parts of SQL that would be tedious by hand."""

from collections.abc import Sequence
from uuid import UUID

import msgspec

_encoder = msgspec.json.Encoder()


def unnest(types: str, first: int = 1) -> str:
    """Spell an ``unnest`` of one array parameter a column, from ``$first`` on.

    >>> unnest("int uuid")
    'unnest($1::int[], $2::uuid[])'
    """
    return f"unnest({', '.join(f'${i}::{name}[]' for i, name in enumerate(types.split(), first))})"


def unnest_literals(types: str, first: int = 1) -> str:
    """The same for arrays that come as literals.

    >>> unnest_literals("int uuid")
    'unnest($1::text::int[], $2::text::uuid[])'
    """
    return unnest(types, first).replace("::", "::text::")


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
